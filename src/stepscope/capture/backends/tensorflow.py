"""TensorFlow: tf.profiler, also for Keras on TensorFlow and for sessions of TensorFlow 1."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepscope.capture.backends.base import Backend, Options
from stepscope.capture.backends.collector import Collector
from stepscope.capture.backends.exclusive import ours
from stepscope.capture.backends.python_frames import add_frames
from stepscope.capture.backends.waits import wait_for_tensorflow
from stepscope.capture.backends.xplane import written
from stepscope.capture.files.writer import Recorded
from stepscope.capture.process import clock
from stepscope.capture.process.host_spans import Sampler

_STEP = "train"


def make(options: Options) -> Backend:
    """The collector."""
    return TensorFlowBackend(options)


class TensorFlowBackend(Collector):
    """One session of tf.profiler."""

    name = "tensorflow"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._tf: Any = sys.modules["tensorflow"]
        self._profiler: Any = self._tf.profiler.experimental
        self._sampler = Sampler()
        self._thread = 0
        self._clock_offset_ns = 0

    def warm_up(self, folder: Path) -> None:
        """A session that is thrown away loads CUPTI and makes its buffers."""
        if self._tf.config.list_physical_devices("GPU"):
            self._turn.take()
            with ours():
                self._profiler.start(str(folder / "warmup"))
                self._profiler.stop(save=False)

    def start(self, folder: Path) -> None:
        self._folder = folder
        self._synchronize()
        options = self._profiler.ProfilerOptions(
            host_tracer_level=2,
            python_tracer_level=1 if self._options.stacks else 0,
            device_tracer_level=1 if self._options.device else 0,
        )
        self._turn.take()
        with ours():
            asked = time.time_ns()
            self._profiler.start(str(folder), options=options)
        self._began(asked)
        self._thread = threading.get_ident()
        if self._options.stacks:
            now = clock.both()
            self._clock_offset_ns = now["unix_ns"] - now["perf_counter_ns"]
            self._sampler.start()

    def begin_step(self, number: int) -> None:
        self._turn.check()
        self._thread = threading.get_ident()
        super().begin_step(number)

    def _span_of_step(self, number: int) -> Any:
        return self._profiler.Trace(_STEP, step_num=number, _r=1)

    def pause(self) -> None:
        self._sampler.is_paused = True
        super().pause()

    def resume(self) -> None:
        super().resume()
        self._sampler.is_paused = False

    def _stop_recording(self) -> None:
        self._sampler.stop()
        self._profiler.stop(save=True)

    def save(self) -> list[Recorded]:
        files = written(self._folder, self._stretches)
        # Callers before what they call: pieces of both that are cut at the same moments differ in their order alone.
        spans = [span for span in self._sampler.spans[::-1] if span.thread == self._thread]
        try:
            add_frames(files[0].path, spans, self._clock_offset_ns, _STEP)
        except ValueError as error:
            return [replace(files[0], no_frames=str(error)), *files[1:]]
        return files

    def _let_go(self) -> None:
        self.end_step()
        self._sampler.stop()
        if self._is_running:
            self._is_running = False
            self._profiler.stop(save=False)

    def _synchronize(self) -> None:
        if self._options.sync:
            wait_for_tensorflow(self._tf)

    def devices(self) -> list[dict[str, Any]]:
        rows = []
        for index, device in enumerate(self._tf.config.list_physical_devices("GPU")):
            facts = self._tf.config.experimental.get_device_details(device)
            row = {"id": index, "kind": "gpu", "name": facts.get("device_name", device.name)}
            capability = facts.get("compute_capability")
            row |= {"capability": ".".join(map(str, capability))} if capability else {}
            rows.append(row)
        return rows

    def versions(self) -> dict[str, str]:
        keras = sys.modules.get("keras")
        build = self._tf.sysconfig.get_build_info()
        found = {"tensorflow": self._tf.__version__, "keras": getattr(keras, "__version__", None)}
        found["cuda"] = build.get("cuda_version")
        return {name: str(version) for name, version in found.items() if version}
