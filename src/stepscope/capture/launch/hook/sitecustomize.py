"""Every Python process of a job that `stepscope run` launched imports this first: it begins to watch, then makes room.

Whatever fails in here must leave the process as it would be without it. A sitecustomize that the job has itself runs as ever.
"""

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (this runs in every process: no pathlib)


def _begin() -> None:
    """Load stepscope from where it is, without showing the job anything else that is installed there."""
    if sys.version_info < (3, 10):  # noqa: UP036 (the Python of the job need not be ours)
        return
    from importlib.util import module_from_spec, spec_from_file_location

    if "stepscope" not in sys.modules:
        root = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))  # noqa: PTH120
        spec = spec_from_file_location(
            "stepscope",
            os.path.join(root, "__init__.py"),  # noqa: PTH118
            submodule_search_locations=[root],
        )
        if spec is None or spec.loader is None:
            return
        module = module_from_spec(spec)
        sys.modules["stepscope"] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules["stepscope"]
            raise
    from stepscope.capture.launch.inside_job import begin

    begin()


def _make_room() -> None:
    """Leave the path, and let the job's own sitecustomize run in our place; what it raises is its own."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _begin()
except Exception as error:
    try:
        sys.stderr.write(f"stepscope: this process is not recorded: {type(error).__name__}: {error}\n")
    except Exception:  # a closed stderr
        pass
_make_room()
