"""Where results are written: stdout, or a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from stepscope.profiles.cache.atomic_files import whole_file
from stepscope.safe import safe_lines


@contextmanager
def destination(path: Path | None, force: bool) -> Iterator[IO[bytes]]:
    """A binary stream to stdout, or to a file that is put in place when all is written."""
    if path is None:
        yield sys.stdout.buffer
        return
    with whole_file(path, force) as file:
        yield file


def send(text: str, stream: IO[bytes]) -> None:
    """Write the text unchanged; for a terminal, escape control characters."""
    if stream is sys.stdout.buffer and sys.stdout.isatty():
        text = safe_lines(text)
    stream.write(text.encode())
