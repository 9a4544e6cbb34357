"""Ranks that run the same steps at their own pace and meet in collectives: when each of them does what, by the true clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.ranks.stretched.base import Base, Floats, Ints
from benchmarks.ranks.stretched.case import Case

TRANSFER_NS = 400_000
_PART_OF = {"work": "compute"}
_TAIL = 5  # degrees of freedom of the jitter
_FAR = 20


@dataclass(frozen=True)
class Planned:
    """A collective at a place of each step; a hidden one runs beside the work, which waits for it at the end of the step."""

    place: int
    name: str
    who: str
    hidden: bool = False


LAYOUTS = {
    "hybrid": (
        Planned(0, "all_reduce", "inner"), Planned(1, "broadcast", "world"),
        Planned(2, "all_reduce", "outer"), Planned(2, "all_reduce", "world"),
    ),
    "ddp": (
        Planned(0, "all_reduce", "world", hidden=True), Planned(1, "all_reduce", "world", hidden=True),
        Planned(2, "all_reduce", "world"),
    ),
    "fsdp": (
        Planned(0, "all_gather", "inner"), Planned(1, "reduce_scatter", "inner", hidden=True),
        Planned(1, "send_recv", "inner"), Planned(2, "all_reduce", "outer"), Planned(2, "barrier", "world"),
    ),
    "no world": (
        Planned(0, "all_reduce", "inner"), Planned(1, "all_to_all", "inner"), Planned(2, "all_reduce", "outer"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Meeting:
    """One collective: who takes part, and when each came and left by the true clock."""

    name: str
    step: int
    cut: int
    group: str
    members: Ints
    sequence: int
    arrival: Floats
    end: Floats


@dataclass(frozen=True)
class Simulated:
    """`pace`: by rank and slice, how much longer than recorded; `grown`: by rank and step, how much more work."""

    case: Case
    base: Base
    pace: Floats
    grown: Floats
    meetings: list[Meeting]
    holes: Floats  # by rank and cut: how long work stood still there
    offset: Floats
    drift: Floats
    end_ns: float  # of the last rank


def simulate(case: Case, base: Base) -> Simulated:
    """Run the case."""
    chance = np.random.default_rng((case.seed, 1))
    pace, grown = _paces(case, base, np.random.default_rng((case.seed, 2)))
    lengths = np.diff(base.edges)
    done = np.concatenate([np.zeros((case.ranks, 1)), np.cumsum(pace * lengths, axis=1)], axis=1)
    until_cut = done[:, base.cuts]
    now, free, before = np.zeros(case.ranks), np.zeros(case.ranks), np.zeros(case.ranks)
    holes = np.zeros((case.ranks, len(base.cuts)))
    meetings: list[Meeting] = []
    sequence: dict[str, int] = {}
    for at in range(len(base.cuts)):
        now = now + until_cut[:, at] - before
        before = until_cut[:, at]
        arrived = now.copy()
        place = at % base.cuts_per_step
        for planned in LAYOUTS[case.layout]:
            if planned.place != place:
                continue
            for group, members in _groups(case, planned.who):
                number = sequence[group] = sequence.get(group, 100) + 1
                # One collective after the other on the stream of a rank.
                start = np.maximum(now[members], free[members])
                end = _leave(case, planned.name, start, chance)
                meetings.append(
                    Meeting(planned.name, at // base.cuts_per_step, at, group, members, number, start, end)
                )
                free[members] = end
                if not planned.hidden:
                    now[members] = end
        if place == base.cuts_per_step - 1:
            now = np.maximum(now, free)
        holes[:, at] = now - arrived
    offset = chance.uniform(-case.offset_ns, case.offset_ns, case.ranks)
    drift = chance.uniform(-case.drift_ppm, case.drift_ppm, case.ranks) * 1e-6
    last = float((now + done[:, -1] - before).max())
    return Simulated(case, base, pace, grown, meetings, holes, offset, drift, last)


def _groups(case: Case, who: str) -> list[tuple[str, Ints]]:
    everyone = np.arange(case.ranks)
    if who == "world":
        return [("world", everyone)]
    inner = everyone.reshape(-1, case.group)
    rows = inner if who == "inner" else inner.T
    return [(f"{who} {number}", row) for number, row in enumerate(rows) if len(row) > 1]


def _leave(case: Case, name: str, arrival: Floats, chance: np.random.Generator) -> Floats:
    """When each leaves: nobody before the last has come, but some operations wait only for their root or neighbour."""
    noise = chance.exponential(case.noise_ns, len(arrival))
    noise += _FAR * case.noise_ns * (chance.random(len(arrival)) < case.outliers)
    if name == "broadcast":
        return np.asarray(np.maximum(arrival, arrival[0]) + TRANSFER_NS / 4 + noise)
    if name == "send_recv":
        return np.asarray(np.maximum(arrival, np.roll(arrival, 1)) + TRANSFER_NS / 4 + noise)
    return np.asarray(arrival.max() + TRANSFER_NS + noise)


def _paces(case: Case, base: Base, chance: np.random.Generator) -> tuple[Floats, Floats]:
    """How much longer each slice takes on each rank, and how much more work there was in each step."""
    parts = sorted(set(base.part))
    kind_of_slice = np.array([parts.index(part) for part in base.part])
    spread = _healthy(case, (case.ranks, len(base.steps), len(parts)), chance)
    grown = np.ones((case.ranks, len(base.steps)))
    uneven = chance.lognormal(0.0, case.late_share / 2, grown.shape)
    lateness = chance.uniform(0.8, 1.2, len(base.steps))
    if case.kind == "data-dependent" and case.rank is None:
        grown = uneven
        spread[:, :, parts.index("compute")] *= grown
    if case.rank is not None and case.cause is not None:
        part = _PART_OF.get(case.cause, case.cause)
        for step in case.late_steps:
            extra = case.late_share * lateness[step] * _step_ns(base, step) / _part_ns(base, step, part)
            spread[case.rank, step, parts.index(part)] *= 1 + extra
            if case.cause == "work":
                grown[case.rank, step] = 1 + extra
    return spread[:, base.step, kind_of_slice], grown


def _healthy(case: Case, shape: tuple[int, int, int], chance: np.random.Generator) -> Floats:
    """By rank, step and part: how long it takes if nobody is late."""
    ranks, steps, _ = shape
    usual = np.sqrt((_TAIL - 2) / _TAIL)  # to a spread of 1
    by_step = 1 + case.jitter * usual * chance.standard_t(_TAIL, (ranks, steps, 1))
    by_part = 1 + case.jitter * usual * chance.standard_t(_TAIL, shape)
    common = chance.normal(1.0, case.common, (1, steps, 1))
    lasting = chance.normal(1.0, case.lasting, (ranks, 1, 1))
    late = chance.random((ranks, steps, 1)) < case.hiccups
    once = 1 + late * chance.exponential(case.hiccup, (ranks, steps, 1))
    return np.asarray((by_step.clip(0.5, 2) * by_part.clip(0.5, 2) * common * lasting * once).clip(0.3, 5.0))


def _step_ns(base: Base, step: int) -> float:
    return float(np.diff(base.edges)[base.step == step].sum())


def _part_ns(base: Base, step: int, part: str) -> float:
    chosen = (base.step == step) & (np.array(base.part) == part)
    return float(np.diff(base.edges)[chosen].sum())
