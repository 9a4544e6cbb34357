"""When code of a job without a device is a finding, and what a fix may save of it."""

from __future__ import annotations

from stepscope.registers.entry import policy

DOMINANT_FUNCTION = policy(
    "DOMINANT_FUNCTION",
    0.5,
    unit="share of the step",
    why="in one function or op of a job without a device: making anything else faster gains less",
)
OWN_CODE = policy(
    "OWN_CODE",
    0.3,
    unit="share of the step",
    why="in one function of the user, beside a framework that computes on the same processor: below, what the framework does matters more",
)
OWN_CODE_SAVES_LEAST = policy(
    "OWN_CODE_SAVES_LEAST",
    0.5,
    unit="share of the owned time",
    why="that goes in any case, if Python code becomes ops of the framework: what it computes must still be computed",
)
OWN_CODE_SAVES = policy(
    "OWN_CODE_SAVES",
    0.8,
    unit="share of the owned time",
    why="that is expected to go there; 0.76 to 0.85 in rounds of one TensorFlow job, whose spectrograms NumPy computed frame by frame",
)
