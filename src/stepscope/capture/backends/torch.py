"""PyTorch: torch.profiler with everything on that makes a profile complete."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepscope.capture.backends.base import Backend, Options
from stepscope.capture.backends.collector import Collector
from stepscope.capture.backends.cupti import detach_from_now_on, stay_attached
from stepscope.capture.backends.cut_kineto import cut
from stepscope.capture.backends.exclusive import AnotherProfiler, ours, unmarked
from stepscope.capture.backends.waits import wait_for_torch
from stepscope.capture.files.writer import Recorded, packed

ENDING = ".pt.trace.json"


def make(options: Options) -> Backend:
    """The collector."""
    return TorchBackend(options)


def make_light(options: Options) -> Backend:
    """The collector of a light window."""
    return LightTorchBackend(options)


class TorchBackend(Collector):
    """Drives torch.profiler by hand: its own `step()` costs microseconds even when nothing is recorded."""

    name = "torch"
    in_run_folder = False

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._torch: Any = sys.modules["torch"]
        self._mark: Any = self._torch.profiler.record_function
        self._profiler: Any = None

    def warm_up(self, folder: Path) -> None:
        self._folder = folder
        if self._torch.autograd._profiler_enabled():
            raise AnotherProfiler(self.name)
        self._turn.take()
        with self._mark("stepscope"):
            pass  # the first of a process imports a module (PyTorch 2.13), which took 10 ms of the first step
        self._profiler = self._made()
        with ours(), _inductor_unasked(self._torch), warnings.catch_warnings():
            # That it forgets earlier windows is as we want it: each has a file of its own.
            warnings.filterwarnings("ignore", message=".*clears events at the end of each cycle")
            self._profiler.prepare_trace()

    def start(self, folder: Path) -> None:
        self._turn.check()
        if self._profiler is None:
            self.warm_up(folder)
        self._synchronize()
        with ours():
            self._profiler.start_trace()
        self._began()

    def _made(self) -> Any:
        profiler = self._torch.profiler
        activities = profiler.supported_activities()
        if not self._options.device:
            activities = {profiler.ProfilerActivity.CPU}
        return profiler.profile(
            activities=activities,
            record_shapes=self._options.shapes,
            profile_memory=self._options.memory,
            with_stack=self._options.stacks,
            with_flops=self._options.flops,
            with_modules=self._options.stacks,
            experimental_config=self._experimental(),
        )

    def _experimental(self) -> Any:
        """Waits of streams for each other are recorded only on request, and only newer versions know the request."""
        try:
            return self._torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
        except Exception:
            return None

    def _span_of_step(self, number: int) -> Any:
        return self._mark(f"ProfilerStep#{number}")

    def _stop_recording(self) -> None:
        if self._options.detach:
            detach_from_now_on(self._torch)
        self._profiler.stop_trace()

    def save(self) -> list[Recorded]:
        path = self._folder / f"trace{ENDING}"
        self._profiler.export_chrome_trace(str(path))
        self._free_results()
        if self._stretches.was_paused:
            self._stretches.pause()
            cut(path, self._stretches.done)
        return [packed(path, ENDING) if self._options.packed else Recorded(path, ENDING)]

    def _let_go(self) -> None:
        self.end_step()
        self._mark = unmarked
        profiler = self._profiler
        if self._is_running and profiler is not None:
            self._is_running = False
            profiler.stop_trace()
        elif profiler is not None and getattr(profiler, "profiler", None) is not None:
            # Prepared but never started: torch has no other way to let go of the collector.
            profiler.start_trace()
            profiler.stop_trace()
        self._free_results()

    def _free_results(self) -> None:
        """Now, while the job waits. torch's object refers to itself, so a collection of garbage would free it: up to a second, in
        a step that is not recorded and may be timed."""
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.profiler = None

    def _synchronize(self) -> None:
        """So that work from before the window does not run into it, and work of the window is all recorded."""
        if self._options.sync:
            wait_for_torch(self._torch)

    def devices(self) -> list[dict[str, Any]]:
        torch = self._torch
        if not torch.cuda.is_available() or not torch.cuda.is_initialized():
            return []
        rows = []
        for index in range(torch.cuda.device_count()):
            facts = torch.cuda.get_device_properties(index)
            row = {"id": index, "kind": "gpu", "name": facts.name, "memory_bytes": facts.total_memory}
            row |= {
                "multiprocessors": facts.multi_processor_count,
                "capability": f"{facts.major}.{facts.minor}",
            }
            row["current"] = index == torch.cuda.current_device()
            rows.append(row)
        return rows

    def versions(self) -> dict[str, str]:
        torch = self._torch
        found = {"torch": str(torch.__version__), "cuda": torch.version.cuda, "hip": torch.version.hip}
        triton = sys.modules.get("triton")
        found["triton"] = getattr(triton, "__version__", None)
        return {name: str(version) for name, version in found.items() if version}


class LightTorchBackend(TorchBackend):
    """Device activity and the calls that launch it; ops, shapes and stacks are what slows the host."""

    def _made(self) -> Any:
        profiler = self._torch.profiler
        return profiler.profile(activities=[profiler.ProfilerActivity.CUDA])

    def _stop_recording(self) -> None:
        with stay_attached():
            self._profiler.stop_trace()

    def save(self) -> list[Recorded]:
        path = self._folder / f"trace{ENDING}"
        self._profiler.export_chrome_trace(str(path))
        self._free_results()
        return [packed(path, ENDING)]


class _WithoutInductor:
    """torch, as if it had none."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def __getattr__(self, name: str) -> Any:
        if name == "_inductor":
            raise AttributeError(name)
        return getattr(self._torch, name)


@contextmanager
def _inductor_unasked(torch: Any) -> Iterator[None]:
    """torch.profiler asks Inductor whether it makes CUDA graphs, and imports all of it to ask: seconds, in which the job waits.

    A job that has not imported it makes none with it.
    """
    module: Any = sys.modules.get("torch.profiler.profiler")
    is_wanted = "torch._inductor" in sys.modules or os.environ.get("TORCHINDUCTOR_CUDAGRAPHS") == "1"
    if is_wanted or getattr(module, "torch", None) is not torch:
        yield
        return
    module.torch = _WithoutInductor(torch)
    try:
        yield
    finally:
        module.torch = torch
