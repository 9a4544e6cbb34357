"""What differs from rank to rank and step to step: speeds, delays, links, loads. All ones and zeros where nothing is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


@dataclass(frozen=True)
class Pause:
    """Of the host or the device of a rank, at a share of its actions in a step."""

    share: float
    on_host: bool
    ns: float


@dataclass(frozen=True)
class Conditions:
    """Factors on time, by rank (or replica) and simulated step; factors on the speed of links."""

    device: Table  # rank, step
    host: Table  # rank, step
    late_input_ns: Table  # rank, step
    tokens: Table  # data parallel replica, step
    stages: Table  # stage
    experts: Table  # stage, expert
    nics: Mapping[int, float] = field(default_factory=dict)  # rank → speed
    pairs: Mapping[tuple[int, int], float] = field(default_factory=dict)  # nodes → speed
    nodes: Mapping[int, float] = field(default_factory=dict)  # node → speed of all its links
    pauses: Mapping[tuple[int, int], tuple[Pause, ...]] = field(default_factory=dict)  # rank, step


def usual(world: int, steps: int, dp: int, pp: int, ep: int) -> Conditions:
    """Nothing differs."""
    return Conditions(
        device=np.ones((world, steps)),
        host=np.ones((world, steps)),
        late_input_ns=np.zeros((world, steps)),
        tokens=np.ones((dp, steps)),
        stages=np.ones(pp),
        experts=np.ones((pp, ep)),
    )
