"""One real step of one rank, cut out of its profile: what the host did, what it launched, where it waited. Times in µs."""

from __future__ import annotations

import gzip
import json
import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.ranks.sources import SOURCES, find_source

_LAUNCHES = 60  # of a step are kept: enough for hosts to run ahead, few enough for many ranks
_HOST = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
_CALL = ("cuda_runtime", "cuda_driver")
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_OTHERS = re.compile(r"nccl|gloo|record_param_comms|c10d|ProfilerStep|DataLoader|Reducer|all_to_all", re.I)
_KEPT_OF_KERNEL = ("grid", "block", "registers per thread", "shared memory", "bytes")
_KEPT_OF_OP = ("Input Dims", "Input type")
_QUIET_US = 0.6  # a shorter silence is none between ops

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Kernel:
    """Anything on the device."""

    name: str
    category: str
    dur: float
    args: dict[str, Any]


@dataclass(frozen=True)
class HostEvent:
    """From the beginning of the step; `thread` is counted from the main one."""

    name: str
    category: str
    thread: int
    start: float
    dur: float
    args: dict[str, Any]
    kernels: tuple[Kernel, ...] = ()
    waits: bool = False  # for the device

    @property
    def end(self) -> float:
        """Its end."""
        return self.start + self.dur


@dataclass(frozen=True)
class Source:
    """`quiet`: moments between ops, at which something else can be put in, with the thread that acted last."""

    length: float
    events: tuple[HostEvent, ...]
    quiet: tuple[tuple[float, int], ...]
    header: dict[str, Any] = field(default_factory=dict)

    def near(self, share: float) -> tuple[float, int]:
        """The moment between ops that follows this share of the step."""
        at = bisect_left(self.quiet, (share * self.length, 0))
        return self.quiet[min(at, len(self.quiet) - 1)]


def paths() -> dict[str, Path]:
    """The recordings: ours, and those of the corpus where there is one."""
    found = {
        name: find_source(name) for name, (_, file) in SOURCES.items() if file.endswith(".pt.trace.json.gz")
    }
    corpus = os.environ.get("STEPSCOPE_CORPUS")
    if corpus:
        names = ("ddp_rank0", "dqn_launch_bound", "gpt_bf16_eager", "resnet_input_bound")
        more = {name: Path(corpus) / "h200" / f"{name}.pt.trace.json.gz" for name in names}
        found |= {name: path for name, path in more.items() if path.exists()}
    return found


@cache
def source_of(path: Path) -> Source:
    """A step of this recording."""
    with gzip.open(path) as file:
        profile = json.load(file)
    events = [event for event in profile["traceEvents"] if event.get("ph") == "X"]
    steps = [
        event
        for event in events
        if event["name"].startswith("ProfilerStep") and event["cat"] == "user_annotation"
    ]
    step = sorted(steps, key=lambda event: event["ts"])[min(1, len(steps) - 1)]
    kernels = _kernels(events)
    start, end = _window(events, kernels, step)
    host = tuple(_host(events, kernels, step, start, end))
    header = {name: profile[name] for name in ("schemaVersion", "deviceProperties") if name in profile}
    return Source(end - start, host, tuple(_quiet(host, end - start)), header)


def _kernels(events: list[Event]) -> dict[int, list[Kernel]]:
    """By correlation what was launched."""
    found: dict[int, list[Kernel]] = {}
    for event in events:
        if event.get("cat") in _DEVICE and not _OTHERS.search(event["name"]):
            args = {name: event["args"][name] for name in _KEPT_OF_KERNEL if name in event["args"]}
            kernel = Kernel(event["name"], event["cat"], event["dur"], args)
            found.setdefault(event["args"].get("correlation"), []).append(kernel)
    return found


def _window(events: list[Event], kernels: Mapping[int, list[Kernel]], step: Event) -> tuple[float, float]:
    """The step, or the middle of it if it launches more than is wanted."""
    start, end = step["ts"], step["ts"] + step["dur"]
    launches = sorted(
        event["ts"]
        for event in events
        if event.get("cat") in _CALL and _launched(event, kernels) and start <= event["ts"] < end
    )
    if len(launches) <= _LAUNCHES:
        return start, end
    first = (len(launches) - _LAUNCHES) // 2
    return launches[first] - 1, launches[first + _LAUNCHES] - 1


def _launched(event: Event, kernels: Mapping[int, list[Kernel]]) -> list[Kernel]:
    return kernels.get(event.get("args", {}).get("correlation"), [])


def _host(
    events: list[Event], kernels: Mapping[int, list[Kernel]], step: Event, start: float, end: float
) -> Iterator[HostEvent]:
    threads = {step["tid"]: 0}
    ours = (event for event in events if event.get("cat") in _HOST and event["pid"] == step["pid"])
    for event in sorted(ours, key=lambda event: (event["ts"], -event["dur"])):
        begun, ended = max(event["ts"], start), min(event["ts"] + event["dur"], end)
        launched, calls = _launched(event, kernels), event["cat"] in _CALL
        waits = calls and not launched and "ynchronize" in event["name"]
        if ended <= begun or _OTHERS.search(event["name"]) or (calls and not launched and not waits):
            continue
        if event["cat"] == "user_annotation" and ended - begun < event["dur"]:
            continue  # what was cut off would span all
        args = {name: event["args"][name] for name in _KEPT_OF_OP if name in event.get("args", {})}
        thread = threads.setdefault(event["tid"], len(threads))
        yield HostEvent(
            event["name"], event["cat"], thread, begun - start, ended - begun, args, tuple(launched), waits
        )


def _quiet(host: tuple[HostEvent, ...], length: float) -> Iterator[tuple[float, int]]:
    end, last = 0.0, 0
    for event in host:
        if event.category == "user_annotation":
            continue
        if event.start - end > _QUIET_US:
            yield (event.start + end) / 2, last
        if event.end > end:
            end, last = event.end, event.thread
    yield min(end + 0.1, length), last
