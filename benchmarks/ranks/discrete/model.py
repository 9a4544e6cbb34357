"""The model `discrete`: a random case of it as a job, in which the late rank costs about what the case asks for."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import stepscope
from benchmarks.ranks.case import make_healthy
from benchmarks.ranks.discrete.case import Case, random_case
from benchmarks.ranks.discrete.plan import planned
from benchmarks.ranks.discrete.run import Simulation, Step, mean_step
from benchmarks.ranks.discrete.source import paths, source_of
from benchmarks.ranks.discrete.write import START_UNIX_NS, clock, file_name, write
from benchmarks.ranks.job import Job, Model, Traces

_NEAR = 0.15  # of the wanted cost: near enough
_ROUNDS = 6
_MOST = 1.0  # steps: a longer delay that costs little is hidden in every step but the first
_DISPATCH = ("dispatch", "python")  # slower Python between ops is either


def job_of(case: Case) -> Job:
    """The job of this case."""
    simulation, cost = _with_cost(case)
    ranks = simulation.run()
    ends = [
        end for steps in ranks for step in steps for meeting, *_ in step.calls for end in meeting.ends.values()
    ]  # fmt: skip
    return Job(
        case=case,
        cost=cost,
        causes=_DISPATCH if case.cause == "dispatch" else (case.cause,),
        start_unix_ns=START_UNIX_NS,
        clocks={rank: clock(simulation, rank) for rank in range(case.ranks)},
        moments=(1000 * min(ends), 1000 * max(ends)),
        read=lambda: _traces(simulation, ranks),
    )


def _with_cost(case: Case) -> tuple[Simulation, float]:
    """The simulation, with an amount of lateness that costs about what the case asks for, and that cost."""
    source = source_of(paths()[case.source])
    simulation = Simulation(case, source, planned(case, source))
    if case.kind == "healthy":
        return simulation, 0.0
    usual = mean_step(replace(simulation, case=make_healthy(case)).run())
    wanted = case.late_share * len(case.late_steps) / case.steps
    simulation, cost = replace(simulation, amount=case.late_share * usual / source.length), 0.0
    for _ in range(_ROUNDS):
        cost = mean_step(simulation.run()) / usual - 1
        if simulation.amount > _MOST:
            return simulation, 0.0
        if abs(cost - wanted) < _NEAR * wanted:
            break
        factor = min(2.5, max(0.4, wanted / max(cost, 1e-3)))
        simulation = replace(simulation, amount=simulation.amount * factor)
    return simulation, cost


def _traces(simulation: Simulation, ranks: list[list[Step]]) -> Traces:
    """What stepscope reads of the files."""
    with tempfile.TemporaryDirectory() as folder:
        write(simulation, ranks, Path(folder))
        for rank in range(simulation.case.ranks):
            if rank not in simulation.case.missing:
                yield rank, stepscope.load(Path(folder) / file_name(rank), cache=False).traces[0]


def _draw(seed: int, kind: str, _ranks: int) -> Job:
    return job_of(random_case(seed, kind))


DISCRETE = Model("discrete", _draw, attempts=20, cases=24, healthy=16, required=False)
