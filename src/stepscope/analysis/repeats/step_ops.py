"""The ops that Python calls in a step, without the backward pass and the optimizer."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property

import polars as pl

from stepscope.analysis.repeats.kinds import may_hold_integers
from stepscope.analysis.repeats.op_call import Op, OpCall
from stepscope.analysis.repeats.results import result_sizes
from stepscope.lazy import dataclass
from stepscope.trace.lookup import is_named, rows_by_event
from stepscope.trace.scopes import ancestors, at_or_inside
from stepscope.trace.trace import Trace

_LEFT_OUT = r"^autograd::engine::evaluate_function|^Optimizer\.(step|zero_grad)#"
_OPTIMIZER = r"^Optimizer\.step#"
MODULE = r"^nn\.Module: "
_TEXTS = ("name", "shapes", "dtypes", "inputs")


@dataclass(frozen=True)
class StepOps:
    """Of one step. `learned`: the ops whose gradient is computed; `arrivals`: those that copy from the host.

    `updates`: when an optimizer stepped.
    """

    calls: list[OpCall]
    learned: frozenset[int]
    arrivals: frozenset[int]
    updates: list[int]

    @cached_property
    def _starts(self) -> list[int]:
        return [call.start_ns for call in self.calls]

    def between(self, start_ns: int, end_ns: int) -> list[OpCall]:
        """Those that begin in this time."""
        return self.calls[bisect_left(self._starts, start_ns) : bisect_left(self._starts, end_ns)]

    @cached_property
    def last_learned_ns(self) -> int | None:
        """When the last op began whose gradient is computed."""
        return max((call.start_ns for call in self.calls if call.event in self.learned), default=None)

    def is_updated(self, start_ns: int, end_ns: int) -> bool:
        """Whether an optimizer changes weights in this time."""
        return any(start_ns <= moment < end_ns for moment in self.updates)


def step_ops(trace: Trace, steps: list[int]) -> dict[int, StepOps]:
    """Of these steps."""
    events = trace.events
    is_op = (events["kind"] == "op").fill_null(False)
    mine = is_op & events["step"].is_in(steps).fill_null(False) & ancestors(events, is_op).is_null()
    mine = mine & ~at_or_inside(events, is_named(events, _LEFT_OUT))
    found = events.filter(mine).select("id", "track", "start_ns", "step", "name")
    row = rows_by_event(trace.ops["event"], len(events)).gather(found["id"])
    shapes, dtypes, inputs = (trace.ops[name].gather(row) for name in ("shapes", "dtypes", "concrete_inputs"))
    home = ancestors(events, is_named(events, MODULE)).gather(found["id"])
    found = found.with_columns(home=home, shapes=shapes, dtypes=dtypes, inputs=inputs)
    found = found.with_columns(pl.col(_TEXTS).cast(pl.String)).sort("start_ns")
    learned, arrivals = (
        _called_by_python(trace, is_op, chosen) for chosen in (_with_gradient(trace), _sending(trace))
    )
    updates = events.filter(is_named(events, _OPTIMIZER)).select("step", "start_ns")
    known: dict[tuple[str, str | None, str | None, str | None], tuple[Op, frozenset[int] | None, bool]] = {}
    by_step = {}
    for step in steps:
        calls = []
        rows = found.filter(pl.col("step") == step).select("id", "track", "start_ns", "home", *_TEXTS)
        for event, track, start_ns, home, *texts in rows.iter_rows():
            key = tuple(texts)
            if key not in known:
                op = Op(*key)
                known[key] = op, result_sizes(op), may_hold_integers(op)
            calls.append(OpCall(event, track, start_ns, home, *known[key]))
        moments = updates.filter(pl.col("step") == step)["start_ns"].to_list()
        by_step[step] = StepOps(calls, learned, arrivals, moments)
    return by_step


def _called_by_python(trace: Trace, is_op: pl.Series, events: pl.Series) -> frozenset[int]:
    """The ops around these events that are in no other."""
    above_all, known = ancestors(trace.events, is_op), set[int]()
    level = events.drop_nulls().unique()
    while len(level):
        above = above_all.gather(level)
        known |= set(level.filter(above.is_null() & is_op.gather(level)).to_list())
        level = above.drop_nulls().unique()
    return frozenset(known)


def _with_gradient(trace: Trace) -> pl.Series:
    found: pl.Series = trace.links.filter(pl.col("why") == "forward-backward")["from"]
    return found


def _sending(trace: Trace) -> pl.Series:
    """The calls that copy from the host to the device."""
    copies = trace.copies.filter(pl.col("direction").cast(pl.String) == "HtoD")["event"]
    launches = trace.links.filter(pl.col("why") == "launch", pl.col("to").is_in(copies.implode()))
    found: pl.Series = launches["from"]
    return found
