"""What every rank does in a step, in the order of the host: launches, waits for the device, collectives, room for delays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.ranks.discrete.case import Case
from benchmarks.ranks.discrete.source import HostEvent, Source

_TRANSFER_SHARE = 0.25  # of a step, by all collectives together
_LEAST_TRANSFER_US, _MOST_TRANSFER_US = 20.0, 2000.0
_SMALL = 0.05


@dataclass(frozen=True)
class Call:
    """A rank's part in a collective; the device waits at once for a `blocking` one, for others when they are joined."""

    name: str
    group: str
    members: tuple[int, ...]
    transfer: float
    blocking: bool


@dataclass(frozen=True)
class Launch:
    """Of kernels, by this event of the source."""

    event: int


@dataclass(frozen=True)
class Wait:
    """Of the host for the device, until this moment of the source."""

    until: float


@dataclass(frozen=True)
class Post:
    """A collective, for each rank its own."""

    calls: tuple[Call, ...]
    thread: int


@dataclass(frozen=True)
class Join:
    """The device waits for all collectives."""


@dataclass(frozen=True)
class Delay:
    """Where the host may be held up."""

    thread: int


Action = Launch | Wait | Post | Join | Delay
Planned = tuple[float, Action]


def planned(case: Case, source: Source) -> list[Planned]:
    """The actions of a step, in order."""
    actions: list[Planned] = []
    for number, event in enumerate(source.events):
        if event.kernels:
            actions.append((event.start + min(event.dur, 5.0), Launch(number)))
        elif event.waits:
            actions.append((event.start, Wait(event.end)))
    for share, blocking, name, who, size in _collectives(case):
        at, thread = source.near(share)
        actions.append((at, Post(_calls(case, source, name, who, size, blocking), thread)))
    actions.append((source.near(0.93)[0], Join()))
    at, thread = source.near(0.3)
    actions.append((at, Delay(thread)))
    waits = [event for event in source.events if event.waits]
    # A host that waits for the device does nothing else meanwhile.
    moved = [(at if isinstance(what, Wait) else _after(waits, at), what) for at, what in actions]
    return sorted(moved, key=lambda each: each[0])


def _after(waits: Sequence[HostEvent], at: float) -> float:
    return max([at, *(event.end + 0.05 for event in waits if event.start <= at < event.end)])


def _collectives(case: Case) -> list[tuple[float, bool, str, str, float]]:
    """Share of the step, blocking, operation, group, size."""
    places = [(number + 1) / case.calls for number in range(case.calls)]
    if case.layout == "ddp":
        return [(0.35 + 0.5 * place, False, "all_reduce", "world", 1.0) for place in places]
    if case.layout == "blocking":
        return [(0.05 + 0.85 * place, True, "all_reduce", "world", 1.0) for place in places]
    if case.layout == "sharded":
        gathers = [(0.03 + 0.4 * place, True, "all_gather", "world", 0.5) for place in places]
        scatters = [(0.45 + 0.4 * place, False, "reduce_scatter", "world", 0.5) for place in places]
        return [*gathers, *scatters, (0.95, True, "all_reduce", "world", _SMALL)]
    inner = [(0.1 + 0.6 * place, True, "all_reduce", "inner", 0.5) for place in places]
    outer = (0.85, False, "all_reduce", "outer", 1.0)
    if case.layout == "grid":
        return [*inner, outer]
    return [
        (0.05, True, "send_recv", "next stage", 0.3),
        *inner,
        outer,
        (0.96, True, "all_reduce", "world", _SMALL),
    ]


def _calls(case: Case, source: Source, name: str, who: str, size: float, blocking: bool) -> tuple[Call, ...]:
    share = _TRANSFER_SHARE * source.length / max(1, case.calls)
    transfer = size * min(max(share, _LEAST_TRANSFER_US), _MOST_TRANSFER_US)
    groups = (_group(case, who, rank) for rank in range(case.ranks))
    return tuple(Call(name, group, members, transfer, blocking) for group, members in groups)


def _group(case: Case, who: str, rank: int) -> tuple[str, tuple[int, ...]]:
    everyone = range(case.ranks)
    half, inner = case.ranks // 2, case.group
    if who == "inner":
        first = rank // inner * inner
        return f"{1 + rank // inner}", tuple(everyone[first : first + inner])
    if who == "outer":
        # The stages of a pipeline have parameters of their own.
        stage = everyone[rank // half * half :][:half] if case.layout == "stages" else everyone
        return f"{1000 + stage[0] + rank % inner}", tuple(
            each for each in stage if each % inner == rank % inner
        )
    if who == "next stage":
        return f"{5000 + rank % half}", (rank % half, rank % half + half)
    return "0", tuple(everyone)
