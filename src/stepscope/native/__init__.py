"""Hot loops, in Cython's pure-Python mode: one source that runs compiled or, without a compiler, interpreted."""

from __future__ import annotations

from importlib import import_module

HOT_LOOPS = ("events", "wire", "intervals", "spans", "sweep", "lanes", "pairs", "checks", "crc32c", "order")


def interpreted() -> list[str]:
    """The hot loops that run as plain Python here, because their compiled form is missing."""
    return [name for name in HOT_LOOPS if not import_module(f"stepscope.native.{name}").COMPILED]
