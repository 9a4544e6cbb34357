"""Random jobs for the model `discrete`: which rank is late, why and when, how ranks meet, and how far their clocks are off."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from benchmarks.ranks.case import Case as AnyModelCase
from benchmarks.ranks.discrete.source import paths

LAYOUTS = ("ddp", "blocking", "sharded", "grid", "stages")
CAUSES = ("input", "python", "dispatch", "compute")
NOISES = ("normal", "one-sided", "exponential", "heavy")


@dataclass(frozen=True, kw_only=True)
class Case(AnyModelCase):
    """A job that machines run; `late_share` is what a late step takes longer."""

    calls: int  # collectives a step
    sync: bool  # whether the host waits for the device at the end of each step
    named: bool  # whether the profile names groups
    noise: str  # its distribution
    cut_off: tuple[int, ...] = ()  # ranks that were not recorded in the first step


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
        ranks=world,
        steps=steps,
        layout=layout,
        calls=chance.choice((1, 2, 3, 6)),
        group=chance.choice((2, 4)) if world == 16 or (layout == "grid" and world == 8) else 2,
        sync=chance.random() < 0.5,
        named=layout not in ("grid", "stages") or chance.random() < 0.75,
        rank=rank,
        cause=cause if rank is not None else None,
        late_steps=_late_steps(chance, kind, steps),
        late_share=chance.choice((0.08, 0.1, 0.2, 0.4)),
        jitter=chance.choice((0.0, 0.005, 0.01, 0.02)),
        lasting=chance.choice((0.0, 0.003, 0.005)),
        common=chance.choice((0.0, 0.02, 0.05)),
        hiccups=chance.choice((0.0, 0.0, 0.01)),
        noise=chance.choice(NOISES),
        noise_ns=chance.choice((1_000, 2_000, 5_000, 10_000)),
        offset_ns=chance.choice((0, 100_000, 50_000_000)),
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
