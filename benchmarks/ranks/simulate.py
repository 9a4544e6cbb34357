"""Ranks that run the same steps at their own pace and meet in collectives: when each of them does what, by the true clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.ranks.base import Base, Floats, Ints
from benchmarks.ranks.case import Case

TRANSFER_NS = 400_000
# What happens at the places of a step, one after the other: operation, and who takes part.
MEETINGS = (("all_reduce", "inner"), ("broadcast", "world"), ("all_reduce", "outer"), ("all_reduce", "world"))
_PART_OF = {"work": "compute"}


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
    holes: Floats  # by rank and cut: how long the collectives there took
    offset: Floats
    drift: Floats


def simulate(case: Case, base: Base) -> Simulated:
    """Run the case."""
    chance = np.random.default_rng((case.seed, 1))
    pace, grown = _paces(case, base, chance)
    lengths = np.diff(base.edges)
    done = np.concatenate([np.zeros((case.ranks, 1)), np.cumsum(pace * lengths, axis=1)], axis=1)
    until_cut = done[:, base.cuts]
    now = np.zeros(case.ranks)
    before = np.zeros(case.ranks)
    holes = np.zeros((case.ranks, len(base.cuts)))
    meetings: list[Meeting] = []
    sequence: dict[str, int] = {}
    for at in range(len(base.cuts)):
        now = now + until_cut[:, at] - before
        before = until_cut[:, at]
        arrived = now.copy()
        for name, who in _at_place(at % base.cuts_per_step, base.cuts_per_step):
            for group, members in _groups(case, who):
                number = sequence[group] = sequence.get(group, 100) + 1
                end = _leave(case, name, now[members], chance)
                step = at // base.cuts_per_step
                meetings.append(Meeting(name, step, at, group, members, number, now[members], end))
                now[members] = end
        holes[:, at] = now - arrived
    offset = chance.uniform(-case.offset_ns, case.offset_ns, case.ranks)
    drift = chance.uniform(-case.drift_ppm, case.drift_ppm, case.ranks) * 1e-6
    return Simulated(case, base, pace, grown, meetings, holes, offset, drift)


def _at_place(place: int, places: int) -> tuple[tuple[str, str], ...]:
    """The collectives at this place of a step: the last takes what is left."""
    return MEETINGS[place:] if place == places - 1 else MEETINGS[place : place + 1]


def _groups(case: Case, who: str) -> list[tuple[str, Ints]]:
    everyone = np.arange(case.ranks)
    if who == "world":
        return [("world", everyone)]
    inner = everyone.reshape(-1, case.group)
    rows = inner if who == "inner" else inner.T
    return [(f"{who} {number}", row) for number, row in enumerate(rows) if len(row) > 1]


def _leave(case: Case, name: str, arrival: Floats, chance: np.random.Generator) -> Floats:
    """When each leaves: nobody before the last has come, but of a broadcast only its root need have come."""
    noise = chance.exponential(case.noise_ns, len(arrival))
    if name == "broadcast":
        return np.asarray(np.maximum(arrival, arrival[0]) + TRANSFER_NS / 4 + noise)
    return np.asarray(arrival.max() + TRANSFER_NS + noise)


def _paces(case: Case, base: Base, chance: np.random.Generator) -> tuple[Floats, Floats]:
    """How much longer each slice takes on each rank, and how much more work there was in each step."""
    parts = sorted(set(base.part))
    kind_of_slice = np.array([parts.index(part) for part in base.part])
    spread = chance.normal(1.0, case.jitter, (case.ranks, len(base.steps), len(parts))).clip(0.5, 2.0)
    grown = np.ones((case.ranks, len(base.steps)))
    if case.kind == "data-dependent":
        grown = chance.lognormal(0.0, case.late_share / 1.5, grown.shape)
        spread[:, :, parts.index("compute")] *= grown
    if case.rank is not None and case.cause is not None:
        part = _PART_OF.get(case.cause, case.cause)
        for step in case.late_steps:
            extra = (
                case.late_share * chance.uniform(0.8, 1.2) * _step_ns(base, step) / _part_ns(base, step, part)
            )
            spread[case.rank, step, parts.index(part)] *= 1 + extra
            if case.cause == "work":
                grown[case.rank, step] = 1 + extra
    return spread[:, base.step, kind_of_slice], grown


def _step_ns(base: Base, step: int) -> float:
    return float(np.diff(base.edges)[base.step == step].sum())


def _part_ns(base: Base, step: int, part: str) -> float:
    chosen = (base.step == step) & (np.array(base.part) == part)
    return float(np.diff(base.edges)[chosen].sum())
