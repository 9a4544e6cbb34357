"""When TensorFlow makes a dataset and its iterator inside the steps, as `next(iter(dataset))`, `fit()` and `predict()` do.

One start is the ops that describe the dataset, the tracing of its functions, `MakeIterator`, and the slow deletion of the
iterator before. A run of a traced function is the model's, and ends what belongs to a start.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.eager_calls import CALL, FUNCTION_CALL, TRACING
from stepscope.lazy import dataclass
from stepscope.registers.calibration.launches import LONG_HOST_NS
from stepscope.trace.lookup import is_named
from stepscope.trace.trace import Trace

_MAKES = rf"{CALL}MakeIterator$"
_DESCRIBES = rf"{CALL}(\w*Dataset(V\d+)?|(Anonymous)?(MultiDevice)?Iterator(V\d+|FromStringHandle)?|MakeIterator|Delete\w*Iterator)$"
_DELETES = r"^TFE_DeleteTensorHandle$"


@dataclass(frozen=True)
class PipelineStarts:
    """`spans`: start_ns, end_ns of the starts, in order, none overlapping. `runs`: the same of functions that were run."""

    spans: pl.DataFrame
    runs: pl.DataFrame
    steps: list[int]  # in which an iterator is made
    count: int


def find_pipeline_starts(trace: Trace) -> PipelineStarts | None:
    """The starts on the thread that makes iterators, inside steps; None if there are none."""
    events = trace.events
    made = is_named(events, _MAKES) & events["step"].is_not_null()
    if not made.any():
        return None
    track = events["track"].filter(made)[0]
    rows = events.select(
        "step",
        "start_ns",
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        makes=made,
        describes=is_named(events, _DESCRIBES),
        traces=is_named(events, TRACING),
        deletes=is_named(events, _DELETES) & (events["dur_ns"] >= LONG_HOST_NS),
        runs=is_named(events, FUNCTION_CALL),
    ).filter((events["track"] == track) & events["step"].is_not_null())
    rows = rows.filter(pl.any_horizontal("describes", "traces", "deletes", "runs")).sort("start_ns")
    runs = rows.filter("runs").select("start_ns", "end_ns")
    return PipelineStarts(
        _spans(rows), runs, sorted(rows.filter("makes")["step"].unique()), int(rows["makes"].sum())
    )


def _spans(rows: pl.DataFrame) -> pl.DataFrame:
    """One for each interval between two runs of functions in which an iterator is made, and for each slow deletion elsewhere."""
    interval = ["step", "interval"]
    rows = rows.with_columns(interval=pl.col("runs").cum_sum()).filter(~pl.col("runs"))
    last = pl.col("start_ns").filter("makes").max().over(interval)
    # What is traced after the last iterator was made is a function of the model.
    mine = ~pl.col("traces") | (pl.col("start_ns") < last)
    whole = rows.filter(last.is_not_null() & mine).group_by(interval)
    alone = rows.filter(last.is_null() & pl.col("deletes")).select("start_ns", "end_ns")
    spans = whole.agg(pl.col("start_ns").min(), pl.col("end_ns").max()).select("start_ns", "end_ns")
    return pl.concat([spans, alone]).sort("start_ns")
