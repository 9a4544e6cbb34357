"""Small files of a few ranks that meet in all-reduces; one of them is late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders.documents import kineto_document, span

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
            span("user_annotation", f"ProfilerStep#{step}", at, STEP_US),
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
    return kineto_document(
        *events,
        distributedInfo={"backend": "nccl", "rank": rank, "world_size": ranks},
        deviceProperties=[{"id": 0, "name": "NVIDIA H200"}],
    )


def _kernel(
    number: int, name: str, at: float, stream: int, dur: float, args: dict[str, Any]
) -> list[dict[str, Any]]:
    launch = span("cuda_runtime", "cudaLaunchKernel", at - 5, 2, correlation=100 + number)
    place = {"device": 0, "stream": stream, "correlation": 100 + number}
    return [launch, span("kernel", name, at, dur, pid=0, tid=stream, **place, **args)]
