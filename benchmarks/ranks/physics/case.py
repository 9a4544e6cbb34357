"""A random case: a job, its trouble, and what the fix gains in the simulation."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.ranks.physics.job import Job, random_job
from benchmarks.ranks.physics.run import Run, simulate
from benchmarks.ranks.physics.suspects import suspects
from benchmarks.ranks.physics.trouble import DRAWS, Trouble

FIRST_STEP = 10  # the number of the first recorded step in a profile
LEAST_GAIN = 1.05  # a trouble that costs less is drawn again
_ATTEMPTS = 12


@dataclass(frozen=True)
class Case:
    """What was run, and the truth about it."""

    seed: int
    trouble: Trouble
    run: Run
    step_ns: float
    fixed_step_ns: float

    @property
    def job(self) -> Job:
        """As recorded."""
        return self.trouble.broken[0]

    @property
    def gain(self) -> float:
        """The job's step with the trouble / without."""
        return self.step_ns / self.fixed_step_ns

    def truth(self) -> dict[str, Any]:
        """For the scorer."""
        trouble, layout = self.trouble, self.job.layout
        return {
            "kind": trouble.kind,
            "form": trouble.form,
            "ranks": list(trouble.ranks),
            "suspects": list(self._suspects()),
            "where": trouble.where,
            "size": round(trouble.size, 3),
            "first_step": FIRST_STEP + trouble.first_step,
            "gain": round(self.gain, 4),
            "step_ns": round(self.step_ns),
            "fixed_step_ns": round(self.fixed_step_ns),
            "seed": self.seed,
            "layout": {"tp": layout.tp, "pp": layout.pp, "dp": layout.dp, "ep": layout.ep},
            "world": layout.world,
            "sharded": self.job.sharded,
            "micro_batches": self.job.micro_batches,
            "steps": self.job.steps,
        }

    def _suspects(self) -> tuple[int, ...]:
        """Where a link is slow, all ranks that may be the ones; empty where nothing can show it."""
        is_link = self.trouble.kind in ("slow-link", "slow-node")
        return suspects(*self.trouble.broken) if is_link else self.trouble.ranks


def random_case(seed: int, kind: str, ranks: int) -> Case:
    """The same for the same arguments: drawn again until the trouble costs something."""
    case = _draw(seed, kind, ranks)
    for attempt in range(1, _ATTEMPTS):
        if kind == "healthy" or case.gain >= LEAST_GAIN:
            break
        case = _draw(seed + 1_000_003 * attempt, kind, ranks)
    return case


def _draw(seed: int, kind: str, ranks: int) -> Case:
    job = random_job(seed, kind, ranks)
    usual = simulate(job, job.conditions())
    trouble = DRAWS[kind](Random(seed + 1), job, usual.step_ns())
    if kind == "healthy":
        return Case(seed, trouble, usual, usual.step_ns(), usual.step_ns())
    run = simulate(*trouble.broken)
    fixed = simulate(*trouble.fixed) if kind == "heavy-stage" else usual
    return Case(seed, trouble, run, run.step_ns(), fixed.step_ns())
