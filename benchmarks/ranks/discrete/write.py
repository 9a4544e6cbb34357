"""The files that profilers of the ranks would have written, each by its own clock."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.ranks.discrete.plan import Call
from benchmarks.ranks.discrete.run import Meeting, Simulation, Step
from benchmarks.ranks.job import TrueClock
from benchmarks.ranks.nccl import ELEMENTS, KERNELS

_BASE_UNIX_NS = 1_790_857_026_000_000_000
_BEGIN_US = 4_000_000_000.0
START_UNIX_NS = _BASE_UNIX_NS + round(
    1000 * _BEGIN_US
)  # what a clock without offset shows at the true time 0
_NAMES = {
    "all_reduce": "allreduce",
    "all_gather": "_allgather_base",
    "reduce_scatter": "_reduce_scatter_base",
}
_LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
_STREAM, _FIRST_COLLECTIVE_STREAM = 7, 20


def clock(simulation: Simulation, rank: int) -> TrueClock:
    """How far the rank's clock is off."""
    chance, case = simulation.chance("clock", rank), simulation.case
    offset_us = chance.uniform(-case.offset_ns / 1000, case.offset_ns / 1000)
    return TrueClock(1000 * offset_us, chance.uniform(-case.drift_ppm, case.drift_ppm) * 1e-6)


def file_name(rank: int) -> str:
    """The name of a rank's file."""
    return f"rank{rank}.pt.trace.json"


def write(simulation: Simulation, ranks: Sequence[Sequence[Step]], folder: Path) -> None:
    """A file for each rank that is not missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, steps in enumerate(ranks):
        if rank not in simulation.case.missing:
            profile = _Profile(simulation, rank)
            for step in steps[1:] if rank in simulation.case.cut_off else steps:
                profile.add_step(step)
            (folder / file_name(rank)).write_bytes(msgspec.json.encode(profile.finished()))


class _Profile:
    """The events of one rank."""

    def __init__(self, simulation: Simulation, rank: int) -> None:
        self._simulation, self._rank = simulation, rank
        self._pid = 4000 + rank
        self._clock = clock(simulation, rank)
        self._events: list[dict[str, Any]] = []
        self._correlation = 1000
        self._streams: dict[str, int] = {}

    def add_step(self, step: Step) -> None:
        """All that the rank did in it."""
        self._add(
            f"ProfilerStep#{step.number + 5}", "user_annotation", 0, step.start, step.end - step.start - 0.3
        )
        self._add(_LOADER, "user_annotation", 0, step.start, step.loader)
        for start, dur, thread in step.delays:
            self._add("train.py(41): log_metrics", "python_function", thread, start + 0.2, dur - 0.4)
        self._add_host(step)
        for meeting, number, posted, thread in step.calls:
            self._add_call(meeting, number, posted, thread)
        if step.waited is not None:
            self._add("cudaStreamSynchronize", "cuda_runtime", 0, *step.waited, correlation=self._next())

    def finished(self) -> dict[str, Any]:
        """The whole file."""
        world = self._simulation.case.ranks
        for pid, label in ((self._pid, "CPU"), (0, "GPU 0")):
            args = {"labels": label}
            self._events.append(
                {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "ts": _BEGIN_US, "args": args}
            )
        return {
            **self._simulation.source.header,
            "distributedInfo": {"backend": "nccl", "rank": self._rank, "world_size": world},
            "baseTimeNanoseconds": _BASE_UNIX_NS,
            "traceEvents": self._events,
        }

    def _next(self) -> int:
        self._correlation += 1
        return self._correlation

    def _shown(self, true: float) -> float:
        return round(_BEGIN_US + self._clock.show(1000 * true) / 1000, 3)

    def _add(
        self,
        name: str,
        category: str,
        thread: int,
        start: float,
        dur: float,
        pid: int | None = None,
        **args: Any,
    ) -> None:
        begun, ended = self._shown(start), self._shown(start + dur)
        tid = self._pid + thread if pid is None else thread
        self._events.append(
            {
                "ph": "X", "cat": category, "name": name, "pid": self._pid if pid is None else pid, "tid": tid,
                "ts": begun, "dur": max(round(ended - begun, 3), 0.001), "args": args,
            }
        )  # fmt: skip

    def _add_host(self, step: Step) -> None:
        """Host events, moved to where the host was then, and the kernels that they launched."""
        launched: dict[int, int] = {}
        for number, event in enumerate(self._simulation.source.events):
            args = dict(event.args)
            if event.category.startswith("cuda"):
                launched[number] = args["correlation"] = self._next()
            start, end = (
                _moved(step.moments, event.start, after=True),
                _moved(step.moments, event.end, after=False),
            )
            self._add(event.name, event.category, event.thread, start, max(end - start, 0.001), **args)
        for number, which, start, dur in step.kernels:
            kernel = self._simulation.source.events[number].kernels[which]
            args = {**kernel.args, "device": 0, "stream": _STREAM, "correlation": launched[number]}
            if "grid" in args:
                wide, *rest = args["grid"]
                args["grid"] = [max(1, round(wide * step.work)), *rest]
            self._add(kernel.name, kernel.category, _STREAM, start, dur, 0, **args)

    def _add_call(self, meeting: Meeting, number: int, posted: float, thread: int) -> None:
        call, correlation = meeting.call, self._next()
        stream = self._streams.setdefault(call.group, _FIRST_COLLECTIVE_STREAM + 4 * len(self._streams))
        facts = self._facts(call) if self._simulation.case.named and call.name in _NAMES else {}
        if facts and self._simulation.case.seed % 2:
            facts["Seq"] = number
        self._add("record_param_comms", "cpu_op", thread, posted + 1, 14, **facts)
        self._add("cudaLaunchKernel", "cuda_runtime", thread, posted + 6, 7, correlation=correlation)
        start, end = meeting.starts[self._rank], meeting.ends[self._rank]
        place = {
            "device": 0,
            "stream": stream,
            "correlation": correlation,
            "grid": [8, 1, 1],
            "block": [544, 1, 1],
        }
        self._add(KERNELS[call.name], "kernel", stream, start, end - start, 0, **place, **facts)

    def _facts(self, call: Call) -> dict[str, Any]:
        size = len(call.members)
        sent = ELEMENTS // size if call.name == "all_gather" else ELEMENTS
        got = ELEMENTS // size if call.name == "reduce_scatter" else ELEMENTS
        return {
            "Collective name": _NAMES[call.name], "In msg nelems": sent, "Out msg nelems": got, "dtype": "Float",
            "Group size": size, "Process Group Name": call.group, "Process Group Ranks": str(list(call.members)),
        }  # fmt: skip


def _moved(moments: list[tuple[float, float]], at: float, *, after: bool) -> float:
    """When the host was at this moment of the source; where it stood still, `after` that or before."""
    find = bisect_right if after else bisect_left
    place = min(max(find(moments, at, key=lambda each: each[0]) - 1, 0), len(moments) - 2)
    (low, start), (high, end) = moments[place], moments[place + 1]
    share = (at - low) / (high - low) if high > low else float(after)
    return start + min(max(share, 0.0), 1.0) * (end - start)
