"""The stack of another thread.

It is read in one call that runs no Python code, so that its thread does not go on meanwhile: one of thirty jobs on a busy machine
crashed while its stack was walked step by step.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from itertools import accumulate, chain, repeat
from operator import attrgetter
from types import CodeType, FrameType
from typing import Any

_CODE_AND_GLOBALS = attrgetter("f_code", "f_globals")
_ATTRIBUTE: Callable[[Any, Any], Any] = getattr
# There, the frame of a function becomes an object when it is asked for, and making one may collect garbage: what a finalizer
# does lets other threads go on, whose functions return while we look at them. Later versions collect between instructions only.
_COLLECTS_WHILE_LOOKING = sys.version_info[:2] == (3, 11)


def read_stack(frame: FrameType, deepest: int) -> list[tuple[CodeType, dict[str, Any]]]:
    """The code and the globals of each function, from the innermost outwards."""
    seen: list[tuple[CodeType, dict[str, Any]]] = []
    outwards = accumulate(chain((frame,), repeat("f_back", deepest - 1)), _ATTRIBUTE)
    waits = _COLLECTS_WHILE_LOOKING and gc.isenabled()
    if waits:
        gc.disable()
    try:
        seen.extend(map(_CODE_AND_GLOBALS, outwards))
    except AttributeError:  # beyond the outermost function is None
        pass
    finally:
        if waits:
            gc.enable()
    return seen
