"""Where every microsecond and every byte of a training step went, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.profile.load import load as load
    from stepscope.report.build import report as report

__version__ = "0.1.0"
__all__ = ["__version__", "load", "report"]

# Imported when they are first used: `import stepscope` itself needs nothing but Python, since training jobs do it.
_PLACES = {"load": "stepscope.profile.load"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "report":  # a package that can be called
        return import_module("stepscope.report")
    if name not in _PLACES:
        raise AttributeError(f"module 'stepscope' has no attribute {name!r}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, "report"})
