"""Calls of compiled functions of JAX, as its profiler names them: `PjitFunction(update)`."""

from __future__ import annotations

PROGRAM_CALL = "PjitFunction("
PROGRAM_CALLS = r"^PjitFunction\("


def name_call(function: str) -> str:
    """The event around a call of the function."""
    return f"{PROGRAM_CALL}{function})"


def called_function(name: str) -> str:
    """The function that an event calls; other names stay as they are."""
    is_call = name.startswith(PROGRAM_CALL) and name.endswith(")")
    return name[len(PROGRAM_CALL) : -1] if is_call else name
