"""Runs the gloo jobs and keeps what they recorded; needs PyTorch and nothing of the analysis, so that a machine with more cores can do it.

  PYTHONPATH=src python3 -m benchmarks.ranks.gloo.record OUT [--ways input,batch] [--recorders torch] [--delay-ms 30] [--steps 16] [--at-once 3]
  python3 -m benchmarks.ranks.gloo --read OUT

Each job leaves OUT/WAY with times.json and a folder of recordings for each recorder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from benchmarks.ranks.gloo.ways import WAYS, WORLD, Way

ROOT = Path(__file__).resolve().parents[3]
JOB = Path(__file__).parent / "job.py"
TIMES = "times.json"
PATIENCE_SECONDS = 240


def main() -> int:
    """Run the jobs, some at once where there are cores for them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks.gloo.record", description=__doc__)
    parser.add_argument("out", type=Path)
    add_options(parser)
    options = parser.parse_args()
    longest_first = sorted(ways_of(options), key=lambda way: -way.times)
    free = SimpleQueue[int]()
    for lane in range(options.at_once):
        free.put(lane)
    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(lambda way: _record_on_a_lane(way, free, options), longest_first))
    return 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Those of recording."""
    parser.add_argument("--python", default=sys.executable, help="one that has torch")
    parser.add_argument("--ways", default="", help="some of the ways, separated by commas")
    parser.add_argument("--recorders", default="stepscope,torch", help="stepscope, torch, or both")
    parser.add_argument("--delay-ms", type=float, default=30.0, help="that a slow rank adds to the mean step")
    parser.add_argument(
        "--steps", type=int, default=64, help="of the recording, or as many times more as a way takes"
    )
    parser.add_argument("--at-once", type=int, default=1, help="jobs side by side, each on its own cores")


def ways_of(options: argparse.Namespace) -> list[Way]:
    """Those that are wanted and that this machine has cores for."""
    wanted = [way for way in WAYS if not options.ways or way.name in options.ways.split(",")]
    fitting = [way for way in wanted if (os.cpu_count() or 1) >= way.least_cores]
    for way in wanted:
        if way not in fitting:
            print(f"left out {way.name}: it takes {way.least_cores} cores", flush=True)
    return fitting


def record(out: Path, way: Way, options: argparse.Namespace, lane: int = 0) -> None:
    """One job: its recordings, and the times that rank 0 measured. A rank has a core to itself where there are enough."""
    folder = out / way.name
    folder.mkdir(parents=True, exist_ok=True)
    slow = "" if way.rank is None else str(way.rank)
    rest = [way.name, slow, options.recorders, str(options.delay_ms), str(options.steps), str(way.times)]
    paths = {"PYTHONPATH": str(ROOT / "src"), "GLOO_SOCKET_IFNAME": "lo"}
    cores = _cores(options.at_once)[lane * WORLD :]
    processes = []
    for rank in range(WORLD):
        numbers = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(WORLD)}
        places = [str(folder), str((folder / "init").absolute())]
        command = [options.python, str(JOB), *places, str(rank), str(WORLD), *rest]
        env = os.environ | paths | numbers | ({"CORE": str(cores[rank])} if len(cores) >= WORLD else {})
        processes.append(
            subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    (folder / TIMES).write_text(_wait(processes))


def _cores(at_once: int) -> list[int]:
    """One for each rank, as far apart as there are: neighbours may be two threads of one core, which slow each other.

    From the last one down: the first serves the machine's interrupts, and a healthy rank on it is late now and then.
    """
    found = sorted(os.sched_getaffinity(0), reverse=True)
    return found[:: max(1, len(found) // (at_once * WORLD))] if len(found) > WORLD else []


def _record_on_a_lane(way: Way, free: SimpleQueue[int], options: argparse.Namespace) -> None:
    """One job on the cores of a lane that is free. If it fails, the others go on."""
    lane = free.get()
    try:
        record(options.out, way, options, lane)
        print(f"recorded {way.name}", flush=True)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"FAILED {way.name}: {error}", flush=True)
    finally:
        free.put(lane)


def _wait(processes: list[subprocess.Popen[str]]) -> str:
    end = time.monotonic() + PATIENCE_SECONDS
    try:
        outputs = [each.communicate(timeout=max(1.0, end - time.monotonic())) for each in processes]
    finally:
        for each in processes:  # one that failed leaves the others waiting for it
            each.kill()
    failed = [err for each, (_, err) in zip(processes, outputs, strict=True) if each.returncode]
    if failed:
        raise RuntimeError(failed[0][-2000:])
    times = outputs[0][0].strip().splitlines()[-1]
    json.loads(times)
    return times


if __name__ == "__main__":
    sys.exit(main())
