"""What is true of one synthetic profile: clocks, who is late and why, groups, and what is missing from the files."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

KINDS = ("healthy", "always", "sometimes", "data-dependent")
CAUSES = ("compute", "input", "python", "dispatch", "work")  # work: more of it, and not slower


@dataclass(frozen=True)
class Case:
    """All times in ns; shares are of a step."""

    seed: int
    source: str
    ranks: int = 64
    steps: int = 12
    kind: str = "healthy"
    rank: int | None = None  # who is late
    cause: str | None = None
    late_share: float = 0.15
    jitter: float = 0.005  # spread of every part of every step of every rank
    noise_ns: int = 4_000  # of the ends of a collective, one-sided
    offset_ns: int = 50_000_000  # clocks differ by at most so much
    drift_ppm: float = 20.0
    group: int = 8  # ranks of one inner group
    numbered: bool = True  # whether collectives carry sequence numbers
    missing: tuple[int, ...] = ()
    short: tuple[int, ...] = ()  # ranks whose recording lacks the first collectives
    late_steps: tuple[int, ...] = field(default=())


def random_case(seed: int, kind: str, ranks: int = 64, steps: int = 12) -> Case:
    """A case of this kind; the same for the same seed."""
    chance = np.random.default_rng(seed)
    cause, source = _cause(chance, kind)
    missing = tuple(int(r) for r in chance.choice(ranks, size=int(chance.integers(0, 4)), replace=False))
    present = [rank for rank in range(ranks) if rank not in missing]
    late = int(chance.choice(present)) if kind in ("always", "sometimes") else None
    others = [rank for rank in present if rank != late]
    often = int(chance.integers(3, max(4, steps // 2 + 1)))
    when = tuple(sorted(int(s) for s in chance.choice(steps, size=often, replace=False)))
    return Case(
        seed=seed,
        source=source,
        ranks=ranks,
        steps=steps,
        kind=kind,
        rank=late,
        cause=cause,
        # Who is late in few steps must be so by much, to cost as much as the finding wants.
        late_share=float(chance.uniform(0.2, 0.6) if kind == "sometimes" else chance.uniform(0.08, 0.4)),
        jitter=float(chance.uniform(0.001, 0.012)),
        noise_ns=int(chance.integers(1_000, 10_000)),
        offset_ns=int(chance.choice([0, 1_000_000, 50_000_000])),
        drift_ppm=float(chance.choice([0.0, 5.0, 50.0])),
        group=int(chance.choice([4, 8, 16])),
        numbered=bool(chance.random() < 0.7),
        missing=missing,
        short=tuple(int(r) for r in chance.choice(others, size=int(chance.integers(0, 3)), replace=False)),
        late_steps=tuple(range(steps)) if kind == "always" else when if kind == "sometimes" else (),
    )


def _cause(chance: np.random.Generator, kind: str) -> tuple[str | None, str]:
    """What makes somebody late, and a recording in which there is such a thing."""
    sources = {
        "compute": ("dense", "transformer"),
        "work": ("dense", "transformer"),
        "input": ("loader",),
        "python": ("metrics",),
        "dispatch": ("transformer",),
    }
    if kind == "healthy":
        return None, str(chance.choice(["dense", "transformer", "loader", "metrics"]))
    causes = {"data-dependent": ("work",), "sometimes": ("compute", "input", "python", "dispatch")}
    cause = str(chance.choice(causes.get(kind, CAUSES)))
    return cause, str(chance.choice(sources[cause]))
