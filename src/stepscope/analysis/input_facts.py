"""Facts about the input that advice rests on: workers and cores, prefetching, and the slow function.

What the capture noted beside the trace comes first; the rest is read from names of events and threads. None stands for unknown.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

import polars as pl

from stepscope.analysis.host.activity import self_time
from stepscope.analysis.host.background import waits_for_workers
from stepscope.analysis.host.functions import place_of
from stepscope.analysis.host.names import PLACE, STANDARD_FRAME
from stepscope.analysis.host.place import Place
from stepscope.lazy import dataclass
from stepscope.trace.lookup import is_named, names_of
from stepscope.trace.scopes import ancestors, at_or_inside
from stepscope.trace.trace import Trace

_WORKERS = "_MultiProcessingDataLoaderIter"
_NO_WORKERS = "_SingleProcessDataLoaderIter"
_PREFETCHES = r"::Prefetch$|(?i)prefetch_to_device|prefetch"
_PARALLEL = r"::(ParallelMap|MapAndBatch|ParallelInterleave)"
_LOADER_FRAME = r"(^|/)(torch/utils/data|tensorflow/python)/"


@dataclass(frozen=True)
class InputFacts:
    """`workers`: processes that make batches, 0 for none; `has_workers` is known also where their number is not.

    `slow`: where the function with most self time is, in the workers where they were watched, and `slow_share` its share of
    all time in the loader's functions. `made_in_background`: workers or threads of the job make batches while the loop goes on.
    `cores_busy`: the share of the machine's cores that was busy. `maps_in_parallel`: several threads of tf.data make batches. `waits_ns`: how long the loop waited for batches in the recorded window.
    """

    has_workers: bool | None = None
    workers: int | None = None
    cores: int | None = None
    prefetches: bool | None = None
    maps_in_parallel: bool = False
    pins_memory: bool = False
    slow: Place | None = None
    slow_share: float = 0.0
    slow_in_worker: bool = False
    waits_ns: int | None = None
    made_in_background: bool = False
    cores_busy: float | None = None


def input_facts(trace: Trace) -> InputFacts:
    """What the trace and its sidecar show of the input."""
    noted = _dict(trace.info.capture.get("input"))
    watched = [each for each in noted.get("workers") or [] if isinstance(each, dict)]
    names = names_of(trace.events).cast(pl.String)
    has_workers = _has_workers(names, watched)
    threads = trace.tracks["thread"].drop_nulls()
    in_workers = _slow_in_workers(watched)
    slow, share = in_workers or _slow_in_loader(trace) or (None, 0.0)
    return InputFacts(
        has_workers=has_workers,
        workers=_worker_count(trace, has_workers, watched),
        cores=_whole(trace.info.capture.get("cores")),
        prefetches=_prefetches(names, threads, has_workers),
        maps_in_parallel=bool(names.str.contains(_PARALLEL).any()),
        pins_memory=bool(threads.str.contains(r"(?i)pin_memory").any())
        or bool(names.str.contains(r"(?i)pin_memory").any()),
        slow=slow,
        slow_share=share,
        slow_in_worker=in_workers is not None,
        waits_ns=_whole(noted.get("wait_ns")),
        made_in_background=bool(has_workers) or bool(waits_for_workers(trace).any()),
        cores_busy=_cores_busy(trace),
    )


def _cores_busy(trace: Trace) -> float | None:
    """The mean of what the capture saw of the machine in its window."""
    rows = _dict(trace.info.capture.get("telemetry")).get("samples")
    seen = [row.get("machine_cpu_percent") for row in rows or [] if isinstance(row, dict)]
    shares = [percent / 100 for percent in seen if isinstance(percent, int | float)]
    known = [share for share in shares if 0 <= share <= 1]
    return mean(known) if known else None


def _has_workers(names: pl.Series, watched: list[dict[str, Any]]) -> bool | None:
    if watched or names.str.contains(_WORKERS, literal=True).any():
        return True
    return False if names.str.contains(_NO_WORKERS, literal=True).any() else None


def _worker_count(trace: Trace, has_workers: bool | None, watched: list[dict[str, Any]]) -> int | None:
    """Those that were watched, else the processes that the capture counted beside unprofiled steps."""
    if has_workers is False:
        return 0
    if watched:
        return len({str(each.get("worker")) for each in watched})
    runs = _dict(trace.info.capture.get("unprofiled")).values()
    counted = [_whole(_dict(run).get("workers")) for run in runs]
    most = max((count for count in counted if count is not None), default=0)
    return most if has_workers and most > 1 else None


def _prefetches(names: pl.Series, threads: pl.Series, has_workers: bool | None) -> bool | None:
    """PyTorch's workers make batches ahead; tf.data and JAX's loaders do so where a stage or a thread is named so."""
    if has_workers is not None:
        return has_workers
    if names.str.contains(_PREFETCHES).any() or threads.str.contains(r"(?i)prefetch").any():
        return True
    return False if names.str.contains(r"^Iterator::").any() else None


def _slow_in_workers(watched: list[dict[str, Any]]) -> tuple[Place, float] | None:
    """The function of the workers with most self time, and its share."""
    stages = [each for worker in watched for each in worker.get("stages") or [] if isinstance(each, dict)]
    rows = [(str(each.get("name")), _whole(each.get("self_ns")) or 0) for each in stages]
    return _slowest(pl.DataFrame(rows, schema={"name": pl.String, "ns": pl.Int64}, orient="row"))


def _slow_in_loader(trace: Trace) -> tuple[Place, float] | None:
    """The same of the loader in the loop's own process: each function with the built-ins that it calls."""
    events = trace.events
    is_input = (events["role"] == "input").fill_null(False)
    python = is_named(events, PLACE) & (events["kind"] == "python")
    if not is_input.any() or not python.any():
        return None
    inside = at_or_inside(events, is_input)
    others = is_named(events, STANDARD_FRAME) | is_named(events, _LOADER_FRAME)
    placed = python & ~others & inside
    frame = pl.select(pl.when(placed).then(events["id"]).otherwise(ancestors(events, placed))).to_series()
    rows = pl.DataFrame({"frame": frame, "ns": self_time(events)}).filter(inside & frame.is_not_null())
    named = rows.select("ns", name=events["name"].gather(rows["frame"]).cast(pl.String))
    return _slowest(named)


def _slowest(rows: pl.DataFrame) -> tuple[Place, float] | None:
    """The place of the name with most time, and its share."""
    summed = (
        rows.group_by("name")
        .agg(pl.col("ns").sum())
        .filter(pl.col("ns") > 0)
        .sort(["ns", "name"], descending=[True, False])
    )
    place = place_of(summed["name"][0]) if len(summed) else None
    return None if place is None else (place, int(summed["ns"][0]) / int(summed["ns"].sum()))


def _dict(value: object) -> dict[str, Any]:
    """Sidecars come from elsewhere: anything but an object counts as an empty one."""
    return value if isinstance(value, dict) else {}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
