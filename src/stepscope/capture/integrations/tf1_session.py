"""TensorFlow 1: `MonitoredTrainingSession(hooks=[StepscopeHook("logs/run1")])` writes RunMetadata into an event file."""

from __future__ import annotations

import os
import sys
from typing import Any

from stepscope.capture.backends import tf1_session as backend
from stepscope.capture.integrations.common import base, profiler

_Hook: Any = base(
    ("tensorflow.compat.v1.train", "tensorflow.python.training.session_run_hook"),
    "SessionRunHook",
    "TensorFlow",
    "Install it: pip install tensorflow",
)


class StepscopeHook(_Hook):  # type: ignore[misc]
    """Traces some calls of `run`, each a step. TensorBoard and stepscope read the file. Options as for `Profiler`."""

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        super().__init__()
        self.profiler = profiler(folder, {"backends": (backend.NAME,)} | options)
        self._is_traced = False

    def after_create_session(self, session: Any, coord: Any) -> None:
        """The session is ready: so the schedule begins."""
        self.profiler.start()

    def before_run(self, run_context: Any) -> Any:
        """Ask for a trace of the run, where it is to be recorded."""
        self._is_traced = backend.current is not None
        if not self._is_traced:
            return None
        v1 = sys.modules["tensorflow"].compat.v1
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        return v1.train.SessionRunArgs(None, options=options)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Keep the trace; the step is over."""
        if self._is_traced and backend.current is not None:
            backend.current.add(run_values.run_metadata, run_context.session.graph)
        self.profiler.step()

    def end(self, session: Any) -> None:
        """Write what has not been written."""
        self.profiler.stop()
