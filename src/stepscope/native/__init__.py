"""Hot loops, in Cython's pure-Python mode: one source that runs compiled or, without a compiler, interpreted."""

from __future__ import annotations

from importlib import import_module

HOT_LOOPS = (
    "checks",
    "crc32c",
    "events",
    "flows",
    "intervals",
    "lanes",
    "names",
    "order",
    "pairs",
    "replay",
    "segments",
    "spans",
    "sweep",
    "texts",
    "wire",
    "xspace",
)


def interpreted() -> list[str]:
    """The hot loops that run as plain Python here, because their compiled form is missing."""
    return [name for name in HOT_LOOPS if not import_module(f"stepscope.native.{name}").COMPILED]
