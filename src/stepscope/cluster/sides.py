"""A run as the diff wants it, its ranks read elsewhere: the same as if they had been read here."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options, parse_steps
from stepscope.cluster.place import Progress
from stepscope.cluster.report import looked
from stepscope.diffs.build import Diff, diff_of
from stepscope.diffs.compare import ROWS
from stepscope.diffs.data.samples import Samples, Side, repeated, together
from stepscope.diffs.side import outside_steps, samples_of

if TYPE_CHECKING:
    from distributed import Client


def side(
    path: str | os.PathLike[str],
    options: Options,
    *,
    where: str | int | Client | None = None,
    rank: int | Collection[int] | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Side:
    """One side of a diff; `where` as in `cluster.report.report`."""
    told, seen = looked(path, options, where, rank=rank, cache=cache, progress=progress, also=_of_rank)
    report = msgspec.to_builtins(told)
    return Side(
        together([samples for samples, _ in seen]), report, max((share for _, share in seen), default=0.0)
    )


def diff(
    a: Sequence[str],
    b: Sequence[str],
    *,
    where: str | int | Client | None = None,
    step: str | None = None,
    step_name: str | None = None,
    rank: int | Collection[int] | None = None,
    limit: int = ROWS,
    cache: bool = True,
    progress: Progress | None = None,
) -> Diff:
    """B against A, each some recordings of one job, as `stepscope.diff` has it."""
    options = Options(step_name, parse_steps(step) if step is not None else None, 0)
    before, after = (
        repeated(
            [side(path, options, where=where, rank=rank, cache=cache, progress=progress) for path in paths]
        )
        for paths in (a, b)
    )
    return diff_of(before, after, limit)


def _of_rank(context: RankContext) -> tuple[Samples, float]:
    return samples_of(context), outside_steps(context)
