"""What a job of many ranks costs on Dask when ranks have more events, and more tensor-parallel calls.

Each rank computes and reduces with the eight ranks of its machine, once or many times a step, and at its end with those of the other machines that
have its place. What is measured is the report of all ranks with two workers: time, and the peaks of memory of the client and of the larger worker.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.promises import Promise

TENSOR, STEPS = 8, 4
KERNEL_US, CALL_US = 100.0, 20.0
FLAT = 1.2
_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_MEASURED = """
import json, resource, sys, time
from stepscope.cluster.report import report

def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def cpu(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime

if __name__ == "__main__":
    import distributed
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=None, silence_logs=50)
    client = cluster.get_client()
    client.wait_for_workers(2)
    before, begin = cpu(resource.RUSAGE_SELF), time.perf_counter()
    found = report(sys.argv[1], where=client, cache=False)
    seconds, used = time.perf_counter() - begin, cpu(resource.RUSAGE_SELF) - before
    workers, mine = max(client.run(peak_mb).values()), peak_mb()
    client.close()
    cluster.close()
    print(json.dumps({"seconds": seconds, "client_seconds": used, "worker_seconds": cpu(resource.RUSAGE_CHILDREN),
        "client_mb": mine, "worker_mb": workers, "ranks": len(found.profile.ranks), "events": found.profile.events,
        "meetings": found.collectives.matched}))
"""


@dataclass(frozen=True)
class Cost:
    """Of one report; the client's time includes Dask's scheduler, which runs in it."""

    seconds: float
    client_seconds: float
    worker_seconds: float
    client_mb: float
    worker_mb: float
    ranks: int
    events: int
    meetings: int

    def line(self) -> str:
        """For people."""
        cpu = (self.client_seconds + self.worker_seconds) / self.ranks
        return (
            f"{self.ranks:,} ranks, {self.events // self.ranks:,} events each, {self.meetings:,} meetings: {self.seconds:.0f} s, "
            f"{cpu:.3f} s of processors for a rank; client {self.client_mb:.0f} MB, worker {self.worker_mb:.0f} MB"
        )


def measure_flat(folder: Path, ranks: int, kernels: list[int], calls: list[int]) -> list[Promise]:
    """Few of both, then many kernels a step, then many calls; memory must be the same."""
    script = folder / "flat.py"
    script.write_text(_MEASURED)
    few = _measure(script, write_job(folder / "few", ranks, min(kernels), min(calls)))
    events = _measure(script, write_job(folder / "events", ranks, max(kernels), min(calls)))
    meetings = _measure(script, write_job(folder / "calls", ranks, min(kernels), max(calls)))
    return [
        Promise(f"{who}'s memory, {times:.0f} times the {what}", getattr(more, name) / getattr(few, name), FLAT, False)
        for what, more, times in (
            ("events", events, events.events / few.events),
            ("tensor-parallel calls", meetings, max(calls) / min(calls)),
        )
        for who, name in (("client", "client_mb"), ("worker", "worker_mb"))
    ]  # fmt: skip


def write_job(folder: Path, ranks: int, kernels: int, calls: int) -> Path:
    """A file for each rank, with this number of kernels and of calls in a step."""
    folder.mkdir()
    for rank in range(ranks):
        document = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
            "traceEvents": list(_events(rank, ranks, kernels, calls)),
        }
        (folder / f"rank{rank}.pt.trace.json").write_text(json.dumps(document))
    return folder


def _events(rank: int, ranks: int, kernels: int, calls: int) -> Iterator[dict[str, Any]]:
    """Every rank is a little slower than the one before in its machine, and waits less."""
    machine = list(range(rank - rank % TENSOR, min(ranks, rank - rank % TENSOR + TENSOR)))
    replicas = list(range(rank % TENSOR, ranks, TENSOR))
    slower = rank % TENSOR / TENSOR
    at, number = 1e6 + 3.0 * (rank // TENSOR), 0
    for step in range(STEPS):
        begun = at
        for turn in range(calls):
            for _ in range(max(1, kernels // calls)):
                number += 1
                yield from _kernel("gemm", at, KERNEL_US, number, 7)
                at += KERNEL_US + 1
            number += 1
            args = _group("tp", machine, step * calls + turn)
            yield from _kernel(_REDUCE, at + slower, CALL_US - slower, number, 7, **args)
            at += CALL_US + 1
        number += 1
        yield from _kernel(_REDUCE, at, CALL_US, number, 7, **_group("dp", replicas, step))
        at += CALL_US + 10
        yield _span("user_annotation", f"ProfilerStep#{step}", begun - 10, at - begun - 1)


def _kernel(
    name: str, at: float, us: float, number: int, stream: int, **args: Any
) -> Iterator[dict[str, Any]]:
    place = {"device": 0, "stream": stream, "correlation": number, "grid": [64, 1, 1], "block": [128, 1, 1]}
    yield _span("cuda_runtime", "cudaLaunchKernel", at - 5, 2, correlation=number)
    yield _span("kernel", name, at, us, 0, stream, **place, **args)


def _group(kind: str, ranks: list[int], number: int) -> dict[str, Any]:
    return {
        "Collective name": "allreduce",
        "In msg nelems": 1_000_000,
        "Out msg nelems": 1_000_000,
        "dtype": "BFloat16",
        "Group size": len(ranks),
        "Process Group Ranks": str(ranks),
        "Process Group Name": f"{kind} {ranks[0]}",
        "Seq": number,
    }


def _span(
    cat: str, name: str, ts: float, dur: float, pid: int = 1, tid: int = 1, **args: Any
) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "ts": round(ts, 3), "dur": round(dur, 3), "pid": pid, "tid": tid, "args": args
    }  # fmt: skip


def _measure(script: Path, path: Path) -> Cost:
    ended = subprocess.run(
        [sys.executable, str(script), str(path)], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(ended.stderr)
    found = Cost(**json.loads(ended.stdout.strip().splitlines()[-1]))
    print(found.line(), flush=True)
    return found
