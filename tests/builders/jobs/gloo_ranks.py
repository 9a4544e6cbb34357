"""Files of four ranks that meet over gloo, each written by a clock of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders.documents import event, kineto_document

# Of each rank's clock against that of the first, ns and parts of one.
OFFSETS = {0: 0, 1: 48_000_000, 2: -3_210_000, 3: 12_345}
DRIFTS = {0: 0.0, 1: 4e-5, 2: 0.0, 3: -2e-5}
STEP_US, STEPS, LATE_US = 10_000, 12, 1_500
BASE_NS = 1_700_000_000_000_000_000


def recording(rank: int, calls: bool = True) -> dict[str, Any]:
    """Steps of a rank over gloo, by its own clock; rank 2 is late to every call, and all leave it together."""

    def own(us: float) -> float:
        """Its clock's time of a true moment."""
        middle = STEP_US * STEPS / 2
        return us + OFFSETS[rank] / 1e3 + DRIFTS[rank] * (us - middle)

    events: list[dict[str, Any]] = []
    for step in range(STEPS):
        begin, end = STEP_US * step + 100.0, STEP_US * (step + 1) - 300.0
        came = end - 4_000 + (LATE_US if rank == 2 else 10 * rank)
        whole = 1.0 * STEP_US * step, 1.0 * STEP_US * (step + 1)
        spans = [("user_annotation", f"ProfilerStep#{step}", *whole, 1)]
        spans += [("cpu_op", "aten::mm", begin, came - 50, 1)]
        spans += [("user_annotation", "gloo:all_reduce", came, end, 2)] if calls else []
        for category, name, first, last, thread in spans:
            start, length = round(own(first), 3), round(own(last) - own(first), 3)
            events.append(event(category, name, start, length, pid=7, tid=thread))
    info = {"backend": "gloo", "rank": rank, "world_size": len(OFFSETS)}
    return kineto_document(*events, distributedInfo=info, baseTimeNanoseconds=BASE_NS)


def recorded(folder: Path, calls: bool = True) -> Path:
    """The files of all ranks."""
    folder.mkdir()
    for rank in OFFSETS:
        (folder / f"rank{rank}.pt.trace.json").write_text(json.dumps(recording(rank, calls)))
    return folder
