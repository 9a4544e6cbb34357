"""The critical path against the replay of real recordings: what is on it decides the step, what is off it does not.

An event is one kernel, copy or memset, or one stretch of host work with one cause before a launch. The length of a replayed step is max(A, B + d) for the
length d of an event: A without it, B along the longest chain through it. So the replay without the event gives
B + d - A, the slack to the next chain, and halving must save the smaller of that and the half. Those whose half is
smaller are sampled for the rule as it is stated: the step is shorter by as much as was taken off.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.analysis.replay.plan import Plan
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.native.host import replay as native

FIXTURES = Path(__file__).parents[2] / "fixtures"
# The host decides, the device decides, both in turns with waits between, several streams, and JAX.
RECORDINGS = (
    Path(stepscope.__file__).parent / "samples" / "tiny_gpt.pt.trace.json.gz",
    FIXTURES / "diagnosis" / "torch_healthy_bf16.mended.pt.trace.json.gz",
    FIXTURES / "diagnosis" / "torch_item.slow.pt.trace.json.gz",
    FIXTURES / "diagnosis" / "torch_pageable.slow.pt.trace.json.gz",
    FIXTURES / "kineto" / "streams.pt.trace.json.gz",
    FIXTURES / "diagnosis" / "jax_input.slow.xplane.pb.gz",
)
EVENTS, SEED = 100, 16


@dataclass(frozen=True)
class Event:
    """A row of the plan's items or of its host work, and the step that it is part of in the replay."""

    plan: Replayed
    what: int
    row: int
    place: int
    half: int  # of its time, for work of the device with the gap before it

    def saved(self, factor: float) -> int:
        """How much shorter its step is in the replay if it takes `factor` of its time."""
        is_it = pl.int_range(pl.len()) == self.row
        made = self.plan.made
        change = made.with_host if self.what == native.HOST else made.with_device
        return self.plan.lengths[self.place] - change(is_it, factor).lengths()[self.place]


@dataclass(frozen=True)
class Replayed:
    """The plan of a recording as it was recorded."""

    made: Plan

    @cached_property
    def lengths(self) -> list[int]:
        return self.made.lengths()

    @cached_property
    def on_path(self) -> dict[tuple[int, int], int]:
        """The place of its step for each item and what of it on the path."""
        rows = self.made.critical_path().select("item", "what", "place").iter_rows()
        return {(item, what): place for item, what, place in rows}

    def events(self, what: int, is_on: bool) -> Iterator[Event]:
        """All that took time, on or off the path."""
        table, times = (
            (self.made.host, ("ns",)) if what == native.HOST else (self.made.items, ("device_ns", "gap_ns"))
        )
        come, done, ends = self._moments
        at = come if what == native.HOST else done
        for row, (item, length, *more) in enumerate(table.select("item", *times).iter_rows()):
            half = sum(each - int(each * 0.5) for each in (length, *more))
            place = self.on_path.get((item, what))
            if length > 1 and (place is not None) == is_on and at[item] <= ends[-1]:
                yield Event(self, what, row, bisect_left(ends, at[item]) if place is None else place, half)

    @cached_property
    def _moments(self) -> tuple[list[int], list[int], list[int]]:
        """When the host came to each item, when its work was done, when each step ended: the rules of the replay once more."""
        items = self.made.items.join(
            self.made.host.group_by("item").agg(pl.col("ns").sum()),
            on="item",
            how="left",
            maintain_order="left",
        )
        free, now = [0] * self.made.streams, 0
        come: list[int] = []
        done: list[int] = []
        ends: list[int] = []
        columns = items.select(
            pl.col("ns").fill_null(0), "kind", "stream", "device_ns", "gap_ns", "delay_ns", "back", "last"
        )
        for host, kind, stream, device, gap, delay, back, last in columns.iter_rows():
            awaited = free if not back else done[-back:][:1] if back <= len(done) else [0]
            now = (max(now, *awaited) if kind == native.WAIT else now) + host
            if kind == native.WORK and device:
                free[stream] = max(now + delay, free[stream]) + device + gap
            come.append(now)
            done.append(free[stream])
            if last:
                ends.append(max(now, *free))
        return come, done, ends


@pytest.fixture(scope="module")
def replayed() -> list[Replayed]:
    found = []
    for path in RECORDINGS:
        context = RankContext(0, read(Source(str(path))), Options(), alone=True)
        assert context.critical_path.source == "replay", path.name
        found.append(Replayed(context.plan.as_recorded()))
    return found


def some(replayed: list[Replayed], what: int, is_on: bool) -> Iterator[Event]:
    """Random ones, as many of each recording as it has or its turn comes."""
    chance = random.Random(SEED)
    groups = [list(each.events(what, is_on)) for each in replayed]
    for group in groups:
        chance.shuffle(group)
    while any(groups):
        yield from (group.pop() for group in groups if group)


@pytest.mark.parametrize("what", [native.HOST, native.DEVICE], ids=["host", "device"])
def test_halving_what_is_on_the_path_shortens_the_step_by_as_much(
    replayed: list[Replayed], what: int
) -> None:
    counted = tried = 0
    for event in some(replayed, what, is_on=True):
        slack, saved = event.saved(0.0), event.saved(0.5)
        assert slack > 0, event  # another chain of exactly the same length is not among these
        assert saved == min(event.half, slack), event
        tried += 1
        counted += slack >= event.half and saved == event.half
        if counted == EVENTS:
            break
    assert counted == EVENTS
    assert tried <= 1.5 * EVENTS  # most are far from the next path


@pytest.mark.parametrize("what", [native.HOST, native.DEVICE], ids=["host", "device"])
def test_halving_what_is_off_the_path_changes_nothing(replayed: list[Replayed], what: int) -> None:
    sample = [event for event, _ in zip(some(replayed, what, is_on=False), range(EVENTS), strict=False)]
    assert len(sample) == EVENTS
    assert [event for event in sample if event.saved(0.5)] == []


def test_what_is_shown_as_work_of_the_device_is_on_the_replays_path() -> None:
    context = RankContext(0, read(Source(str(RECORDINGS[2]))), Options(), alone=True)
    plan = context.plan.as_recorded()
    chain = plan.critical_path().filter(pl.col("what") == native.DEVICE)
    on_path = set(plan.items["event"].gather(chain["item"]))
    rows = context.critical_path.rows
    assert set(rows.filter(pl.col("kind") == "device")["event"]) == on_path
