"""Random jobs for the model `stretched`: clocks, which rank is late and why, groups, and what is missing from the files."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.ranks.case import Case as AnyModelCase

# What makes a rank late, and the recordings that have it. work: more of it, and not slower.
SOURCES_OF = {
    "compute": ("dense", "transformer", "bf16", "convolutions", "bert", "jax"),
    "work": ("dense", "transformer", "bf16", "convolutions", "bert", "jax"),
    "input": ("loader", "own_loader", "resnet_loader"),
    "python": ("metrics", "jax_python"),
    "dispatch": ("transformer", "cells"),
}
EVERYONE = sorted({source for sources in SOURCES_OF.values() for source in sources})
MOST_OFFSET_NS = 50_000_000


@dataclass(frozen=True, kw_only=True)
class Case(AnyModelCase):
    """A job that the account of a recording describes; its jitter has tails heavier than normal, and is also of each part."""

    ranks: int = 64
    steps: int = 12
    layout: str = "hybrid"
    hiccup: float = 0.03  # of a rank that is late once, on average
    numbered: bool = True  # whether collectives carry sequence numbers
    outliers: float = 0.0  # share of ends that are late by 20 times the noise
    short: dict[int, int] = field(
        default_factory=dict
    )  # by rank: how many of the first collectives are missing
    ended: dict[int, int] = field(default_factory=dict)  # by rank: how many of the last steps are missing


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
        layout=str(chance.choice(["hybrid", "ddp", "fsdp", "no world"])),
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
