"""In what most of a time passes, for people: `mostly` is said of no less than half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepscope.names import short_name
from stepscope.registers.policy.findings import MAJORITY


def mostly_in(names: Sequence[Mapping[str, Any]], ns: float) -> str:
    """`, mostly in` the fewest of these names that take more than half of the time together; the largest comes first.

    Names are as `Case.top_names` has them. Nothing where the largest has no name.
    """
    if not names or not names[0]["name"]:
        return ""
    taken: dict[str, float] = {}
    for each in names:
        if each["name"]:
            name = short_name(each["name"])
            taken[name] = taken.get(name, 0.0) + each["ns_per_step"]
    fewest = join_largest(taken, ns)
    return f", mostly in {fewest}" if fewest else f", most of all in {next(iter(taken))}"


def join_largest(taken: Mapping[str, float], ns: float) -> str:
    """The fewest of these that take more than half of the time together, in their order; empty where all do not."""
    passed = 0.0
    for count, (_, each) in enumerate(taken.items(), 1):
        passed += each
        if passed > MAJORITY * ns:
            return _joined(list(taken)[:count])
    return ""


def _joined(names: Sequence[str]) -> str:
    """`a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
