"""Calls of a module or a function whose result an earlier call of the same step has returned already.

They call the same ops with equal shapes and numbers, draw nothing at random, and what they are given was there before the earlier call.
A profile does not identify arrays: nothing that ran in between may have made arrays of that size, and at most one such array
may have come up in the step, or else the calls must be many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import polars as pl

from stepscope.analysis.host.functions import place_of
from stepscope.analysis.repeats.closed import Needs, has_unknown_numbers, is_view, needs_of
from stepscope.analysis.repeats.kinds import CREATES
from stepscope.analysis.repeats.op_call import Op, OpCall
from stepscope.analysis.repeats.op_index import Makers, count_new
from stepscope.analysis.repeats.results import WEIGHTS
from stepscope.analysis.repeats.step_ops import StepOps, step_ops
from stepscope.lazy import dataclass
from stepscope.registers.policy.repeated_work import (
    OPS_OF_A_METRIC,
    REPEATED_CALLS_LEAST,
    REPEATED_FUNCTIONS_MOST,
    REPEATED_WORK_LEAST,
    WITH_GRADIENTS,
)
from stepscope.trace.lookup import names_of
from stepscope.trace.scopes import ancestors, sums_below
from stepscope.trace.trace import Trace

MODULE = "nn.Module: "
_OF_LIBRARY = r"(^|[/\\])(torch|torchvision|site-packages|dist-packages|python3\.\d+)[/\\]|^<"
_MODES = frozenset(("batch_norm", "dropout", "scaled_dot_product_attention", "instance_norm"))
_COMPARES = "eq"
_OF_LISTS = ("_foreach_", "_fused_")  # PyTorch leaves out the sizes of long lists


@dataclass(frozen=True)
class Frame:
    """A call of a module or function: its event, its time, the module that it runs in or is, and the call of the module around it."""

    event: int
    track: int
    start_ns: int
    end_ns: int
    module: str | None
    around: int | None


@dataclass(frozen=True)
class Repeats:
    """`needless`: events of the calls that are not needed, of all steps; `times`: calls in a step; `unused`: no gradient goes through them,
    though it goes through an earlier one; `learned`: gradients go through both; `unsure`: they compute with numbers whose values the profile
    does not show."""

    name: str
    needless: list[int]
    times: float
    unused: bool
    learned: bool
    unsure: bool


def find_repeats(trace: Trace, steps: list[int], device_ns: pl.Series) -> Repeats | None:
    """Of the module or function in which they take the device the longest; `device_ns` is what each event launches itself."""
    if not steps:
        return None
    candidates = _candidates(trace, steps, sums_below(trace.events, device_ns))
    if candidates.is_empty():
        return None
    by_step = step_ops(trace, steps)
    middle = steps[len(steps) // 2]
    best: tuple[int, str] | None = None
    for (name,), rows in candidates.filter(pl.col("step") == middle).group_by("name", maintain_order=True):
        ns = dict(zip(rows["id"], rows["ns"], strict=True))
        found = _needless(_frames(rows), by_step[middle], str(name).startswith(MODULE))
        saved = sum(ns[event] for event in found.events)
        if saved and (best is None or saved > best[0]):
            best = saved, str(name)
    return None if best is None else _of_all_steps(candidates, by_step, best[1])


def _of_all_steps(candidates: pl.DataFrame, by_step: dict[int, StepOps], name: str) -> Repeats:
    mine = candidates.filter(pl.col("name") == name)
    found = [
        _needless(_frames(rows), by_step[int(step)], name.startswith(MODULE))
        for (step,), rows in mine.group_by("step", maintain_order=True)
    ]
    return Repeats(
        name,
        [event for each in found for event in each.events],
        len(mine) / max(1, mine["step"].n_unique()),
        any(each.unused for each in found),
        any(each.learned for each in found),
        any(each.unsure for each in found),
    )


def _candidates(trace: Trace, steps: list[int], below_ns: pl.Series) -> pl.DataFrame:
    """id, track, step, name, start_ns, end_ns, ns, module of calls of modules and of the user's functions that steps repeat, the longest names first."""
    events = trace.events
    known = names_of(events)
    text = known.cast(pl.String)
    is_module = text.str.starts_with(MODULE)
    is_mine = ~text.str.contains(_OF_LIBRARY) & pl.Series(
        [place_of(one) is not None for one in text], dtype=pl.Boolean
    )
    wanted = known.filter(is_module | is_mine)
    calls = events.filter(
        (pl.col("kind") == "python") & pl.col("name").is_in(wanted.implode()) & pl.col("step").is_in(steps)
    ).select("id", "track", "step", "name", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    calls = calls.with_columns(ns=below_ns.gather(calls["id"])).filter(pl.col("ns") > 0)
    more = (pl.col("ns").sum() - pl.col("ns").max()).over("step", "name")
    total = int(below_ns.filter((events["depth"] == 0) & events["step"].is_in(steps)).sum()) / len(steps)
    calls = calls.filter(
        pl.len().over("step", "name") > 1, WITH_GRADIENTS * more >= REPEATED_WORK_LEAST * total
    )
    ranked = (
        calls.group_by("name")
        .agg(pl.col("ns").sum())
        .sort("ns", descending=True)
        .head(REPEATED_FUNCTIONS_MOST)
    )
    calls = calls.join(ranked.select("name"), on="name", how="semi")
    modules = events["name"].is_in(known.filter(is_module).implode()) & (events["kind"] == "python")
    around = ancestors(events, modules).gather(calls["id"])
    own = pl.select(pl.when(modules.gather(calls["id"])).then(calls["id"]).otherwise(around)).to_series()
    module = events["name"].gather(own).cast(pl.String)
    return calls.with_columns(pl.col("name").cast(pl.String), module=module, around=around).sort("start_ns")


def _frames(rows: pl.DataFrame) -> list[Frame]:
    """The calls, in their order; none that is inside another."""
    found: list[Frame] = []
    for row in (
        rows.sort("start_ns").select("id", "track", "start_ns", "end_ns", "module", "around").iter_rows()
    ):
        if not found or row[2] >= found[-1].end_ns:
            found.append(Frame(*row))
    return found


@dataclass(frozen=True)
class _Needless:
    """Of one step, as of all in `Repeats`."""

    events: list[int]
    unused: bool
    learned: bool
    unsure: bool


def _needless(frames: Sequence[Frame], ops: StepOps, is_module: bool) -> _Needless:
    """The calls of one step whose result another has returned; and whether they are passes without a gradient beside one that has it."""
    inside = {
        frame.event: [call for call in ops.between(frame.start_ns, frame.end_ns) if call.track == frame.track]
        for frame in frames
    }
    own = is_module or (len({frame.module for frame in frames}) == 1 and frames[0].module is not None)
    by_work: dict[tuple[object, ...], list[Frame]] = {}
    for frame in frames:
        work = tuple(_told_of(call.op) for call in inside[frame.event])
        by_work.setdefault(work, []).append(frame)
    needless: list[int] = []
    unused = taught = unsure = False
    for alike in by_work.values():
        if len(alike) < 2 or all(call.op.base in CREATES or is_view(call) for call in inside[alike[0].event]):
            continue
        for run in _runs(alike, inside, ops, own):
            learned = [any(call.event in ops.learned for call in inside[frame.event]) for frame in run]
            spared = [frame.event for frame, has in zip(run, learned, strict=True) if not has]
            mine = spared if any(learned) else spared[1:]
            if all(learned):
                mine = [frame.event for frame in run[1:]]
            needless += mine
            taught = taught or (all(learned) and bool(mine))
            unused = unused or (any(learned) and not all(learned))
            unsure = unsure or (bool(mine) and _is_unsure(run[0], inside, is_module))
    return _Needless(needless, unused, taught, unsure)


def _is_unsure(frame: Frame, inside: dict[int, list[OpCall]], is_module: bool) -> bool:
    return has_unknown_numbers(inside[frame.event], frame.event if is_module else frame.around)


def _told_of(op: Op) -> tuple[str | None, ...]:
    """What has to be equal; a layer that also has another mode may be in either."""
    return (op.base, op.shapes) if op.base in _MODES else (op.name, op.shapes, op.dtypes, op.inputs)


def _runs(
    alike: Sequence[Frame], inside: dict[int, list[OpCall]], ops: StepOps, own: bool
) -> Iterator[list[Frame]]:
    """The calls, in groups that return the same."""
    run = [alike[0]]
    pairs = _Pairs(inside, ops, own, len(alike) >= REPEATED_CALLS_LEAST)
    for before, after in pairwise(alike):
        if not pairs.return_the_same(before, after):
            yield run
            run = []
        run.append(after)
    yield run


class _Pairs:
    """Calls that are alike, looked at one after the other. `own`: their weights are their own; `many`: it is many calls."""

    def __init__(self, inside: dict[int, list[OpCall]], ops: StepOps, own: bool, many: bool) -> None:
        self._inside, self._ops, self._own, self._many = inside, ops, own, many
        # Of the calls themselves, as far as they were looked at.
        self._makers, self._computing = Makers(), Makers()
        self._looked_at = self._arrays = 0

    @cached_property
    def _own_ops(self) -> set[int]:
        return {call.event for calls in self._inside.values() for call in calls}

    def return_the_same(self, before: Frame, after: Frame) -> bool:
        """Whether this call returns what the one before it has returned."""
        self._add(before)
        ops, index = self._ops, self._ops.index
        begin, end = ops.place_at(before.end_ns), ops.place_at(after.start_ns)
        last = ops.last_learned_ns
        has_learned, learns = self._is_learned(before), self._is_learned(after)
        measures = has_learned and not learns and last is not None and last < after.start_ns
        is_updated = ops.is_updated(before.end_ns, after.start_ns)
        needs = needs_of(self._inside[after.event], self._own, or_random=measures)
        if needs is None:
            return False
        if measures:
            if is_updated and not _is_compared(ops, after):
                return False
            made_again = index.computing.may_make(needs, begin, end)
            return not made_again and index.computing.sources(needs, end, self._computing) <= 1
        if is_updated or needs.may_be_own or index.may_change(needs, begin, end):
            return False
        if has_learned and learns and not self._is_trained_twice(needs, before, after):
            return False
        if index.is_overwritten(needs, begin):
            return False
        if not self._own and (needs.widest > 1 or has_learned or learns):
            return False
        if not needs.sizes:
            return True
        if self._own and index.may_be_state(needs, begin, end, after.around):
            return False
        count = index.makers.sources(needs, end, self._makers)
        if count or not self._many:
            return count == 1
        # Parts of a batch that was there before look the same, but a loop over them keeps no state.
        return not self._own or index.keeps_state(begin, end, after.around)

    def _is_trained_twice(self, needs: Needs, before: Frame, after: Frame) -> bool:
        """Whether calls that both have gradients are given the one array of that size, and have the same weights.

        Two views of a batch and Siamese inputs are two arrays. The weights may be changed by more than an optimizer's step.
        """
        ops = self._ops
        begin, end = ops.place_at(before.end_ns), ops.place_at(after.start_ns)
        if not self._own or (self._many and not needs.results.isdisjoint(needs.inner)):
            return False  # many may carry a state
        weights = {
            each.shape
            for call in self._inside[after.event]
            for each in call.op.tensors
            if each.place in WEIGHTS.get(call.op.base, ()) and len(each.shape) > 1
        }
        for call in ops.calls[begin:end]:
            if call.op.base.startswith(_OF_LISTS) or any(each.shape in weights for each in call.op.tensors):
                return False
        return self._count_arrays(needs, end) == 1

    def _count_arrays(self, needs: Needs, end: int) -> int:
        """How many arrays the calls, which are all given the same sizes, may be given up to this place; each op is looked at once."""
        for call in self._ops.calls[self._looked_at : end]:
            if call.event not in self._own_ops and not needs.sizes.isdisjoint(
                call.sizes or call.op.count_by_size
            ):
                self._arrays += count_new(call, self._ops.arrivals)
        self._looked_at = max(end, self._looked_at)
        return self._arrays

    def _add(self, frame: Frame) -> None:
        """The ops of this call, which do not make what the next ones are given."""
        place = self._ops.place_at(frame.start_ns)
        for call in self._inside[frame.event]:
            self._makers.add(place, call, self._ops.arrivals)
            if not is_view(call):
                self._computing.add(place, call, self._ops.arrivals)

    def _is_learned(self, frame: Frame) -> bool:
        return any(call.event in self._ops.learned for call in self._inside[frame.event])


def _is_compared(ops: StepOps, frame: Frame) -> bool:
    """Whether what a pass returns is compared with labels, as for an accuracy."""
    place = ops.place_at(frame.end_ns)
    return any(call.op.base == _COMPARES for call in ops.calls[place : place + OPS_OF_A_METRIC])
