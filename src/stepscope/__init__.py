"""Where every microsecond and every byte of a training step went, and what to change."""

from __future__ import annotations

import sys
from os import environ, path

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

__version__ = "0.2.0"  # the only place: both distributions read it here
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
    try:
        value = getattr(import_module(_PLACES[name]), name)
    except ModuleNotFoundError as error:
        if error.name is None or not _PLACES[name].startswith(error.name):
            raise
        from stepscope.errors import not_installed

        raise not_installed(f"stepscope.{name}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})


def _find_the_rest() -> None:
    """The recorder and the rest are two distributions: an environment on top of another may hold only one of them."""
    for entry in [each for each in sys.path if each and isinstance(each, str)]:
        folder = path.join(entry, "stepscope")  # noqa: PTH118 (pathlib would take longer than all this)
        is_part = path.isfile(path.join(folder, "cli", "__init__.py"))  # noqa: PTH113, PTH118
        if is_part and not path.exists(path.join(folder, "__init__.py")):  # noqa: PTH110, PTH118
            __path__.append(folder)


_find_the_rest()
if environ.get("STEPSCOPE_LISTEN", "0") not in ("", "0"):
    from stepscope.capture.launch.inside_job import listen_if_asked

    listen_if_asked()
