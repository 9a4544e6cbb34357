"""Where every microsecond and every byte of a training step went, and what to change."""

from __future__ import annotations

from os import environ

TYPE_CHECKING = False  # of `typing`, whose import would take longer than everything else here
if TYPE_CHECKING:
    from typing import Any

    from stepscope.capture.annotate import annotate as annotate
    from stepscope.capture.annotate import step as step
    from stepscope.capture.listen import listen as listen
    from stepscope.capture.op import op as op
    from stepscope.capture.profiler import Profiler as Profiler
    from stepscope.capture.profiler import profile as profile
    from stepscope.capture.schedule import schedule as schedule
    from stepscope.diffs.build import diff as diff
    from stepscope.profile.load import load as load
    from stepscope.reports.build import report as report

__version__ = "0.1.0"
__all__ = [
    "Profiler",
    "__version__",
    "annotate",
    "diff",
    "listen",
    "load",
    "op",
    "profile",
    "report",
    "schedule",
    "step",
]

# Imported when they are first used: `import stepscope` itself needs nothing but Python, since training jobs do it.
_PLACES = {
    "Profiler": "stepscope.capture.profiler",
    "annotate": "stepscope.capture.annotate",
    "diff": "stepscope.diffs.build",
    "listen": "stepscope.capture.listen",
    "load": "stepscope.profile.load",
    "load_ipython_extension": "stepscope.notebook.magics",
    "op": "stepscope.capture.op",
    "report": "stepscope.reports.build",
    "schedule": "stepscope.capture.schedule",
    "step": "stepscope.capture.annotate",
    "unload_ipython_extension": "stepscope.notebook.magics",
}
# A package that can be called: a function of the same name would be replaced as soon as someone imports from it.
_CALLED = ("profile",)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _CALLED:
        return import_module(f"stepscope.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'stepscope' has no attribute {name!r}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, *_CALLED})


if environ.get("STEPSCOPE_LISTEN", "0") not in ("", "0"):
    from stepscope.capture.launched import listen_if_asked

    listen_if_asked()
