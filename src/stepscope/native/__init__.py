"""Hot loops, in Cython's pure-Python mode: one source that runs compiled or, without a compiler, interpreted."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages


def interpreted() -> list[str]:
    """The hot loops that run as plain Python here, because their compiled form is missing."""
    names = [found.name for found in walk_packages(__path__, f"{__name__}.")]
    return [
        name.removeprefix(f"{__name__}.")
        for name in names
        if not getattr(import_module(name), "COMPILED", True)
    ]
