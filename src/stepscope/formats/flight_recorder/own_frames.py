"""Which function of a stack is the user's: collectives are called by PyTorch's wrappers, and those by the code that matters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stepscope.formats.flight_recorder.document import Frame

_INSTALLED = re.compile(
    r"[/\\](site|dist)-packages[/\\]|[/\\]lib[/\\]python3\.\d+[/\\]|^<|[/\\]stepscope[/\\]capture[/\\]"
)
_FRAMEWORK = re.compile(r"(^|[/\\])torch[/\\]|\.(cpp|cc|h|hpp|so)$|^<|^$|^\?\?")


def own_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost outside of installed packages; else the innermost that is not PyTorch; else the innermost."""
    for foreign in (_INSTALLED, _FRAMEWORK):
        found = next((each for each in frames if not _is_foreign(each, foreign)), None)
        if found is not None:
            return found
    return frames[0] if frames else None


def _is_foreign(frame: Frame, foreign: re.Pattern[str]) -> bool:
    return foreign.search(frame.filename) is not None or _FRAMEWORK.search(frame.filename) is not None
