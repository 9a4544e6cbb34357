"""Folders for sockets: the address of one has a hundred bytes, and the folder for temporary files may have a longer name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST = 40
_OTHERS = ("/tmp", "/var/tmp", "/dev/shm")


@contextmanager
def short_folder() -> Iterator[Path]:
    """An empty folder of this test's own, which goes away with it."""
    with tempfile.TemporaryDirectory(prefix="ss", dir=short_place()) as folder:
        yield Path(folder)


def short_place() -> str:
    """Where such folders may be made; Python and the frameworks put sockets of their own there, too."""
    usual = tempfile.gettempdir()
    if len(os.fsencode(usual)) <= _LONGEST:
        return usual
    return next((other for other in _OTHERS if os.access(other, os.W_OK | os.X_OK)), usual)
