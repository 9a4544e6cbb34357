"""TensorFlow 1: the RunMetadata of traced calls of Session.run, in an event file. A hook of the session hands them over."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from stepscope.capture.backends.base import Backend, Options
from stepscope.capture.files.identity import host_name
from stepscope.capture.files.writer import Recorded
from stepscope.capture.process.troubles import tell

NAME = "session"
# The one that records now, if one does: it is asked on every run.
current: SessionBackend | None = None


def make(options: Options) -> Backend:
    """The collector."""
    return SessionBackend(options)


class SessionBackend:
    """Writes through TensorFlow's own writer of event files."""

    name = NAME
    in_run_folder = False

    def __init__(self, options: Options) -> None:
        self._tf: Any = sys.modules["tensorflow"]
        self._folder = Path()
        self._writer: Any = None
        self._step = 0
        self._has_graph = False

    def warm_up(self, folder: Path) -> None:
        """Nothing has to be loaded."""

    def start(self, folder: Path) -> None:
        global current
        self._folder = folder
        with self._tf.Graph().as_default():  # the writer refuses to work beside eager execution
            self._writer = self._tf.compat.v1.summary.FileWriter(str(folder))
        current = self

    def add(self, metadata: Any, graph: Any) -> None:
        """The trace of one run. Never raises: the session calls it."""
        try:
            if not self._has_graph:
                self._has_graph = True
                self._writer.add_graph(graph)
            self._writer.add_run_metadata(metadata, f"step {self._step}", self._step)
        except Exception as error:
            tell(f"the RunMetadata of step {self._step} was not written: {type(error).__name__}: {error}")

    def begin_step(self, number: int) -> None:
        self._step = number

    def end_step(self) -> None:
        """The run itself is the step."""

    def pause(self) -> None:
        global current
        current = None

    def resume(self) -> None:
        global current
        current = self

    def stop(self) -> None:
        self.pause()
        self._writer.close()

    def save(self) -> list[Recorded]:
        found = sorted(self._folder.glob("*tfevents*"))
        if not found:
            raise RuntimeError("TensorFlow wrote no event file")
        # TensorBoard takes every file for events that has tfevents in its name: the sidecar must not.
        return [Recorded(found[-1], f".events.out.tfevents.{int(time.time())}.{host_name()}")]

    def abandon(self) -> None:
        self.pause()
        if self._writer is not None:
            self._writer.close()

    def devices(self) -> list[dict[str, Any]]:
        return []

    def versions(self) -> dict[str, str]:
        return {"tensorflow": str(self._tf.__version__)}
