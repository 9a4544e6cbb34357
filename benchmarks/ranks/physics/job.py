"""A job: a layout, a model and a schedule that a sensible user would run, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from random import Random

from benchmarks.ranks.physics.conditions import Conditions, usual
from benchmarks.ranks.physics.layout import Layout
from benchmarks.ranks.physics.network import Network
from benchmarks.ranks.physics.program import Action, Call, Kernel, Plan, step_of
from benchmarks.ranks.physics.work import Work

WARM_UP = 1  # steps that are simulated and not recorded, so that a recording begins in the middle of a job
MOST_EVENTS = 3_000  # of a rank
EVENTS_OF_KERNEL, EVENTS_OF_CALL = 3, 4
_LEAST_LAYER_NS = 1_000_000.0
_MICRO_BATCHES_PER_STAGE = 4
_LARGEST_BATCH = 32
_HIDDEN = {
    1: (4096, 6144, 8192),
    2: (4096, 8192),
    4: (8192, 12288),
    8: (8192, 12288, 16384),
}  # by TP: wide enough to divide


@dataclass(frozen=True)
class Job:
    """`host_share` of a kernel's time is what the host needs to launch what it stands for."""

    seed: int
    layout: Layout
    work: Work
    micro_batches: int
    steps: int
    sync: bool
    host_share: float
    noise: float  # of kernels: sigma of a log-normal distribution
    lasting: float  # the same, between devices
    queue: int  # launches that a device takes before the host waits
    sharded: bool = False

    @property
    def simulated(self) -> int:
        """Steps, with those before the recording."""
        return self.steps + WARM_UP

    @cached_property
    def programs(self) -> list[list[Action]]:
        """Of each rank, what it does in a step."""
        return [step_of(self.plan, rank) for rank in range(self.layout.world)]

    @property
    def plan(self) -> Plan:
        """What all ranks agree on."""
        return Plan(self.layout, self.work, self.micro_batches, self.sync, self.sharded)

    def conditions(self) -> Conditions:
        """Nothing is wrong."""
        layout = self.layout
        return usual(layout.world, self.simulated, layout.dp, layout.pp, layout.ep)

    def with_micro_batches(self, count: int) -> Job:
        """The same batch in so many micro-batches; `count` divides theirs."""
        batch = self.work.batch * self.micro_batches // count
        return replace(self, micro_batches=count, work=replace(self.work, batch=batch))


def random_job(seed: int, kind: str, ranks: int) -> Job:
    """A job in which this kind of trouble can happen; the same for the same seed."""
    chance = Random(seed)
    layout = _random_layout(chance, kind, ranks)
    job = Job(
        seed=seed,
        layout=layout,
        work=_random_work(chance, layout),
        micro_batches=_MICRO_BATCHES_PER_STAGE * layout.pp if layout.pp > 1 else chance.choice((4, 8)),
        steps=6,
        sync=chance.random() < 0.7,
        host_share=chance.uniform(0.15, 0.45),
        noise=chance.choice((0.005, 0.01, 0.02)),
        lasting=chance.choice((0.002, 0.005, 0.01)),
        queue=256,
        sharded=layout.ep == 1 and chance.random() < 0.4,
    )
    return _within_budget(job)


def events_per_step(job: Job) -> int:
    """Of the rank that has most."""
    stages = range(job.layout.pp)
    firsts = (job.layout.of_stage(stage)[0] for stage in stages)
    return max(_events(step_of(job.plan, rank)) for rank in firsts)


def _events(program: list[Action]) -> int:
    kernels = sum(isinstance(action, Kernel) for action in program)
    calls = sum(isinstance(action, Call) for action in program)
    return EVENTS_OF_KERNEL * kernels + EVENTS_OF_CALL * calls + 5


def _random_layout(chance: Random, kind: str, ranks: int) -> Layout:
    stages = (2, 4) if kind in ("heavy-stage", "bubble") else (1, 2, 2, 4)
    while True:
        tp, pp = chance.choice((1, 2, 4, 8)), chance.choice(stages)
        dp = ranks // (tp * pp)
        moe = kind == "imbalance" or chance.random() < 0.3
        experts = [ep for ep in (4, 8) if dp % ep == 0] if moe else []
        if dp >= 2 and tp * pp * dp == ranks:
            return Layout(tp, pp, dp, chance.choice(experts) if experts else 1)


def _random_work(chance: Random, layout: Layout) -> Work:
    """A micro-batch is large enough to keep the device busy, and to hide most of the exchange of gradients."""
    work = Work(
        hidden=chance.choice(_HIDDEN[layout.tp]),
        sequence=chance.choice((2048, 4096)),
        batch=1,
        layers=chance.choice((1, 2)),
        tp=layout.tp,
        fine=True,
    )
    members = layout.groups["dp"][0].ranks
    network = Network(layout, usual(layout.world, 1, layout.dp, layout.pp, layout.ep))
    reduce_ns = network.transfer_ns("all_reduce", members, 2 * work.layer_parameters)
    wanted = max(_LEAST_LAYER_NS, reduce_ns)
    while work.layer_ns < wanted and work.batch < _LARGEST_BATCH:
        work = replace(work, batch=2 * work.batch)
    return work


def _within_budget(job: Job) -> Job:
    """As many steps as the budget of events allows, at least four; else with coarser kernels, fewer layers, fewer micro-batches."""
    simpler = (
        job,
        replace(job, work=replace(job.work, fine=False)),
        replace(job, work=replace(job.work, fine=False, layers=1)),
        replace(job, work=replace(job.work, fine=False, layers=1), micro_batches=3 * job.layout.pp),
    )
    for each in simpler:
        steps = min(job.steps, MOST_EVENTS // events_per_step(each))
        if steps >= 4:
            return replace(each, steps=steps)
    return replace(simpler[-1], steps=4)
