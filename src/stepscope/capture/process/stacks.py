"""The stack of another thread.

It is read in one call that runs no Python code, so that its thread does not go on meanwhile: one of thirty jobs on a busy machine
crashed while its stack was walked step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, chain, repeat
from operator import attrgetter
from types import CodeType, FrameType
from typing import Any

_CODE_AND_GLOBALS = attrgetter("f_code", "f_globals")
_ATTRIBUTE: Callable[[Any, Any], Any] = getattr


def read_stack(frame: FrameType, deepest: int) -> list[tuple[CodeType, dict[str, Any]]]:
    """The code and the globals of each function, from the innermost outwards."""
    seen: list[tuple[CodeType, dict[str, Any]]] = []
    outwards = accumulate(chain((frame,), repeat("f_back", deepest - 1)), _ATTRIBUTE)
    try:
        seen.extend(map(_CODE_AND_GLOBALS, outwards))
    except AttributeError:  # beyond the outermost function is None
        pass
    return seen
