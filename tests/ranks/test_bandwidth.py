"""Bandwidths over ranks on data as NCCL and PyTorch write it, against the formulas of nccl-tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stepscope
from tests.builders.ranks import STEP_US, document

RANKS, ELEMENTS = 4, 1 << 20  # of float32, of the smaller side
# Kernel, PyTorch's name, elements in and out as shares of the smaller side, and the factor of the bus.
OPERATIONS = {
    "all_reduce": ("AllReduce_Sum_f32", "allreduce", 1, 1, 2 * 3 / 4),
    "all_gather": ("AllGather", "_allgather_base", 1, RANKS, 3 / 4),
    "reduce_scatter": ("ReduceScatter_Sum_f32", "_reduce_scatter_base", RANKS, 1, 3 / 4),
    "all_to_all": ("SendRecv", "all_to_allv", 1, 1, 3 / 4),
    "broadcast": ("Broadcast", "broadcast", 1, 1, 1.0),
}


def written(folder: Path, operation: str) -> Path:
    """Four ranks; rank 3 comes 200 µs after the others, and the transfer takes 300 µs."""
    kernel, called, given, got, _ = OPERATIONS[operation]
    folder.mkdir()
    for rank in range(RANKS):
        trace: dict[str, Any] = document(rank, RANKS, is_late=rank == 3)
        for event in trace["traceEvents"]:
            if event["name"].startswith("nccl"):
                step = (event["ts"] - 5_000_000) // STEP_US
                end = 5_000_000 + step * STEP_US + 910
                event["name"] = f"ncclDevKernel_{kernel}_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                event["ts"], event["dur"] = (end - 300, 300) if rank == 3 else (end - 500, 500)
                event["args"] |= {
                    "Collective name": called,
                    "In msg nelems": given * ELEMENTS,
                    "Out msg nelems": got * ELEMENTS,
                }
        (folder / f"job_rank{rank}.pt.trace.json").write_text(json.dumps(trace))
    return folder


@pytest.mark.parametrize("operation", OPERATIONS)
def test_bus_bandwidth_is_that_of_nccl_tests(tmp_path: Path, operation: str) -> None:
    """Bytes of the whole operation / time, and what of it each rank must send at least; waits are taken out where ranks wait."""
    _, _, given, got, factor = OPERATIONS[operation]
    [row] = stepscope.report(written(tmp_path / "run", operation), sections=["collectives"]).collectives.rows
    whole = 4 * ELEMENTS * max(given, got)
    assert (row.name, row.group_size, row.calls, row.bytes) == (
        operation,
        RANKS,
        4 * RANKS,
        4 * RANKS * whole,
    )
    mean_us = (300 + 3 * 500) / 4
    assert row.algorithm_gb_per_s == pytest.approx(whole / mean_us / 1000)
    assert row.bus_gb_per_s == pytest.approx(whole / mean_us / 1000 * factor)
    if operation == "broadcast":
        assert row.transfer_ns is None  # whoever leaves early has waited for nobody
    else:
        assert (row.transfer_ns, row.wait_ns) == (4 * 300_000, 4 * 3 * 200_000)
        assert row.transfer_gb_per_s == pytest.approx(whole / 300 / 1000)
        assert row.transfer_bus_gb_per_s == pytest.approx(whole / 300 / 1000 * factor)
