"""Which finding comes first, and which promises are kept back."""

from __future__ import annotations

from stepscope.registers.entry import policy

STEPS_BEFORE_FULL = policy(
    "STEPS_BEFORE_FULL",
    1000,
    unit="steps",
    why="a run that fills the device sooner ends soon; later, it can wait for its turn",
)
WORTH_MORE_THAN_A_WARNING = policy(
    "WORTH_MORE_THAN_A_WARNING",
    1.1,
    unit="speed-up",
    why="what brings less is not missed while a leak is looked for",
)
LAUNCHES_BESIDE_CAUSE = policy(
    "LAUNCHES_BESIDE_CAUSE",
    0.5,
    unit="share of the certainty",
    why="where a finding names launches that are not needed, to leave them out comes before a graph of all, unless it gains little",
)
