"""`stepscope.diff(a, b)`: what changed between two profiles."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from stepscope.analysis.options import Options, parse_steps
from stepscope.diffs.compare import ROWS
from stepscope.diffs.compare import diff as compared
from stepscope.diffs.data import model as diff_model
from stepscope.diffs.data.samples import Side, repeated
from stepscope.diffs.side import side_of
from stepscope.errors import StepscopeError
from stepscope.profiles.load import load
from stepscope.profiles.profile import Profile

AnyProfile = Profile | str | os.PathLike[str]
AnyRun = AnyProfile | Sequence[AnyProfile]


class Diff(diff_model.Diff, kw_only=True):
    """A diff that can be shown and saved."""

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write it as what the name says: .html, .json, .md, .folded (a differential flame graph), or text."""
        from stepscope.diffs.render.write import save

        save(self, Path(path), force=force)

    def __str__(self) -> str:
        from stepscope.diffs.render.text import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from stepscope.diffs.render.html import fragment

        return fragment(self)


def diff(
    a: AnyRun,
    b: AnyRun,
    *,
    step: str | None = None,
    step_name: str | None = None,
    rank: int | Collection[int] | None = None,
    limit: int = ROWS,
) -> Diff:
    """B against A, per step and rank. Each may be a list of recordings of the same job: then these tell what chance does.

    `step`, `step_name` and `rank` as in `report`; lists of rows have `limit` of them, 0 for all.
    """
    options = Options(step_name, parse_steps(step) if step is not None else None, 0)
    ranks = None if rank is None else [rank] if isinstance(rank, int) else sorted(rank)
    sides = [_run(each, options, ranks) for each in (a, b)]
    return diff_of(sides[0], sides[1], limit)


def diff_of(a: Side, b: Side, limit: int = ROWS) -> Diff:
    """Of runs whose samples are known."""
    found = compared(a, b, limit)
    return Diff(**{name: getattr(found, name) for name in found.__struct_fields__})


def _run(recordings: AnyRun, options: Options, ranks: list[int] | None) -> Side:
    if isinstance(recordings, Profile | str | os.PathLike):
        return _side(recordings, options, ranks)
    if not recordings:
        raise StepscopeError("A list of recordings is empty.", fix="Name at least one profile for each side.")
    return repeated([_side(each, options, ranks) for each in recordings])


def _side(profile: AnyProfile, options: Options, ranks: list[int] | None) -> Side:
    opened = profile if isinstance(profile, Profile) else load(profile, rank=ranks)
    return side_of(opened, options, ranks)
