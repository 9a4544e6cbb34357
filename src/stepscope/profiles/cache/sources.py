"""The version of the analysis: a digest of the state of our own files.

A number that someone has to raise would be forgotten one day, and an old report would be shown as that of the new code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import stepscope
from stepscope.profiles.cache.place import digest

# What no answer depends on: they record, show or check.
_APART = {
    "__pycache__", "calibrate", "capture", "cli", "doctor", "gate", "notebook", "samples", "tensorboard", "testing", "web",
}  # fmt: skip
_ENDINGS = (".py", ".so", ".pyd")


@cache
def sources_digest() -> str:
    """Another one for each version of the code that computes answers."""
    root = Path(stepscope.__file__).parent
    states = sorted(_states(str(root))) if root.is_dir() else []
    return digest("\n".join([stepscope.__version__, *states]))


def _states(folder: str) -> Iterator[str]:
    with os.scandir(folder) as inside:
        for each in inside:
            if each.name in _APART:
                continue
            if each.is_dir(follow_symlinks=False):
                yield from _states(each.path)
            elif each.name.endswith(_ENDINGS):
                facts = each.stat()
                yield f"{each.path} {facts.st_size} {facts.st_mtime_ns}"
