"""What a pipeline of tf.data does: its stages, how much of its work is the same in every epoch, and how busy it keeps the cores.

Elements go through runs of the functions that `map()` was given. A run in which nothing is random, and which calls no Python,
makes the same of the same record whenever that comes; in a random one, reading and decoding still do.
"""

from __future__ import annotations

from array import array

import polars as pl

from stepscope.analysis.host.names import INPUT_THREAD
from stepscope.analysis.steps.find import Steps
from stepscope.lazy import dataclass
from stepscope.native.spans.sets import intersect, subtract, total, union
from stepscope.registers.policy.host_code import ELEMENTS_PER_STEP
from stepscope.trace.columns import buffer
from stepscope.trace.judged_texts import contains
from stepscope.trace.lookup import are_named, is_named, names_of
from stepscope.trace.scopes import ancestors, at_or_inside
from stepscope.trace.trace import Trace

_STAGE = r"^Iterator::"
_RUN = r"^(FunctionRun|ExecutorState::Process)$"
_RANDOM = r"Random|Multinomial|Poisson|SampleDistorted"
_PYTHON = r"^(Eager)?PyFunc"
_DECODES = r"^(ReadFile|Parse\w*|Decode[A-Z][a-z0-9]+(V\d)?|DecodeCSV|StringToNumber|StringSplit\w*)$"
_CACHES = r"Cache"
_REPEATS = r"Repeat"
_IN_MEMORY = r"::(TensorSlice|Tensor|Range)$"  # the list of records is in the program, and so has an end
_OPENS = r"::(\w*(Record|Text|SqlIterator)\w*|FlatMap|\w*Interleave\w*)$"  # each item of the list may be a file of any length
_GENERATES = r"::Generator$"


@dataclass(frozen=True)
class TfData:
    """`caches`: later stages read what was made once. `repeats`: a list of records that it holds begins again and again.

    `same_share`: how much of its work is the same in every epoch. `slowest`: the op with most of the work, and its share.
    `python_calls`: of each step, `python_call_ns` for each. `yields_samples`: a Python generator makes the elements, many a step.
    `busy`: the threads that it kept busy on average while the step did not wait for it.
    """

    caches: bool
    repeats: bool
    same_share: float
    slowest: tuple[str, float] | None
    python_calls: float
    python_call_ns: float
    yields_samples: bool
    busy: float


def find_tf_data(trace: Trace, steps: Steps) -> TfData | None:
    """The pipeline that the steps take their batches from; None without one, or where no op of it was recorded."""
    events = trace.events
    stages = names_of(events).cast(pl.String)
    stages = stages.filter(stages.str.contains(_STAGE))
    if stages.is_empty() or steps.host.is_empty():
        return None
    work = _work(trace, steps)
    every = int(work["dur_ns"].sum())
    if not every:
        return None
    python = work.filter("python")
    calls = len(python) / len(steps.host)
    summed = work.group_by("name").agg(pl.col("dur_ns").sum()).cast({"name": pl.String})
    name, ns = summed.sort(["dur_ns", "name"], descending=[True, False]).row(0)
    return TfData(
        caches=bool(stages.str.contains(_CACHES).any()),
        repeats=_repeats(stages),
        same_share=int(work.filter("same")["dur_ns"].sum()) / every,
        slowest=(name, ns / every),
        python_calls=calls,
        python_call_ns=int(python["dur_ns"].sum()) / max(1, len(python)),
        yields_samples=bool(stages.str.contains(_GENERATES).any()) and calls >= ELEMENTS_PER_STEP,
        busy=_busy(trace, steps, work),
    )


def _repeats(stages: pl.Series) -> bool:
    again, held, opened = (bool(stages.str.contains(each).any()) for each in (_REPEATS, _IN_MEMORY, _OPENS))
    return again and held and not opened


def _work(trace: Trace, steps: Steps) -> pl.DataFrame:
    """track, name, start_ns, dur_ns of its ops between the first and the last step; whether they are Python, or the same in every epoch."""
    events = trace.events
    threads = trace.tracks.filter(pl.col("thread").str.contains(INPUT_THREAD).fill_null(False))["id"]
    of_input = at_or_inside(events, (events["role"] == "input").fill_null(False))
    mine = (events["kind"] == "op") & (events["track"].is_in(threads.implode()) | of_input)
    mine &= ~is_named(events, r"^IteratorGetNext") & (events["dur_ns"] > 0)
    mine &= events["start_ns"].is_between(steps.host["start_ns"].min(), steps.host["end_ns"].max())
    run = _runs(trace).filter(mine)
    found = events.select("track", "name", "start_ns", "dur_ns").filter(mine)
    names = found["name"]
    found = found.with_columns(
        run=run,
        python=are_named(names, lambda texts: contains(texts, _PYTHON)),
        random=are_named(names, lambda texts: contains(texts, _RANDOM)),
        decodes=are_named(names, lambda texts: contains(texts, _DECODES)),
    )
    calls_python = pl.col("python").any().over("run")
    is_random = pl.col("random").any().over("run")
    return found.with_columns(same=~calls_python & (~is_random | pl.col("decodes")))


def _runs(trace: Trace) -> pl.Series:
    """For each event the run of a function that it belongs to, which may go on on other threads; itself where that is not known."""
    events, links = trace.events, trace.tables["links"]
    around = ancestors(events, is_named(events, _RUN))
    begun = links.select(piece="to", begin="from").unique("piece", keep="first")
    found = pl.DataFrame({"id": events["id"], "piece": around}).join(
        begun, on="piece", how="left", maintain_order="left"
    )
    return found.select(pl.coalesce("begin", "piece", "id")).to_series()


def _busy(trace: Trace, steps: Steps, work: pl.DataFrame) -> float:
    """Time of its threads over that of the steps, where these do not wait for it."""
    events = trace.events
    waits = events.filter((events["role"] == "input").fill_null(False)).filter(
        pl.col("track").is_in(steps.host["track"].unique().implode())
    )
    host = steps.host.sort("start_ns")
    computing = subtract(*union(buffer(host["start_ns"]), buffer(host["end_ns"])), *_spans(waits))
    length = total(*computing)
    threads = work.partition_by("track")
    return sum(total(*intersect(*_spans(each), *computing)) for each in threads) / length if length else 0.0


def _spans(rows: pl.DataFrame) -> tuple[array[int], array[int]]:
    ordered = rows.sort("start_ns")
    return union(buffer(ordered["start_ns"]), buffer(ordered["start_ns"] + ordered["dur_ns"]))
