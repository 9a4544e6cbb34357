"""No framework at all: annotations, sampled stacks and resident memory of a plain Python or NumPy loop."""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from stepscope.capture.backends.base import Backend, Options
from stepscope.capture.files.writer import Recorded
from stepscope.capture.machine.telemetry import resident_bytes
from stepscope.capture.process import clock, host_spans
from stepscope.capture.process.guarded import guarded_thread
from stepscope.capture.process.host_spans import Recorder, Sampler, Span

ENDING = ".trace.json"
_MEMORY_SECONDS = 0.01
_MEMORY = "resident memory"


def make(options: Options) -> Backend:
    """The collector."""
    return HostBackend(options)


class HostBackend:
    """Writes Chrome trace JSON, in the form that stepscope's own export has, so that kinds and steps are kept."""

    name = "host"
    in_run_folder = False

    def __init__(self, options: Options) -> None:
        self._options = options
        self._recorder = Recorder()
        self._sampler = Sampler()
        self._memory = _MemorySamples()
        self._step: tuple[int, int] | None = None
        self._base: dict[str, int] = {}
        self._folder = Path()
        self._threads: dict[int, str] = {}

    def warm_up(self, folder: Path) -> None:
        """Nothing has to be loaded."""

    def start(self, folder: Path) -> None:
        self._folder = folder
        self._base = clock.both()
        self._recorder.is_on = True
        host_spans.current = self._recorder
        if self._options.stacks:
            self._sampler.start()
        if self._options.memory:
            self._memory.start()

    def begin_step(self, number: int) -> None:
        self.end_step()
        self._step = number, time.perf_counter_ns()

    def end_step(self) -> None:
        if self._step is not None:
            number, start = self._step
            self._step = None
            now = time.perf_counter_ns()
            self._recorder.add(f"step {number}", "annotation", start, now, role="step", step=number)

    def pause(self) -> None:
        self._recorder.is_on = False
        self._sampler.is_paused = True

    def resume(self) -> None:
        self._recorder.is_on = True
        self._sampler.is_paused = False

    def stop(self) -> None:
        self._end()

    def _end(self) -> None:
        self._recorder.is_on = False
        self._step = None
        host_spans.current = None
        self._threads = {each.ident: each.name for each in threading.enumerate() if each.ident is not None}
        self._sampler.stop()
        self._memory.stop()

    def save(self) -> list[Recorded]:
        path = self._folder / f"trace{ENDING}"
        exact = self._recorder.spans
        # Callers before what they call: pieces of both that are cut at the same moments differ in their order alone.
        found = [*exact, *host_spans.cut(self._sampler.spans[::-1], exact)]
        with path.open("w", encoding="utf-8") as file:
            _write(file, found, self._memory.samples, self._base, self._threads)
        return [Recorded(path, ENDING)]

    def abandon(self) -> None:
        self._end()

    def devices(self) -> list[dict[str, Any]]:
        return [
            {
                "id": 0,
                "kind": "cpu",
                "name": platform.processor() or platform.machine(),
                "cores": os.cpu_count(),
            }
        ]

    def versions(self) -> dict[str, str]:
        numpy = sys.modules.get("numpy")
        return {} if numpy is None else {"numpy": str(numpy.__version__)}


class _MemorySamples:
    """The resident memory of the process, often enough to see it grow within a step."""

    def __init__(self) -> None:
        self.samples: list[tuple[int, int]] = []
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = guarded_thread(self._run, "stepscope-memory")

    def stop(self) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def _run(self) -> None:
        while not self._done.wait(_MEMORY_SECONDS):
            held = resident_bytes()
            if held is None:
                return
            self.samples.append((time.perf_counter_ns(), held))


def _write(
    file: IO[str],
    found: list[Span],
    memory: list[tuple[int, int]],
    base: dict[str, int],
    names: dict[int, str],
) -> None:
    """One event a line. Times are µs since the start of the window."""
    threads = {thread: track for track, thread in enumerate(dict.fromkeys(span.thread for span in found))}
    process = f"python ({os.getpid()})"
    tracks = [
        _track(track, names.get(thread, f"thread {thread}"), process) for thread, track in threads.items()
    ]
    if memory:
        tracks.append({"id": len(threads), "process": process, "thread": _MEMORY, "what": "counter"})
    header = {
        "form": 1,
        "shift_ns": 0,
        "info": {"format": "chrome", "framework": "python", "base_unix_ns": base["unix_ns"]},
        "problems": [],
        "tracks": tracks,
        "threads": [[track["id"] + 1, track["id"], 0] for track in tracks],
    }
    file.write(f'{{"stepscope":{json.dumps(header)},\n"displayTimeUnit":"ns",')
    file.write(f'"baseTimeNanoseconds":{base["unix_ns"]},"traceEvents":[\n')
    zero = base["perf_counter_ns"]
    lines = [*_names(tracks, process), *_events(found, threads, zero), *_samples(memory, len(threads), zero)]
    file.write(",\n".join(lines))
    file.write('\n],"stepscopeTables":{}}\n')


def _track(number: int, name: str, process: str) -> dict[str, Any]:
    return {"id": number, "process": process, "thread": name, "device_kind": "cpu", "what": "host"}


def _names(tracks: list[dict[str, Any]], process: str) -> Iterator[str]:
    pid = os.getpid()
    yield json.dumps({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": process}})
    for track in tracks:
        name = {"name": track["thread"]}
        yield json.dumps({"ph": "M", "name": "thread_name", "pid": pid, "tid": track["id"] + 1, "args": name})


def _events(found: list[Span], threads: dict[int, int], zero: int) -> Iterator[str]:
    pid = os.getpid()
    for number, span in enumerate(found):
        ours = {"id": number, "kind": span.kind, "role": span.role, "step": span.step}
        ours = {name: value for name, value in ours.items() if value is not None}
        yield json.dumps(
            {
                "ph": "X",
                "dur": (span.end_ns - span.start_ns) / 1000,
                "name": span.name,
                "cat": span.kind,
                "pid": pid,
                "tid": threads[span.thread] + 1,
                "ts": (span.start_ns - zero) / 1000,
                "args": {"stepscope": ours},
            }
        )


def _samples(memory: list[tuple[int, int]], track: int, zero: int) -> Iterator[str]:
    pid = os.getpid()
    for time_ns, held in memory:
        row = {
            "ph": "C",
            "name": _MEMORY,
            "pid": pid,
            "tid": track + 1,
            "ts": (time_ns - zero) / 1000,
        }
        yield json.dumps(row | {"args": {"value": held}})
