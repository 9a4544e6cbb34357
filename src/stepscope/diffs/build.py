"""`stepscope.diff(a, b)`: what changed between two profiles."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from stepscope.analysis.options import Options, parse_steps
from stepscope.diffs.compare import compare
from stepscope.diffs.data import model
from stepscope.diffs.data.samples import Side, combine_recordings
from stepscope.diffs.side import read_side
from stepscope.errors import StepscopeError
from stepscope.profiles.load import load
from stepscope.profiles.profile import Profile
from stepscope.registers.policy.diffs import DIFF_ROWS

AnyProfile = Profile | str | os.PathLike[str]
AnyRun = AnyProfile | Sequence[AnyProfile]


class Diff(model.Diff, kw_only=True):
    """A diff that can be shown and saved."""

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write it in the format of the file name: .html, .json, .md, .folded (a differential flame graph), or text."""
        from stepscope.diffs.render.write import save

        save(self, Path(path), force=force)

    def __str__(self) -> str:
        from stepscope.diffs.render.brief import as_brief

        return as_brief(self)

    def _repr_html_(self) -> str:
        from stepscope.diffs.render.html import fragment

        return fragment(self)


def diff(
    a: AnyRun,
    b: AnyRun,
    *,
    step: str | None = None,
    step_name: str | None = None,
    whole: bool = False,
    rank: int | Collection[int] | None = None,
    limit: int = DIFF_ROWS,
) -> Diff:
    """Compare B with A, per step and rank. Each may be a list of recordings of the same job, which then show its noise.

    `step`, `step_name` and `rank` as in `report`; lists of rows have `limit` of them, 0 for all.
    """
    options = Options(step_name, parse_steps(step) if step is not None else None, 0, whole=whole)
    ranks = None if rank is None else [rank] if isinstance(rank, int) else sorted(rank)
    before = _read_run(a, options, ranks)
    after = _read_run(b, options.of_region(before.report.steps.region), ranks)
    return diff_sides(before, after, limit)


def diff_sides(a: Side, b: Side, limit: int = DIFF_ROWS) -> Diff:
    """The diff of two sides that were read before."""
    plain = compare(a, b, limit)
    return Diff(**{name: getattr(plain, name) for name in plain.__struct_fields__})


def _read_run(recordings: AnyRun, options: Options, ranks: list[int] | None) -> Side:
    if isinstance(recordings, Profile | str | os.PathLike):
        return _read_profile(recordings, options, ranks)
    if not recordings:
        raise StepscopeError("A list of recordings is empty.", fix="Give at least one profile for each side.")
    return combine_recordings([_read_profile(each, options, ranks) for each in recordings])


def _read_profile(profile: AnyProfile, options: Options, ranks: list[int] | None) -> Side:
    opened = profile if isinstance(profile, Profile) else load(profile, rank=ranks)
    return read_side(opened, options, ranks)
