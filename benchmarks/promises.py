"""What was promised, and whether a run kept it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measure import Series


@dataclass(frozen=True)
class Promise:
    """One figure and its limit."""

    what: str
    value: float
    limit: float
    at_least: bool
    unit: str = "x"
    required: bool = True

    @property
    def kept(self) -> bool:
        """Whether the figure is on the right side of its limit."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self) -> str:
        """For the table of promises."""
        verdict = ("PASS" if self.kept else "FAIL") if self.required else ("yes " if self.kept else "no  ")
        sign = ">=" if self.at_least else "<="
        return f"{verdict}  {self.what}: {self.value:.3g}{self.unit} ({sign} {self.limit:g}{self.unit})"


def faster(size: str, ours: Series, peer: Series, limit: float, *, required: bool = True) -> Promise:
    """How many times faster our cold load is."""
    what = f"{size}: cold load faster than {peer.tool}"
    return Promise(what, peer.seconds / ours.seconds, limit, at_least=True, required=required)


def explained(size: str, ours: Series, peer: Series, limit: float, *, required: bool = True) -> Promise:
    """How many times faster our cold load and the whole report together are."""
    what = f"{size}: cold load and report faster than {peer.tool}"
    return Promise(what, peer.seconds / ours.seconds, limit, at_least=True, required=required)


def smaller(size: str, ours: Series, peer: Series, limit: float) -> Promise:
    """Our peak memory as a share of the peer's, whole processes."""
    return Promise(
        f"{size}: peak memory against {peer.tool}", ours.peak_bytes / peer.peak_bytes, limit, at_least=False
    )


def second_open(size: str, first: Series, second: Series) -> Promise:
    """A tenth of a second, or a twentieth of the first open if that is longer."""
    limit = max(0.1, first.seconds / 20)
    return Promise(f"{size}: second open", second.seconds, round(limit, 3), at_least=False, unit=" s")


def linear(small: tuple[int, Series], large: tuple[int, Series]) -> list[Promise]:
    """Time and memory per event at the large size against those at the small one.

    Memory is counted above what the process held before the load: the interpreter is no cost of an event.
    """
    (few, a), (many, b) = small, large
    return [
        Promise(
            "time per event, largest against smallest",
            b.seconds / many / (a.seconds / few),
            1.3,
            at_least=False,
        ),
        Promise(
            "memory per event, largest against smallest (without the imported interpreter)",
            b.load_bytes / many / (a.load_bytes / few),
            1.3,
            at_least=False,
        ),
    ]


def percent(flags: Sequence[bool]) -> float:
    """How many of them hold; all of none."""
    return 100 * sum(flags) / len(flags) if flags else 100.0
