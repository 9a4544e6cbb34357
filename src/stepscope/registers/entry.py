"""How a number gets into a register: it is recorded with its origin, and handed back as the plain number.

A register is a module of such calls, so that code imports numbers by name and the documentation lists them with their origin.
"""

from __future__ import annotations

from typing import Literal, TypeVar

from stepscope.lazy import dataclass

Register = Literal["calibration", "policy", "levels"]
Number = TypeVar("Number", int, float)

# What `how` says of a physical figure that nobody has measured yet.
CHOSEN = "chosen; not measured"


@dataclass(frozen=True)
class Entry:
    """A number and where it comes from; `device`, `when` and `seen` are empty where nothing was measured."""

    register: Register
    name: str
    value: float
    unit: str
    origin: str
    device: str = ""
    when: str = ""
    seen: str = ""


# In the order of definition, by name.
ENTRIES: dict[str, Entry] = {}


def measured(
    name: str, value: Number, *, unit: str, device: str, how: str, when: str = "", seen: str = ""
) -> Number:
    """A physical figure: of which device, how and when it was measured, and the range that was seen."""
    return _recorded(Entry("calibration", name, value, unit, how, device, when, seen), value)


def policy(name: str, value: Number, *, unit: str, why: str) -> Number:
    """A decision about what is worth showing or doing."""
    return _recorded(Entry("policy", name, value, unit, why), value)


def level(name: str, value: Number, *, unit: str, why: str) -> Number:
    """A parameter of a statistical method."""
    return _recorded(Entry("levels", name, value, unit, why), value)


def _recorded(entry: Entry, value: Number) -> Number:
    if entry.name in ENTRIES:
        raise ValueError(f"{entry.name} is in the registers already")
    ENTRIES[entry.name] = entry
    return value
