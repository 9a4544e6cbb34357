"""A hang, as the report has it. Its rules and units are those of `model`."""

from __future__ import annotations

import msgspec


class HangCall(msgspec.Struct, kw_only=True):
    """One call that some ranks made alike, or where ranks are that made none. `stack` has the innermost function first."""

    ranks: list[int]
    state: str  # waits, differs, outside (of any collective), or no dump
    group: str | None = None
    op: str | None = None
    sequence: int | None = None
    sizes: str | None = None
    dtype: str | None = None
    function: str | None = None
    place: str | None = None  # file:line, the innermost that is not an installed package
    stack: list[str] = []
    called_unix_ns: int | None = None  # the last of them


class HangGroup(msgspec.Struct, kw_only=True):
    """A process group in which a collective does not end; `calls` are that collective on the ranks that called it."""

    name: str
    ranks: list[int]
    kind: str  # absent, op, size, dtype, device or stuck
    sequence: int
    waiting: list[int]
    culprits: list[int]
    sentence: str
    calls: list[HangCall] = []


class Hang(msgspec.Struct, kw_only=True):
    """Why the ranks hang, of flight-recorder dumps. `ranks` says where each is, those alike together."""

    kind: str | None = (
        None  # absent, dead, op, size, dtype, device, stuck, deadlock or none; null where there is no dump
    )
    sentence: str = ""
    culprits: list[int] = []
    groups: list[HangGroup] = []
    ranks: list[HangCall] = []
