"""Steps in which a DataLoader starts its worker processes again: it does so for every epoch unless they persist."""

from __future__ import annotations

import polars as pl

from stepscope.lazy import dataclass
from stepscope.trace.frames import take_largest
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_LOADER = r"(^|/)torch/utils/data/dataloader\.py\(\d+\): "
_STARTS = r"(^|/)multiprocessing/process\.py\(\d+\): start$"
_STOPS = _LOADER + "_shutdown_workers$"
_WAITS = _LOADER + "_get_data$"


@dataclass(frozen=True)
class LoaderStarts:
    """`steps`: those with a start. `workers`: processes per start. `wait_ns`: for the first batch after it, on average."""

    steps: tuple[int, ...]
    workers: int
    wait_ns: float


def find_loader_starts(trace: Trace) -> LoaderStarts | None:
    """Where stacks show that workers are started, and that it is not for once: others were stopped, or are started again."""
    starts = _frames(trace, _STARTS)
    if starts.is_empty():
        return None
    starts = starts.filter(_is_below_loader(trace, starts))
    steps = tuple(sorted(starts["step"].unique().to_list()))
    if not steps or (len(steps) == 1 and _frames(trace, _STOPS).is_empty()):
        return None
    last = starts.group_by("step", "track").agg(pl.col("start_ns").max().alias("last_ns"))
    waits = _frames(trace, _WAITS).join(last, on=["step", "track"])
    waited = waits.filter(pl.col("start_ns") > pl.col("last_ns"))["dur_ns"].sum()
    workers = take_largest(starts.group_by("step").len()["len"])
    return LoaderStarts(steps, int(workers), float(waited) / len(steps))


def _frames(trace: Trace, pattern: str) -> pl.DataFrame:
    """Calls of such functions inside steps."""
    is_one = is_named(trace.events, pattern)
    if not is_one.any():
        return trace.events.clear()
    return trace.events.filter(is_one, pl.col("kind") == "python", pl.col("step").is_not_null())


def _is_below_loader(trace: Trace, frames: pl.DataFrame) -> pl.Series:
    return ancestors(trace.events, is_named(trace.events, _LOADER)).gather(frames["id"]).is_not_null()
