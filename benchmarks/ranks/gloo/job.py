"""One of the processes of a gloo job: recorded slow steps, and around each recording steps without one, healthy and slow in turns.

python job.py OUT INIT_FILE RANK WORLD WAY SLOW_RANK RECORDERS DELAY_MS STEPS TIMES

RECORDERS are stepscope, torch (plain torch.profiler), or both, separated by a comma; each writes to OUT/RECORDER. Rank 0 prints, for
each recorder, the mean unrecorded step of each turn before and after it, healthy and slow, in ns, as JSON. There are TIMES as many turns and recorded
steps.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

WIDTH, BATCH, WARMUP = 512, 128, 3
UNPROFILED = (
    44  # steps before our recording: it times 20 of them, and where there is a GPU it takes a light window
)
TURNS = 12  # many short ones: what disturbs a machine for a second must not fall on one side only
EVERY = 4  # what is slow now and then is so in one of this number of steps


@dataclass
class Slowness:
    """How this rank is slow, and whether it is now."""

    way: str
    seconds: float
    is_on: bool = False
    step: int = 0

    def is_by(self, way: str) -> bool:
        """Whether it is slow now, in this way."""
        return self.is_on and self.way == way


class Batches:
    """More than a run needs; where input is slow, each is waited for."""

    def __init__(self, slow: Slowness) -> None:
        self._slow = slow

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, _: int) -> torch.Tensor:
        if self._slow.is_by("input"):
            time.sleep(self._slow.seconds)
        return torch.randn(BATCH * (4 if self._slow.is_by("batch") else 1), WIDTH)


@contextmanager
def beside_a_hog(slow: Slowness, core: int) -> Iterator[Callable[[], None]]:
    """A neighbour that burns this core whenever the rank is slow by one: what to call after a change. Nothing on other ranks."""
    if slow.way != "hog":
        yield lambda: None
        return
    hog = subprocess.Popen([sys.executable, "-c", "while True: sum(range(10_000))"])
    os.sched_setaffinity(hog.pid, {core})
    try:
        yield lambda: hog.send_signal(signal.SIGCONT if slow.is_on else signal.SIGSTOP)
    finally:
        hog.kill()


def burn(seconds: float) -> None:
    """Python code that takes this long."""
    end, total = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        total += sum(range(100))


def collect_garbage(seconds: float) -> None:
    """Collections over many objects, for this long at least."""
    objects = [[number] for number in range(100_000)]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        gc.collect()
    del objects


def write_checkpoint(net: nn.Module, seconds: float) -> None:
    """Write the parameters to a file and to its disk, for this long at least."""
    end = time.perf_counter() + seconds
    with tempfile.NamedTemporaryFile() as file:
        while time.perf_counter() < end:
            file.seek(0)
            torch.save(net.state_dict(), file)
            os.fsync(file.fileno())


def is_drawn(step: int) -> bool:
    """One step at random of each EVERY, so that a turn and a recording have as many."""
    return step % EVERY == Random(step // EVERY).randrange(EVERY)


def do_between(slow: Slowness, net: nn.Module) -> None:
    """What only the slow rank does in a step beside training."""
    is_turn = slow.step % EVERY == 0
    if slow.is_by("python"):
        burn(slow.seconds)
    elif slow.is_by("collection") and is_turn:
        collect_garbage(EVERY * slow.seconds)
    elif slow.is_by("checkpoint") and is_turn:
        write_checkpoint(net, EVERY * slow.seconds)
    elif slow.is_by("jitter") and is_drawn(slow.step):
        time.sleep(EVERY * slow.seconds)


def make_step(net: nn.Module, slow: Slowness) -> Callable[[torch.Tensor], None]:
    """One step of training."""
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step(batch: torch.Tensor) -> None:
        slow.step += 1
        do_between(slow, net)
        for _ in range(6 if slow.is_by("passes") else 0):
            with torch.no_grad():
                net(batch)
        net(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def time_steps(run: Callable[[int], None], count: int) -> int:
    """The mean step between two barriers."""
    dist.barrier()
    start = time.perf_counter_ns()
    run(count)
    dist.barrier()
    return (time.perf_counter_ns() - start) // count


def time_turns(
    run: Callable[[int], None], slow: Slowness, change: Callable[[], None], turns: int
) -> list[tuple[int, int]]:
    """Healthy and slow steps by turns: what a step of each pair took. The rank is slow at the end."""
    pairs = []
    for _ in range(turns):
        times = []
        for slow.is_on in (False, True):
            change()
            run(EVERY)  # until what shares a core has settled
            times.append(time_steps(run, 2 * EVERY))
        pairs.append((times[0], times[1]))
    return pairs


def open_recorder(name: str, out: str, rank: str, steps: int) -> AbstractContextManager[Any]:
    """Ours, or torch's own."""
    if name == "stepscope":
        import stepscope

        schedule = stepscope.schedule(skip=UNPROFILED, warmup=WARMUP, active=steps)
        return stepscope.profile(out, schedule=schedule)
    handler = torch.profiler.tensorboard_trace_handler(out, worker_name=f"rank{rank}")
    schedule = torch.profiler.schedule(wait=0, warmup=WARMUP, active=steps, repeat=1)
    cpu = [torch.profiler.ProfilerActivity.CPU]
    recorder: AbstractContextManager[Any] = torch.profiler.profile(
        activities=cpu, schedule=schedule, on_trace_ready=handler
    )
    return recorder


def main() -> None:
    """Time, then record."""
    out, init, rank, world, way, slow_rank, recorders, delay_ms, steps, more = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{init}", rank=int(rank), world_size=int(world))
    slow = Slowness(way if rank == slow_rank else "", float(delay_ms) / 1e3)
    net = DistributedDataParallel(nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(6))))
    train, batches = make_step(net, slow), iter(DataLoader(Batches(slow), batch_size=None))
    core = int(os.environ.get("CORE", "-1"))
    if core >= 0:
        os.sched_setaffinity(0, {core})

    def run(count: int) -> None:
        for batch in islice(batches, count):
            train(batch)

    count, turns, times = int(steps) * int(more), TURNS * int(more), {}
    run(2 * WARMUP)
    with beside_a_hog(slow, core) as change:
        before = time_turns(run, slow, change, turns)
        for recorder in recorders.split(","):
            with open_recorder(recorder, f"{out}/{recorder}", rank, count) as recording:
                for batch in islice(batches, (UNPROFILED if recorder == "stepscope" else 0) + WARMUP + count):
                    train(batch)
                    recording.step()
            after = time_turns(run, slow, change, turns)
            times[recorder] = dict(zip(("healthy", "slow"), zip(*before, *after, strict=True), strict=True))
            before = after
    if rank == "0":
        print(json.dumps(times), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
