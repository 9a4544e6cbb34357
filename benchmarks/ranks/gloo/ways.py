"""The ways of being slow: who, how, and what a report may call it."""

from __future__ import annotations

from dataclasses import dataclass

WORLD = 4
# Without Python frames a profile does not show what ran between its operations.
_OWN_CODE = ("python", "unexplained")


@dataclass(frozen=True)
class Way:
    """`rank` is the slow one, None where none is. `kinds` and `causes`: as in the straggler of a report.

    `least_cores`: with fewer, all ranks share a core with what slows one of them. `times`: how many times as many steps it takes
    to see what it costs.
    """

    name: str
    rank: int | None = None
    kinds: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    least_cores: int = 1
    times: int = 1


WAYS = (
    Way("healthy"),
    Way("input", 2, ("always",), ("input",)),
    Way("passes", 1, ("always",), ("work",)),
    Way("python", 1, ("always",), _OWN_CODE),
    Way("collection", 3, ("sometimes",), _OWN_CODE),
    Way(
        "hog", 2, ("always", "sometimes"), ("host_compute",), WORLD + 1, times=6
    ),  # a core is shared by whim: means of 8 steps differ by a third, and drift over some ten seconds
    Way("batch", 1, ("always",), ("work",)),
    Way("checkpoint", 0, ("sometimes",), ("io", *_OWN_CODE)),
    Way("jitter", 3, ("sometimes",), _OWN_CODE),
)
