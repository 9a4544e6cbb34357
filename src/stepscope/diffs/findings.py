"""Findings that came, went, stayed and grew: the same where they are of one code and about the same ranks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stepscope.diffs.data.model import FindingChange

# Of the step: what a finding must be worth for its coming, going or growing to mean something.
FINDING_LEAST = 0.03
# Times as much as in the other run: what has grown, and not only changed with its threshold.
GROWN = 1.5
_RANKS = re.compile(r"\branks? (\d+(?:(?:, | and )\d+)*)")
Report = Mapping[str, Any]
Changes = tuple[list[FindingChange], list[FindingChange], list[FindingChange]]
_About = tuple[str, str]


def findings(a: Report, b: Report, is_changed: bool) -> Changes:
    """Gained by B, lost by B, and those that both have; findings of one code about the same ranks are one.

    A finding near its threshold comes and goes: it counts as a change only where it is worth something and the runs differ.
    """
    ours, theirs = _by_subject(a), _by_subject(b)
    gained = [
        FindingChange(
            code=about[0], title=title, b_saves_ns=saves, significant=is_changed and _matters(saves, b)
        )
        for about, (title, saves) in theirs.items()
        if about not in ours
    ]
    lost = [
        FindingChange(
            code=about[0], title=title, a_saves_ns=saves, significant=is_changed and _matters(saves, a)
        )
        for about, (title, saves) in ours.items()
        if about not in theirs
    ]
    kept = [
        _kept(about[0], title, (ours[about][1], saves), (a, b) if is_changed else None)
        for about, (title, saves) in theirs.items()
        if about in ours
    ]
    return gained, lost, kept


def _kept(
    code: str, title: str, saves: tuple[int, int], changed: tuple[Report, Report] | None
) -> FindingChange:
    """Significant where it is worth much more in one of the runs than in the other."""
    less, more = sorted(saves)
    larger = changed[saves.index(more)] if changed else None
    grown = larger is not None and more > GROWN * less and _matters(more - less, larger)
    return FindingChange(code=code, title=title, a_saves_ns=saves[0], b_saves_ns=saves[1], significant=grown)


def _matters(saves: int, report: Report) -> bool:
    return saves >= FINDING_LEAST * (report["steps"]["mean_ns"] or 0)


def _by_subject(report: Report) -> dict[_About, tuple[str, int]]:
    """By code and the ranks that the title names."""
    found: dict[_About, tuple[str, int]] = {}
    for row in report["findings"]:
        named = _RANKS.search(row["title"])
        about = row["code"], named[1] if named else ""
        title, saves = found.get(about, (row["title"], 0))
        found[about] = title, saves + row["saves_ns_per_step"]
    return found
