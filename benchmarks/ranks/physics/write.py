"""The files that torch.profiler would have written, one for each rank, each by the clock of its node."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from benchmarks.ranks.physics.case import FIRST_STEP, Case
from benchmarks.ranks.physics.facts import annotation, facts, kernel_name
from benchmarks.ranks.physics.job import WARM_UP
from benchmarks.ranks.physics.program import Busy, Call, Kernel, Stream, Sync
from benchmarks.ranks.physics.run import Done
from benchmarks.ranks.physics.work import ADAM, COPY_IN

_BASE_UNIX_NS = 1_790_857_026_000_000_000
_BEGIN_US = 4_000_000_000.0
_LARGEST_OFFSET_NS, _LARGEST_DRIFT = 5e6, 1e-5
_DEVICE = {
    "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_029_158_912, "computeMajor": 9, "computeMinor": 0,
    "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32,
    "sharedMemPerBlock": 49152, "numSms": 132, "regsPerMultiprocessor": 65536,
    "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472,
}  # fmt: skip
_COMPUTE_SHAPE = {
    "registers per thread": 168, "shared memory": 213_000, "blocks per SM": 16.0, "warps per SM": 192.0,
    "grid": [2112, 1, 1], "block": [384, 1, 1], "est. achieved occupancy %": 19,
}  # fmt: skip
_NCCL_SHAPE = {
    "registers per thread": 96, "shared memory": 82_240, "blocks per SM": 0.181818, "warps per SM": 3.090909,
    "grid": [24, 1, 1], "block": [544, 1, 1], "est. achieved occupancy %": 5,
}  # fmt: skip
_COPIED_BYTES = 1 << 18


@dataclass(frozen=True)
class Clock:
    """How far a node's clock is off at the start, and how fast that grows."""

    offset_ns: float
    drift: float

    def show_us(self, true_ns: float) -> float:
        """What a profile has for this true time."""
        return round(_BEGIN_US + (true_ns * (1 + self.drift) + self.offset_ns) / 1000, 3)


def clock(seed: int, node: int) -> Clock:
    """The clock of a node."""
    chance = Random(f"{seed} clock {node}")
    return Clock(
        chance.uniform(-_LARGEST_OFFSET_NS, _LARGEST_OFFSET_NS),
        chance.uniform(-_LARGEST_DRIFT, _LARGEST_DRIFT),
    )


def write_case(case: Case, folder: Path) -> None:
    """A profile for each rank, and `truth.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    layout = case.job.layout
    clocks = [clock(case.seed, node) for node in range(layout.nodes)]
    for rank in range(layout.world):
        node = layout.node(rank)
        name = f"node{node:02}_{4000 + rank}.{1790861026000 + rank}.pt.trace.json.gz"
        content = msgspec.json.encode(_Profile(case, rank, clocks[node]).document())
        (folder / name).write_bytes(gzip.compress(content, 2, mtime=0))
    truth = case.truth() | {"clock_offsets_ns": [round(each.offset_ns) for each in clocks]}
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


class _Profile:
    """The events of one rank."""

    def __init__(self, case: Case, rank: int, clock: Clock) -> None:
        self._case, self._rank, self._clock = case, rank, clock
        self._pid, self._device = 4000 + rank, rank % case.job.layout.per_node
        self._events: list[dict[str, Any]] = []
        self._id = 1000

    def document(self) -> dict[str, Any]:
        """The whole file."""
        for number, (begin, end) in enumerate(self._case.run.host[self._rank][WARM_UP:]):
            self._host(f"ProfilerStep#{FIRST_STEP + number}", "user_annotation", begin, end)
        for done in self._case.run.done[self._rank]:
            if done.step >= WARM_UP:
                self._add(done)
        self._name_tracks()
        return self._header() | {"traceEvents": self._events}

    def _add(self, done: Done) -> None:
        action = done.action
        if isinstance(action, Kernel):
            self._add_kernel(done, action)
        elif isinstance(action, Call):
            self._add_call(done, action)
        elif isinstance(action, Busy):
            self._host(action.name, "user_annotation", done.begin, done.end)
        elif isinstance(action, Sync):
            correlation = self._next()
            self._host("cudaStreamSynchronize", "cuda_runtime", done.begin, done.end, correlation=correlation)

    def _add_kernel(self, done: Done, kernel: Kernel) -> None:
        part, thread = kernel.part, int(kernel.backward)
        if part.kernel == ADAM[0]:
            self._host("Optimizer.step#FusedAdam.step", "user_annotation", done.begin - 500, done.end)
        copies = part.kernel == COPY_IN[0]
        external, correlation = self._next(), self._next()
        self._host(part.op, "cpu_op", done.begin, done.end, thread, **{"External id": external})
        runtime = "cudaMemcpyAsync" if copies else "cudaLaunchKernel"
        ids = {"External id": external, "correlation": correlation}
        self._host(runtime, "cuda_runtime", *done.launch, thread, cbid=211, **ids)
        if copies:
            speed = _COPIED_BYTES / (done.device[1] - done.device[0])
            shape: dict[str, Any] = {"bytes": _COPIED_BYTES, "memory bandwidth (GB/s)": speed}
        else:
            shape = {"queued": 0, **_COMPUTE_SHAPE}
        category = "gpu_memcpy" if copies else "kernel"
        self._on_device(part.kernel, category, Stream.COMPUTE, done.device, ids | shape)

    def _add_call(self, done: Done, call: Call) -> None:
        assert done.meeting is not None
        thread = int(call.backward)
        known = facts(self._case, self._rank, call, done.step)
        outer, inner, correlation = self._next(), self._next(), self._next()
        self._host(
            "record_param_comms", "cpu_op", done.begin, done.end, thread, **{"External id": outer}, **known
        )  # fmt: skip
        inside = (done.launch[0] - 4_000, done.launch[1] + 2_000)
        self._host(annotation(call), "user_annotation", *inside, thread, **{"External id": inner})
        ids = {"External id": inner, "correlation": correlation}
        self._host("cudaLaunchKernelExC", "cuda_runtime", *done.launch, thread, cbid=430, **ids)
        span = (done.device[0], done.meeting.ends[self._rank])
        self._on_device(
            kernel_name(call), "kernel", call.stream, span, ids | {"queued": 0} | _NCCL_SHAPE | known
        )

    def _host(
        self, name: str, category: str, begin: float, end: float, thread: int = 0, **args: Any
    ) -> None:  # fmt: skip
        self._span(name, category, self._pid, self._pid + 40 * thread, begin, end, args)

    def _on_device(
        self, name: str, category: str, stream: int, span: tuple[float, float], args: dict[str, Any]
    ) -> None:
        place = {"device": self._device, "context": 1, "stream": int(stream)}
        self._span(name, category, self._device, int(stream), *span, args | place)

    def _span(
        self, name: str, category: str, pid: int, tid: int, begin: float, end: float, args: dict[str, Any]
    ) -> None:
        begun, ended = self._clock.show_us(begin), self._clock.show_us(end)
        self._events.append(
            {
                "ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid,
                "ts": begun, "dur": max(round(ended - begun, 3), 0.001), "args": args,
            }
        )  # fmt: skip

    def _next(self) -> int:
        self._id += 1
        return self._id

    def _name_tracks(self) -> None:
        names = [
            (self._pid, 0, "process_name", {"name": "python3.12"}),
            (self._pid, 0, "process_labels", {"labels": "CPU"}),
            (self._device, 0, "process_name", {"name": "python3.12"}),
            (self._device, 0, "process_labels", {"labels": f"GPU {self._device}"}),
            (self._pid, self._pid, "thread_name", {"name": f"thread {self._pid} (python3.12)"}),
            (self._pid, self._pid + 40, "thread_name", {"name": f"thread {self._pid + 40} (pt_autograd_0)"}),
        ]
        for pid, tid, name, args in names:
            self._events.append(
                {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": _BEGIN_US, "args": args}
            )

    def _header(self) -> dict[str, Any]:
        layout = self._case.job.layout
        groups = layout.groups_of(self._rank)
        configs = [
            {
                "pg_name": group.name, "pg_desc": group.description, "backend_config": "cuda:nccl",
                "pg_size": len(group.ranks), "ranks": list(group.ranks),
            }
            for group in groups
        ]  # fmt: skip
        return {
            "schemaVersion": 1,
            "deviceProperties": [{"id": device, **_DEVICE} for device in range(layout.per_node)],
            "cuda_runtime_version": 12040,
            "cuda_driver_version": 12040,
            "distributedInfo": {
                "backend": "nccl", "rank": self._rank, "world_size": layout.world, "pg_count": len(configs),
                "pg_config": configs, "nccl_version": "2.21.5",
            },
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": _BASE_UNIX_NS,
        }  # fmt: skip
