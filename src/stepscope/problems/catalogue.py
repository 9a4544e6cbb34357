"""Every problem that stepscope reports, by its code."""

from __future__ import annotations

from stepscope.problems import (
    compared,
    device,
    file,
    folder,
    hangs,
    machine,
    ranks,
    recording,
    script,
    script_output,
    tensorboard,
)
from stepscope.problems.entry import Entry, Words

_MODULES = (
    file,
    recording,
    ranks,
    hangs,
    compared,
    folder,
    machine,
    device,
    tensorboard,
    script,
    script_output,
)
CATALOGUE: dict[str, Entry] = {entry.code: entry for module in _MODULES for entry in module.ENTRIES}


def words(code: str, case: str = "", **facts: str) -> Words:
    """The words for a problem of ours, with the facts of the case filled in."""
    return CATALOGUE[code].words(case, facts)


def cause_of(code: str) -> str:
    """Why the problem happens; empty for a code that a newer version wrote."""
    entry = CATALOGUE.get(code)
    return entry.cause if entry is not None else ""
