"""The ops that Python calls in a step, without the backward pass and the optimizer."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import cached_property

import polars as pl

from stepscope.analysis.repeats.kinds import may_hold_integers
from stepscope.analysis.repeats.op_call import Op, OpCall
from stepscope.analysis.repeats.op_index import OpIndex
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

    `updates`: when an optimizer stepped, in order.
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
        return self.calls[self.place_at(start_ns) : self.place_at(end_ns)]

    def place_at(self, moment_ns: int) -> int:
        """The place of the first op that begins at this moment or later."""
        return bisect_left(self._starts, moment_ns)

    @cached_property
    def index(self) -> OpIndex:
        """Which of them make, cut or write to arrays of a size."""
        return OpIndex(self.calls, self.arrivals)

    @cached_property
    def last_learned_ns(self) -> int | None:
        """When the last op began whose gradient is computed."""
        return max((call.start_ns for call in self.calls if call.event in self.learned), default=None)

    def is_updated(self, start_ns: int, end_ns: int) -> bool:
        """Whether an optimizer changes weights in this time."""
        return bisect_left(self.updates, start_ns) < bisect_left(self.updates, end_ns)


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
    calls: dict[int, list[OpCall]] = {step: [] for step in steps}
    for step, event, track, start_ns, home, *texts in found.select(
        "step", "id", "track", "start_ns", "home", *_TEXTS
    ).iter_rows():
        key = tuple(texts)
        if key not in known:
            op = Op(*key)
            known[key] = op, result_sizes(op), may_hold_integers(op)
        calls[step].append(OpCall(event, track, start_ns, home, *known[key]))
    moments: dict[int | None, list[int]] = defaultdict(list)
    for step, moment in updates.sort("start_ns").iter_rows():
        moments[step].append(moment)
    return {step: StepOps(calls[step], learned, arrivals, moments[step]) for step in steps}


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
