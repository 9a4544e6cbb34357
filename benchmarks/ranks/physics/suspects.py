"""Which slow links a recording cannot tell apart: those that make the same transfers slow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.ranks.physics.conditions import Conditions
from benchmarks.ranks.physics.job import Job
from benchmarks.ranks.physics.network import Network
from benchmarks.ranks.physics.program import Call

_SIZE = 1 << 28  # large enough for bandwidth to count, not latency
_SPEED, _SLOWER = 0.2, 1.05
Transfer = tuple[str, tuple[int, ...]]


def suspects(job: Job, broken: Conditions) -> tuple[int, ...]:
    """The ranks of all cards, paths and nodes that would show as these do; none where every like transfer is slow alike."""
    transfers = _transfers(job)
    seen = _slow(job, broken, transfers)
    if not seen or _has_no_measure(seen, transfers):
        return ()
    alike = (ranks for ranks, guess in _guesses(job) if _slow(job, guess, transfers) == seen)
    return tuple(sorted({rank for ranks in alike for rank in ranks}))


def _transfers(job: Job) -> set[Transfer]:
    calls = (action for program in job.programs for action in program if isinstance(action, Call))
    return {(call.operation, call.members) for call in calls if len(call.members) > 1 and call.elements > 1}


def _slow(job: Job, conditions: Conditions, transfers: set[Transfer]) -> frozenset[Transfer]:
    usual, now = Network(job.layout, job.conditions()), Network(job.layout, conditions)
    return frozenset(
        (operation, members)
        for operation, members in transfers
        if now.transfer_ns(operation, members, _SIZE) > _SLOWER * usual.transfer_ns(operation, members, _SIZE)
    )


def _has_no_measure(seen: frozenset[Transfer], transfers: set[Transfer]) -> bool:
    """Whether of no operation between as many ranks some transfers are slow and others are not."""
    slow = {(operation, len(members)) for operation, members in seen}
    return not slow & {(operation, len(members)) for operation, members in transfers - seen}


def _guesses(job: Job) -> Iterator[tuple[tuple[int, ...], Conditions]]:
    layout, usual = job.layout, job.conditions()
    for rank in range(layout.world):
        yield (rank,), replace(usual, nics={rank: _SPEED})
    for node in range(layout.nodes):
        yield layout.of_node(node), replace(usual, nodes={node: _SPEED})
        for other in range(node + 1, layout.nodes):
            both = (*layout.of_node(node), *layout.of_node(other))
            yield both, replace(usual, pairs={(node, other): _SPEED})
