"""What every thread of this process does, as its Python stacks."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

_OURS = "stepscope-"
_DEEPEST = 200
_MOST_THREADS = 500


def list_stacks() -> list[dict[str, Any]]:
    """A name and the frames of each thread, the innermost first; our own threads are left out."""
    # Not threading.enumerate(): it takes a lock, which a thread that hangs may hold.
    known = dict(getattr(threading, "_active", {}))
    main = threading.main_thread().ident
    found = []
    for ident, frame in list(sys._current_frames().items())[:_MOST_THREADS]:
        name = known[ident].name if ident in known else f"thread {ident:#x}"
        if not name.startswith(_OURS):
            found.append({"name": name, "is_main": ident == main, "frames": _list_frames(frame)})
    return sorted(found, key=lambda each: not each["is_main"])


def _list_frames(frame: FrameType | None) -> list[list[Any]]:
    frames: list[list[Any]] = []
    while frame is not None and len(frames) < _DEEPEST:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return frames
