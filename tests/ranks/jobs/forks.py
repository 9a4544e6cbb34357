"""The ranks of a job as forks of one process: of such a short job, most of the time is the import of PyTorch."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable


def run_ranks(world: int, run: Callable[[int], None]) -> None:
    """Run each rank in a process of its own, and exit with 1 where one of them fails."""
    waiting = {_start(rank, world, run) for rank in range(world)}
    while waiting:
        child, status = os.wait()
        waiting.discard(child)
        if status:  # the others wait for it
            for other in waiting:
                os.kill(other, signal.SIGKILL)
            sys.exit(1)


def _start(rank: int, world: int, run: Callable[[int], None]) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
        run(rank)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
