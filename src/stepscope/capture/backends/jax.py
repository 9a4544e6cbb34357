"""JAX: jax.profiler, with the step markers that XProf wants."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from stepscope.capture.backends.base import Backend, Options
from stepscope.capture.backends.collector import Collector
from stepscope.capture.backends.exclusive import ours, unmarked
from stepscope.capture.backends.waits import wait_for_jax
from stepscope.capture.backends.xplane import written
from stepscope.capture.files.writer import Recorded


def make(options: Options) -> Backend:
    """The collector."""
    return JaxBackend(options)


def make_light(options: Options) -> Backend:
    """The collector of a light window."""
    return LightJaxBackend(options)


class JaxBackend(Collector):
    """One session of jax.profiler."""

    name = "jax"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._jax: Any = sys.modules["jax"]
        self._mark: Any = self._jax.profiler.TraceAnnotation

    def warm_up(self, folder: Path) -> None:
        """A session that is thrown away loads CUPTI and makes its buffers."""
        session = getattr(sys.modules.get("jax._src.profiler"), "_profiler", None)
        if session is not None and self._has_gpu():
            session.ProfilerSession(self._made()).stop()

    def start(self, folder: Path) -> None:
        self._folder = folder
        self._synchronize()
        options = self._made()
        self._turn.take()
        with ours():
            if options is None:
                self._jax.profiler.start_trace(str(folder))
            else:
                self._jax.profiler.start_trace(str(folder), profiler_options=options)
        self._began()

    def _made(self) -> Any:
        make = getattr(self._jax.profiler, "ProfileOptions", None)
        if make is None:
            return None
        options = make()
        options.host_tracer_level = 2
        options.python_tracer_level = 1 if self._options.stacks else 0
        options.device_tracer_level = 1 if self._options.device else 0
        options.enable_hlo_proto = True
        return options

    def _span_of_step(self, number: int) -> Any:
        # What StepTraceAnnotation makes, without its Python: Python calls are recorded.
        return self._mark("train", _r=1, step_num=number)

    def _stop_recording(self) -> None:
        self._jax.profiler.stop_trace()

    def save(self) -> list[Recorded]:
        return written(self._folder, self._stretches)

    def _let_go(self) -> None:
        self.end_step()
        self._mark = unmarked
        if self._is_running:
            self._is_running = False
            self._jax.profiler.stop_trace()

    def _synchronize(self) -> None:
        if self._options.sync:
            wait_for_jax(self._jax)

    def _is_up(self) -> bool:
        return bool(getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None))

    def _has_gpu(self) -> bool:
        return self._is_up() and any(device.platform == "gpu" for device in self._jax.local_devices())

    def devices(self) -> list[dict[str, Any]]:
        if not self._is_up():
            return []
        rows = []
        for device in self._jax.local_devices():
            row = {"id": device.id, "kind": device.platform, "name": device.device_kind}
            stats = device.memory_stats() or {}
            row |= {"memory_bytes": stats["bytes_limit"]} if "bytes_limit" in stats else {}
            rows.append(row)
        return rows

    def versions(self) -> dict[str, str]:
        jaxlib = sys.modules.get("jaxlib")
        found = {"jax": self._jax.__version__, "jaxlib": getattr(jaxlib, "__version__", None)}
        return {name: str(version) for name, version in found.items() if version}


class LightJaxBackend(JaxBackend):
    """The devices' tracer without those of the host and of Python; it records the driver's launches itself."""

    def _made(self) -> Any:
        options = super()._made()
        if options is None:
            raise RuntimeError("this version of JAX always records the host")
        options.host_tracer_level = 0
        options.python_tracer_level = 0
        options.enable_hlo_proto = False
        return options

    def save(self) -> list[Recorded]:
        return super().save()[:1]
