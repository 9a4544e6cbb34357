"""How long a memory snapshot of two million events takes, and how much memory.

    python -m benchmarks.snapshot                   # 2 M events, about 400 MB
    python -m benchmarks.snapshot --depth 20        # shorter stacks: less of the file is frames
    python -m benchmarks.snapshot --events 200000

The file is made here, in the shape of a real one: each event has a list of frames of its own, whose frames are shared.
"""

from __future__ import annotations

import argparse
import pickle
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT

WORK = ROOT / ".bench"
LAYERS, DEPTH = 96, 26
SAMPLED_EVERY = 0.02  # s
MIB = 1 << 20
LIMIT_SECONDS, LIMIT_RATIO = 15.0, 4.5


def main() -> int:
    """Write the file, report on it, compare with what it must keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.snapshot", description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--depth", type=int, default=DEPTH, help="frames of a stack")
    wanted = parser.parse_args()
    file = snapshot(wanted.events, wanted.depth)
    command = [sys.executable, "-m", "stepscope", "report", "--no-cache", str(file)]
    began = time.perf_counter()
    status, peak = _watch(command)
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    size = file.stat().st_size
    print(
        f"{size / 1e6:.0f} MB: {seconds:.1f} s (limit {LIMIT_SECONDS:.0f}), {used.ru_utime + used.ru_stime:.1f} CPU s,"
        f" all processes together {peak / 1e6:.0f} MB = {peak / size:.2f} times the file (limit {LIMIT_RATIO})"
    )
    return int(status != 0 or seconds > LIMIT_SECONDS or peak > LIMIT_RATIO * size)


def _watch(command: list[str]) -> tuple[int, int]:
    """The exit status, and the most memory that the process and those it started had at one time.

    What the system reports as the largest child counts this process, too, where it has just made the file.
    """
    peak = 0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(_resident, _family(process.pid))))
            time.sleep(SAMPLED_EVERY)
    return process.returncode, peak


def _family(pid: int) -> list[int]:
    """The process and all below it; nothing where the system does not list them."""
    try:
        below = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return [pid]
    return [pid, *(each for words in below for word in words for each in _family(int(word)))]


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def snapshot(events: int, depth: int) -> Path:
    """The file, made once."""
    file = WORK / f"snapshot-{events}{f'-{depth}' if depth != DEPTH else ''}.pickle"
    if not file.exists():
        WORK.mkdir(exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_bytes(pickle.dumps(_job(events, depth), protocol=4))
        partial.rename(file)
    return file


def _job(events: int, depth: int) -> dict[str, Any]:
    """Training steps that allocate an activation and a gradient per layer and free them again; a little is kept per step."""
    forward = [_stack("forward", layer, depth) for layer in range(LAYERS)]
    backward = [_stack("backward", layer, depth) for layer in range(LAYERS)]
    trace: list[dict[str, Any]] = []
    kept: list[tuple[int, int, list[Any]]] = []
    clock, address = 1_700_000_000_000_000, 0x7F0000000000
    while len(trace) < events:
        base = address + len(kept) * MIB
        for layer in range(LAYERS):
            clock = _add(trace, "alloc", base + (1 + layer) * 8 * MIB, 4 * MIB, clock, forward[layer])
        for layer in reversed(range(LAYERS)):
            gradient = base + (1 + LAYERS) * 8 * MIB
            clock = _add(trace, "alloc", gradient, 2 * MIB, clock, backward[layer])
            for at, size in ((gradient, 2 * MIB), (base + (1 + layer) * 8 * MIB, 4 * MIB)):
                clock = _add(trace, "free_requested", at, size, clock, backward[layer])
                clock = _add(trace, "free_completed", at, size, clock, backward[layer])
        clock = _add(trace, "alloc", base, MIB // 2, clock, forward[0])
        kept.append((base, MIB // 2, forward[0]))
    return {"segments": [_segment(*block) for block in kept], "device_traces": [trace]}


def _add(trace: list[dict[str, Any]], action: str, at: int, size: int, clock: int, stack: list[Any]) -> int:
    event = {
        "action": action,
        "addr": at,
        "size": size,
        "stream": 0,
        "time_us": clock,
        "compile_context": "N/A",
    }
    trace.append({**event, "user_metadata": "", "frames": list(stack)})
    return clock + 3


def _stack(function: str, layer: int, frames: int) -> list[dict[str, Any]]:
    files = ("train.py", "model.py", "site-packages/torch/nn/modules/module.py")
    return [
        {
            "name": f"{function}_{depth % 7}",
            "filename": f"/home/me/{files[depth % 3]}",
            "line": 10 * depth + layer,
        }
        for depth in range(frames)
    ]


def _segment(address: int, size: int, stack: list[Any]) -> dict[str, Any]:
    block = {
        "address": address,
        "size": size,
        "requested_size": size,
        "state": "active_allocated",
        "frames": stack,
    }
    sums = dict.fromkeys(("total_size", "allocated_size", "active_size", "requested_size"), size)
    place = {"device": 0, "address": address, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0)}
    return {**place, **sums, "is_expandable": False, "frames": [], "blocks": [block]}


if __name__ == "__main__":
    sys.exit(main())
