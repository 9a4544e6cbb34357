"""Faults of rules, which the report lists."""

from __future__ import annotations

import os

from stepscope.lazy import dataclass

# In the environment: tracebacks instead of faults, of everything and of rules alone.
RAISE, RAISE_RULES = "STEPSCOPE_RAISE", "STEPSCOPE_RAISE_RULES"
PROMISES = "what findings promise"


@dataclass(frozen=True)
class Fault:
    """What could not be computed: the code of a finding, or `PROMISES`; and the first line of the error."""

    what: str
    line: str


def wants_tracebacks() -> bool:
    """Whether the errors of rules are wanted as they are."""
    return any(os.environ.get(name) for name in (RAISE, RAISE_RULES))
