"""Hot loops, in Cython's pure-Python mode: one source that runs compiled or, without a compiler, interpreted."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def interpreted() -> list[str]:
    """The hot loops that run as plain Python here, because their compiled form is missing."""
    modules = {
        found.name: import_module(f"stepscope.native.{found.name}") for found in iter_modules(__path__)
    }
    return [name for name, module in modules.items() if not getattr(module, "COMPILED", True)]
