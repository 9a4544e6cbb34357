"""Ten kinds of trouble: where, how much, from when on; and the conditions of the job with it and once it is fixed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from benchmarks.ranks.physics.conditions import Conditions, Pause
from benchmarks.ranks.physics.job import WARM_UP, Job

Scenario = tuple[Job, Conditions]


@dataclass(frozen=True)
class Trouble:
    """What is wrong, the ranks (or nodes, stage, replicas) concerned, since which recorded step; the job with it and without."""

    kind: str
    form: str
    ranks: tuple[int, ...]
    where: str
    size: float  # a factor on time, or a share of the step
    first_step: int
    broken: Scenario
    fixed: Scenario


Draw = Callable[[Random, Job, float], Trouble]


def _simple(
    kind: str,
    form: str,
    ranks: tuple[int, ...],
    where: str,
    size: float,
    job: Job,
    broken: Conditions,
    first_step: int = 0,
) -> Trouble:
    return Trouble(kind, form, ranks, where, size, first_step, (job, broken), (job, job.conditions()))


def _healthy(_chance: Random, job: Job, _step_ns: float) -> Trouble:
    return _simple("healthy", "healthy", (), "", 1.0, job, job.conditions())


def _slow_device(chance: Random, job: Job, _step_ns: float) -> Trouble:
    rank, size = chance.randrange(job.layout.world), chance.uniform(1.15, 1.9)
    broken = job.conditions()
    broken.device[rank] *= size
    return _simple("slow-device", "device", (rank,), f"rank {rank}", size, job, broken)


def _throttling(chance: Random, job: Job, _step_ns: float) -> Trouble:
    """Of a device, or of a node whose cooling fails, from the middle of the recording on."""
    whole, rank = chance.random() < 0.3, chance.randrange(job.layout.world)
    node = job.layout.node(rank)
    ranks = job.layout.of_node(node) if whole else (rank,)
    size, first = chance.uniform(1.2, 1.9), chance.randint(job.steps // 2, job.steps // 2 + 1)
    broken = job.conditions()
    broken.device[list(ranks), WARM_UP + first :] *= size
    where = f"node {node}" if whole else f"rank {rank}"
    return _simple("throttling", "node" if whole else "device", ranks, where, size, job, broken, first)


def _slow_host(chance: Random, job: Job, _step_ns: float) -> Trouble:
    """A rank, or all ranks of a machine, whose host needs longer for a kernel than the device."""
    whole, rank = chance.random() < 0.4, chance.randrange(job.layout.world)
    node = job.layout.node(rank)
    ranks = job.layout.of_node(node) if whole else (rank,)
    size = chance.uniform(1.3, 2.2) / job.host_share
    broken = job.conditions()
    broken.host[list(ranks)] *= size
    where = f"node {node}" if whole else f"rank {rank}"
    return _simple("slow-host", "node" if whole else "rank", ranks, where, size, job, broken)


def _late_input(chance: Random, job: Job, step_ns: float) -> Trouble:
    """The loader of one rank of the first stage is late in every step, or from some step on."""
    rank = chance.choice(job.layout.of_stage(0))
    size, first = chance.uniform(0.15, 0.8), chance.choice((0, 0, 0, 1, 2))
    broken = job.conditions()
    begin = WARM_UP + first if first else 0
    broken.late_input_ns[rank, begin:] = size * step_ns
    return _simple("late-input", "loader", (rank,), f"rank {rank}", size, job, broken, first)


def _slow_link(chance: Random, job: Job, _step_ns: float) -> Trouble:
    """A network card, or the path between two nodes."""
    size = chance.uniform(1.7, 5.0)
    if chance.random() < 0.5:
        rank = chance.randrange(job.layout.world)
        broken = replace(job.conditions(), nics={rank: 1 / size})
        return _simple("slow-link", "card", (rank,), f"card of rank {rank}", size, job, broken)
    first, second = _neighbours(chance, job)
    broken = replace(job.conditions(), pairs={(first, second): 1 / size})
    ranks = (*job.layout.of_node(first), *job.layout.of_node(second))
    return _simple("slow-link", "pair", ranks, f"nodes {first} and {second}", size, job, broken)


def _neighbours(chance: Random, job: Job) -> tuple[int, int]:
    """Two nodes that talk with each other: in a ring of gradients, or from stage to stage."""
    layout, rank = job.layout, chance.randrange(job.layout.world)
    role = chance.choice(("dp", "pp")) if layout.pp > 1 else "dp"
    members = layout.groups[role][rank].ranks
    nodes = list(dict.fromkeys(layout.node(member) for member in members))
    if len(nodes) == 1:
        return _neighbours(chance, job)
    at = chance.randrange(len(nodes) - (role == "pp"))
    first, second = sorted((nodes[at], nodes[(at + 1) % len(nodes)]))
    return first, second


def _slow_node(chance: Random, job: Job, _step_ns: float) -> Trouble:
    node, size = chance.randrange(job.layout.nodes), chance.uniform(1.7, 4.0)
    broken = replace(job.conditions(), nodes={node: 1 / size})
    return _simple("slow-node", "links", job.layout.of_node(node), f"node {node}", size, job, broken)


def _heavy_stage(chance: Random, job: Job, _step_ns: float) -> Trouble:
    """A stage has more to compute; the fix shares it out."""
    stage, size = chance.randrange(job.layout.pp), chance.uniform(1.2, 1.8)
    broken, fixed = job.conditions(), job.conditions()
    broken.stages[stage] = size
    fixed.stages[:] = broken.stages.mean()
    ranks = job.layout.of_stage(stage)
    return Trouble(
        "heavy-stage", "stage", ranks, f"stage {stage}", size, 0, (job, broken), (job, fixed)
    )  # fmt: skip


def _bubble(chance: Random, job: Job, _step_ns: float) -> Trouble:
    """The same batch in too few micro-batches."""
    few = [count for count in range(1, job.layout.pp + 1) if job.micro_batches % count == 0]
    count = chance.choice(few[-2:])
    fewer = job.with_micro_batches(count)
    everyone = tuple(range(job.layout.world))
    return Trouble(
        "bubble", "micro-batches", everyone, f"{count} micro-batches instead of {job.micro_batches}",
        job.micro_batches / count, 0, (fewer, fewer.conditions()), (job, job.conditions()),
    )  # fmt: skip


def _imbalance(chance: Random, job: Job, _step_ns: float) -> Trouble:
    """One expert gets more tokens than others; without experts, replicas get batches of unequal length, other ones in each step."""
    return _hot_expert(chance, job) if job.layout.ep > 1 else _unequal_batches(chance, job)


def _hot_expert(chance: Random, job: Job) -> Trouble:
    layout = job.layout
    stage, expert, size = chance.randrange(layout.pp), chance.randrange(layout.ep), chance.uniform(1.5, 2.5)
    broken = job.conditions()
    broken.experts[stage] = (layout.ep - size) / (layout.ep - 1)
    broken.experts[stage, expert] = size
    ranks = tuple(rank for rank in layout.of_stage(stage) if layout.expert(rank) == expert)
    return _simple("imbalance", "experts", ranks, f"expert {expert} of stage {stage}", size, job, broken)


def _unequal_batches(chance: Random, job: Job) -> Trouble:
    size = chance.uniform(0.15, 0.35)
    broken = job.conditions()
    drawn = np.random.default_rng(chance.randrange(2**31)).lognormal(0, size, broken.tokens.shape)
    broken.tokens[:] = drawn / drawn.mean(axis=0)
    return _simple("imbalance", "tokens", (), "other replicas in each step", size, job, broken)


def _jitter(chance: Random, job: Job, step_ns: float) -> Trouble:
    """Pauses of hosts and devices anywhere, so many a step that most steps have one."""
    often, size = chance.uniform(0.7, 3.0), chance.uniform(0.1, 0.4)
    pauses: dict[tuple[int, int], tuple[Pause, ...]] = {}
    for step in range(job.simulated):
        for _ in range(np.random.default_rng(chance.randrange(2**31)).poisson(often)):
            pause = Pause(chance.random(), chance.random() < 0.5, step_ns * size * chance.uniform(0.5, 1.5))
            key = (chance.randrange(job.layout.world), step)
            pauses[key] = (*pauses.get(key, ()), pause)
    broken = replace(job.conditions(), pauses=pauses)
    return _simple("jitter", "pauses", (), "anywhere", size, job, broken)


DRAWS: dict[str, Draw] = {
    "slow-device": _slow_device,
    "slow-host": _slow_host,
    "slow-link": _slow_link,
    "slow-node": _slow_node,
    "heavy-stage": _heavy_stage,
    "bubble": _bubble,
    "imbalance": _imbalance,
    "late-input": _late_input,
    "jitter": _jitter,
    "throttling": _throttling,
    "healthy": _healthy,
}
