"""What is true of one synthetic profile: clocks, who is late and why, groups, and what is missing from the files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

KINDS = ("healthy", "always", "sometimes", "data-dependent")
# What makes somebody late, and recordings in which there is such a thing. work: more of it, and not slower.
SOURCES_OF = {
    "compute": ("dense", "transformer", "bf16", "convolutions", "bert", "jax"),
    "work": ("dense", "transformer", "bf16", "convolutions", "bert", "jax"),
    "input": ("loader", "own_loader", "resnet_loader"),
    "python": ("metrics", "jax_python"),
    "dispatch": ("transformer", "cells"),
}
EVERYONE = sorted({source for sources in SOURCES_OF.values() for source in sources})
MOST_OFFSET_NS = 50_000_000


@dataclass(frozen=True)
class Case:
    """All times in ns; shares are of a step."""

    seed: int
    source: str
    ranks: int = 64
    steps: int = 12
    kind: str = "healthy"
    rank: int | None = None  # who is late; None of data-dependent cases in which all batches are uneven
    cause: str | None = None
    late_share: float = 0.15
    late_steps: tuple[int, ...] = ()
    # What varies on healthy ranks too.
    jitter: float = (
        0.005  # of every rank and step, and of each of its parts; its tails are heavier than normal
    )
    common: float = 0.0  # of a step, on all ranks alike
    lasting: float = 0.0  # of a rank, in all steps alike
    hiccups: float = 0.0  # chance of a rank to be late once in a step, by `hiccup` on average
    hiccup: float = 0.03
    # Collectives and clocks.
    pattern: str = "hybrid"
    numbered: bool = True  # whether collectives carry sequence numbers
    group: int = 8  # ranks of one inner group
    noise_ns: int = 4_000  # of the ends of a collective, one-sided
    outliers: float = 0.0  # share of ends that are late by 20 times the noise
    offset_ns: int = MOST_OFFSET_NS  # clocks differ by at most so much
    drift_ppm: float = 20.0
    # What the files lack.
    missing: tuple[int, ...] = ()
    short: dict[int, int] = field(default_factory=dict)  # by rank: how many of the first collectives
    ended: dict[int, int] = field(default_factory=dict)  # by rank: how many of the last steps

    @property
    def healthy(self) -> Case:
        """The same, and nobody late."""
        return replace(self, kind="healthy", rank=None, cause=None, late_steps=())


def random_case(seed: int, kind: str, ranks: int = 64, steps: int = 12) -> Case:
    """A case of this kind; the same for the same seed."""
    chance = np.random.default_rng(seed)
    cause, source = _cause(chance, kind)
    missing = _some(chance, list(range(ranks)), 3)
    present = [rank for rank in range(ranks) if rank not in missing]
    one = kind in ("always", "sometimes") or (kind == "data-dependent" and bool(chance.random() < 0.5))
    late = int(chance.choice(present)) if one else None
    others = [rank for rank in present if rank != late]
    share, when = _lateness(chance, kind, steps)
    return Case(
        seed=seed,
        source=source,
        ranks=ranks,
        steps=steps,
        kind=kind,
        rank=late,
        cause=cause,
        late_share=share,
        late_steps=when if late is not None else (),
        jitter=float(chance.uniform(0.001, 0.02)),
        common=float(chance.choice([0.0, 0.05])),
        lasting=float(chance.uniform(0.0, 0.005)),
        hiccups=float(chance.choice([0.0, 0.005])),
        pattern=str(chance.choice(["hybrid", "ddp", "fsdp", "no world"])),
        numbered=bool(chance.random() < 0.7),
        group=min(ranks, int(chance.choice([4, 8, 16]))),
        noise_ns=int(chance.integers(1_000, 10_000)),
        outliers=float(chance.choice([0.0, 0.02])),
        offset_ns=int(chance.choice([0, 1_000_000, MOST_OFFSET_NS])),
        drift_ppm=float(chance.choice([0.0, 5.0, 50.0])),
        missing=missing,
        short={rank: int(chance.integers(1, 6)) for rank in _some(chance, others, 2)},
        ended={rank: int(chance.integers(1, 4)) for rank in _some(chance, others, 2)},
    )


def _some(chance: np.random.Generator, ranks: list[int], most: int) -> tuple[int, ...]:
    count = int(chance.integers(0, most + 1))
    return tuple(sorted(int(rank) for rank in chance.choice(ranks, size=count, replace=False)))


def _cause(chance: np.random.Generator, kind: str) -> tuple[str | None, str]:
    if kind == "healthy":
        return None, str(chance.choice(EVERYONE))
    causes = {"data-dependent": ["work"], "sometimes": ["compute", "input", "python", "dispatch"]}
    cause = str(chance.choice(causes.get(kind, list(SOURCES_OF))))
    return cause, str(chance.choice(SOURCES_OF[cause]))


def _lateness(chance: np.random.Generator, kind: str, steps: int) -> tuple[float, tuple[int, ...]]:
    """By how much, and when: in every step, or in a quarter to a half of them."""
    if kind == "always":
        return float(chance.uniform(0.06, 0.4)), tuple(range(steps))
    often = int(chance.integers(max(2, steps // 4), steps // 2 + 1))
    when = tuple(sorted(int(step) for step in chance.choice(steps, size=often, replace=False)))
    return float(chance.uniform(0.12, 0.6)), when
