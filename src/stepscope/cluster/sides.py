"""One side of a diff, its ranks read by other processes: the same as if they had been read here."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options, parse_steps
from stepscope.cluster.place import Progress
from stepscope.cluster.report import looked
from stepscope.diffs.build import Diff, diff_sides
from stepscope.diffs.data.samples import Samples, Side, combine_ranks, combine_recordings
from stepscope.diffs.side import collect_samples, measure_outside
from stepscope.registers.policy.diffs import DIFF_ROWS

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
    report, ranks = looked(path, options, where, rank=rank, cache=cache, progress=progress, also=_look)
    samples, outside = [samples for samples, _ in ranks], [share for _, share in ranks]
    return Side(combine_ranks(samples), report, max(outside, default=0.0))


def diff(
    a: Sequence[str],
    b: Sequence[str],
    *,
    where: str | int | Client | None = None,
    step: str | None = None,
    step_name: str | None = None,
    whole: bool = False,
    rank: int | Collection[int] | None = None,
    limit: int = DIFF_ROWS,
    cache: bool = True,
    progress: Progress | None = None,
) -> Diff:
    """B against A, each one or more recordings of one job, as in `stepscope.diff`."""
    options = Options(step_name, parse_steps(step) if step is not None else None, 0, whole=whole)

    def read(paths: Sequence[str], wanted: Options) -> Side:
        return combine_recordings(
            [side(path, wanted, where=where, rank=rank, cache=cache, progress=progress) for path in paths]
        )

    before = read(a, options)
    return diff_sides(before, read(b, options.of_region(before.report.steps.region)), limit)


def _look(context: RankContext) -> tuple[Samples, float]:
    return collect_samples(context), measure_outside(context)
