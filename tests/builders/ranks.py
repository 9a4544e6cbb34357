"""Small files of a few ranks that meet in all-reduces; one of them is late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

STEP_US, STEPS = 1000, 4


def write_ranks(folder: Path, ranks: int = 4, late: int = 2) -> Path:
    """A file for each rank, all by one clock."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        (folder / f"job_rank{rank}.pt.trace.json").write_text(json.dumps(document(rank, ranks, rank == late)))
    return folder


def document(rank: int, ranks: int, is_late: bool) -> dict[str, Any]:
    """One rank: in each step a product, longer on the late one, and an all-reduce that ends for all at once."""
    events = []
    for step in range(STEPS):
        at, work = 5_000_000 + step * STEP_US, 600 if is_late else 400 + rank
        events += [
            _span("user_annotation", f"ProfilerStep#{step}", at, STEP_US),
            *_kernel(2 * step, "gemm", at + 10, 7, work, {"grid": [work, 1, 1], "block": [128, 1, 1]}),
            *_kernel(
                2 * step + 1,
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                at + 10 + work,
                13,
                900 - work,
                {
                    "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float",
                    "Group size": ranks, "Process Group Name": "0", "Process Group Ranks": str(list(range(ranks))),
                },
            ),
        ]  # fmt: skip
    return {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
        "traceEvents": events,
    }


def _span(category: str, name: str, at: float, dur: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": at, "dur": dur, "args": args}


def _kernel(
    number: int, name: str, at: float, stream: int, dur: float, args: dict[str, Any]
) -> list[dict[str, Any]]:
    launch = _span("cuda_runtime", "cudaLaunchKernel", at - 5, 2, correlation=100 + number)
    kernel = {
        "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": at, "dur": dur,
        "args": {"device": 0, "stream": stream, "correlation": 100 + number, **args},
    }  # fmt: skip
    return [launch, kernel]
