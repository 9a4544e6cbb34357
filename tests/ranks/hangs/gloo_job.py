"""Four real processes that hang, each in its own way: python gloo_job.py FOLDER FORM CASE …

Every process dumps its flight recorder again and again, as a monitor would, and ends by itself. PyTorch, and what it imports for its first
stack, are imported once: the ranks of all cases are forks.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch._inductor.codecache
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json

WORLD, ODD, STEP = 4, 2, 3
LASTS, BETWEEN = 4.0, 0.2
LOCK = threading.Lock()


def dump(path: Path, form: str) -> None:
    with LOCK:
        data = _dump_fr_trace() if form == "pickle" else _dump_fr_trace_json()
        draft = path.with_suffix(".tmp")
        draft.write_bytes(data if isinstance(data, bytes) else data.encode())
        draft.replace(path)


def keep_dumping(path: Path, form: str) -> None:
    for _ in range(int(LASTS / BETWEEN)):
        time.sleep(BETWEEN)
        dump(path, form)
    os._exit(0)


def reduce_gradients(tensor: torch.Tensor) -> None:
    dist.all_reduce(tensor)


def gather_metrics(tensor: torch.Tensor) -> None:
    dist.all_gather([torch.zeros_like(tensor) for _ in range(WORLD)], tensor)


def spin() -> None:
    while True:
        time.sleep(0.01)


def train(case: str, rank: int, half: dist.ProcessGroup) -> None:
    for step in range(6):
        tensor = torch.ones(1024)
        if step == STEP and rank == ODD:
            if case == "missing":
                gather_metrics(tensor)  # the gradients are left out
                continue
            if case == "order":
                gather_metrics(tensor)
                reduce_gradients(tensor)
                continue
            if case == "loop":
                spin()
            if case == "dead":
                os._exit(1)
            if case == "size":
                tensor = torch.ones(512)
        elif step == STEP and case == "size":
            time.sleep(
                LASTS / 2
            )  # gloo aborts the rank with the smaller tensor: it comes first, and has dumped by then
        reduce_gradients(tensor)
        if rank < WORLD // 2:
            dist.broadcast(tensor, 0, group=half)
        gather_metrics(tensor)


def run_rank(folder: Path, form: str, case: str, rank: int) -> None:
    path = folder / f"nccl_trace_rank_{rank}{'.json' if form == 'json' else ''}"
    dist.init_process_group(
        "gloo", f"file://{folder}/store", timedelta(seconds=30), world_size=WORLD, rank=rank
    )
    half = dist.new_group(list(range(WORLD // 2)))
    if (case, rank) != ("dead", ODD):
        threading.Thread(target=keep_dumping, args=(path, form), daemon=True).start()
    try:
        train(case, rank, half)
    except RuntimeError:  # gloo's, when another rank is gone
        pass
    time.sleep(2 * LASTS)


def start_case(folder: Path, form: str, case: str) -> list[int]:
    folder.mkdir(parents=True, exist_ok=True)
    children = []
    for rank in range(WORLD):
        child = os.fork()
        if not child:
            try:
                run_rank(folder, form, case, rank)
            finally:
                os._exit(0)
        children.append(child)
    return children


def main() -> None:
    root, form, *cases = sys.argv[1:]
    children = [child for case in cases for child in start_case(Path(root) / case, form, case)]
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
