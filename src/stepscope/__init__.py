"""Where every microsecond and every byte of a training step went, and what to change."""

from __future__ import annotations

from os import environ

TYPE_CHECKING = False  # of `typing`, whose import would take longer than everything else here
if TYPE_CHECKING:
    from typing import Any

    from stepscope.capture.annotate.annotate import annotate as annotate
    from stepscope.capture.annotate.annotate import step as step
    from stepscope.capture.annotate.op import op as op
    from stepscope.capture.profiler import Profiler as Profiler
    from stepscope.capture.profiler import profile as profile
    from stepscope.capture.remote.listen import listen as listen
    from stepscope.capture.schedule import schedule as schedule
    from stepscope.diffs.build import diff as diff
    from stepscope.profiles.load import load as load
    from stepscope.reports.build import report as report
    from stepscope.trial.in_process import try_ as try_

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
    "try_",
]

# Imported when they are first used: `import stepscope` itself needs nothing but Python, since training jobs do it.
_PLACES = {
    "Profiler": "stepscope.capture.profiler",
    "annotate": "stepscope.capture.annotate.annotate",
    "diff": "stepscope.diffs.build",
    "listen": "stepscope.capture.remote.listen",
    "load": "stepscope.profiles.load",
    "load_ipython_extension": "stepscope.notebook.magics",
    "op": "stepscope.capture.annotate.op",
    "profile": "stepscope.capture.profiler",
    "report": "stepscope.reports.build",
    "schedule": "stepscope.capture.schedule",
    "step": "stepscope.capture.annotate.annotate",
    "try_": "stepscope.trial.in_process",
    "unload_ipython_extension": "stepscope.notebook.magics",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module 'stepscope' has no attribute {name!r}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})


if environ.get("STEPSCOPE_LISTEN", "0") not in ("", "0"):
    from stepscope.capture.launch.inside_job import listen_if_asked

    listen_if_asked()
