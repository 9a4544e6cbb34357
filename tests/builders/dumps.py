"""Dumps of the flight recorder, written after the schema of PyTorch's own analyzer."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CREATED_NS = 1_790_000_000_000_000_000
TORCH = "/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"


def entry(name: str, number: int, **changed: Any) -> dict[str, Any]:
    """One collective that has completed, as NCCL records it. `line` is that of train.py."""
    line = changed.pop("line", 88)
    created = CREATED_NS + 1_000_000 * number
    frames = [
        {"name": name.partition(":")[2], "filename": TORCH, "line": 3245},
        {"name": "step", "filename": "/job/train.py", "line": line},
    ]
    return {
        "record_id": number,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": number,
        "is_p2p": False,
        "profiling_name": name,
        "time_created_ns": created,
        "time_discovered_started_ns": created + 1000,
        "time_discovered_completed_ns": created + 5000,
        "input_sizes": ((1024,),),
        "output_sizes": ((1024,),),
        "input_dtypes": ["Float"],
        "output_dtypes": ["Float"],
        "state": "completed",
        "retired": True,
        "timeout_ms": 600_000,
        "frames": frames,
        **changed,
    }


def pending(name: str, number: int, **changed: Any) -> dict[str, Any]:
    """One that has not ended."""
    left = {"state": "started", "retired": False, "time_discovered_completed_ns": None}
    return entry(name, number, **{**left, **changed})


def dump(
    entries: Sequence[Mapping[str, Any]],
    ranks: Sequence[int] = range(4),
    version: str = "2.10",
    **changed: Any,
) -> dict[str, Any]:
    """The dump of one rank, with its groups."""
    return {
        "version": version,
        "nccl_version": "2.27.3",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(ranks))}},
        "pg_status": {"0": {"last_enqueued_collective": len(entries)}},
        "entries": list(entries),
        **changed,
    }


def put_dumps(folder: Path, dumps: Mapping[int, Mapping[str, Any]], form: str = "pickle") -> Path:
    """One file for each rank."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, content in dumps.items():
        data = pickle.dumps(dict(content), protocol=2) if form == "pickle" else json.dumps(content).encode()
        (folder / f"nccl_trace_rank_{rank}{'.json' if form == 'json' else ''}").write_bytes(data)
    return folder


def usual(count: int = 5) -> list[dict[str, Any]]:
    """What all ranks called before."""
    return [entry("nccl:all_reduce", number) for number in range(1, count)]


def hang(**of_rank_2: Any) -> dict[int, dict[str, Any]]:
    """Four ranks in an all_reduce, of which rank 2 did something else: its entries, or none of its own."""
    others = dump([*usual(), pending("nccl:all_reduce", 5)])
    return {0: others, 1: others, 2: dump(of_rank_2.get("entries", usual())), 3: others}
