"""What is true of one job of many ranks, whichever model makes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

LATE_KINDS = ("always", "sometimes", "data-dependent")
AnyCase = TypeVar("AnyCase", bound="Case")


@dataclass(frozen=True, kw_only=True)
class Case:
    """All times in ns; shares are of a step."""

    seed: int
    source: str
    kind: str = "healthy"
    ranks: int
    steps: int
    rank: int | None = None  # the late one; None in data-dependent cases in which all batches are uneven
    cause: str | None = None
    late_share: float = 0.15
    late_steps: tuple[int, ...] = ()
    # What varies on healthy ranks too.
    jitter: float = 0.005  # of every rank and step
    common: float = 0.0  # of a step, on all ranks alike
    lasting: float = 0.0  # of a rank, in all steps alike
    hiccups: float = 0.0  # chance of a rank to be late once in a step
    # Collectives and clocks.
    layout: str
    group: int = 8  # ranks of one inner group
    noise_ns: int = 4_000  # of the ends of a collective
    offset_ns: int = 50_000_000  # the largest offset of a clock
    drift_ppm: float = 20.0
    # What the files lack.
    missing: tuple[int, ...] = ()


def make_healthy(case: AnyCase) -> AnyCase:
    """The same job without a late rank."""
    return replace(case, kind="healthy", rank=None, cause=None, late_steps=())
