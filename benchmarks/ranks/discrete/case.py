"""What is true of one job: who is late, why and when, how its ranks meet, and how far their clocks are off. Times in µs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from benchmarks.ranks.physical.source import paths

KINDS = ("healthy", "always", "sometimes", "data-dependent")
LAYOUTS = ("ddp", "blocking", "sharded", "grid", "stages")
CAUSES = ("input", "python", "dispatch", "compute")
NOISES = ("normal", "one-sided", "exponential", "heavy")


@dataclass(frozen=True)
class Case:
    """Shares are of a step."""

    seed: int
    source: str
    kind: str
    world: int
    steps: int
    layout: str
    calls: int  # collectives a step
    inner: int  # ranks of an inner group
    sync: bool  # whether the host waits for the device at the end of each step
    named: bool  # whether the profile names groups
    rank: int | None
    cause: str | None
    late_steps: tuple[int, ...]
    size: float  # what a late step takes longer
    step_sd: float  # of a rank's step, on host and device
    rank_sd: float  # of a rank, in all steps alike
    common_sd: float  # of a step, on all ranks alike
    hiccups: float  # chance of a rank to stop once in a step
    noise: str
    noise_us: float
    offset_us: float
    drift_ppm: float
    missing: tuple[int, ...] = ()
    cut_off: tuple[int, ...] = ()  # ranks that were not recorded in the first step

    @property
    def healthy(self) -> Case:
        """The same, and nobody late."""
        return replace(self, kind="healthy", rank=None, cause=None, late_steps=())


def random_case(seed: int, kind: str) -> Case:
    """A case of this kind; the same for the same seed."""
    chance = Random(seed)
    world, steps = chance.choice((4, 8, 8, 12, 16)), chance.choice((3, 4, 6, 8))
    layout = chance.choice(LAYOUTS if world > 4 else LAYOUTS[:3])
    ranks = chance.sample(range(world), world)
    rank = ranks.pop() if kind != "healthy" else None
    cause = "work" if kind == "data-dependent" else chance.choice(CAUSES)
    lacks = chance.choice(("nothing", "nothing", "ranks", "a step")) if world > 4 and steps > 3 else "nothing"
    return Case(
        seed=seed,
        source=chance.choice(sorted(paths())),
        kind=kind,
        world=world,
        steps=steps,
        layout=layout,
        calls=chance.choice((1, 2, 3, 6)),
        inner=chance.choice((2, 4)) if world == 16 or (layout == "grid" and world == 8) else 2,
        sync=chance.random() < 0.5,
        named=layout not in ("grid", "stages") or chance.random() < 0.75,
        rank=rank,
        cause=cause if rank is not None else None,
        late_steps=_late_steps(chance, kind, steps),
        size=chance.choice((0.08, 0.1, 0.2, 0.4)),
        step_sd=chance.choice((0.0, 0.005, 0.01, 0.02)),
        rank_sd=chance.choice((0.0, 0.003, 0.005)),
        common_sd=chance.choice((0.0, 0.02, 0.05)),
        hiccups=chance.choice((0.0, 0.0, 0.01)),
        noise=chance.choice(NOISES),
        noise_us=chance.choice((1.0, 2.0, 5.0, 10.0)),
        offset_us=chance.choice((0.0, 100.0, 50_000.0)),
        drift_ppm=chance.choice((0.0, 10.0, 50.0)),
        missing=tuple(ranks[:2]) if lacks == "ranks" else (),
        cut_off=tuple(ranks[:2]) if lacks == "a step" else (),
    )


def _late_steps(chance: Random, kind: str, steps: int) -> tuple[int, ...]:
    """All of them, or up to half."""
    if kind == "always":
        return tuple(range(steps))
    often = 0 if kind == "healthy" else chance.randint(min(2, steps - 2), max(2, steps // 2))
    return tuple(sorted(chance.sample(range(steps), min(often, steps - 1))))
