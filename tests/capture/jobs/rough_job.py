"""A loop that ends in every way a loop can end: rough_job.py FOLDER HOW [BACKEND]."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import stepscope

FOLDER, HOW = Path(sys.argv[1]), sys.argv[2]
BACKEND = sys.argv[3] if len(sys.argv) > 3 else "host"


def work() -> None:
    if BACKEND == "torch":
        import torch

        torch.ones(8).sum()
    with stepscope.annotate("work"):
        sum(range(1000))


def steps(prof: stepscope.Profiler, count: int) -> None:
    for _ in range(count):
        work()
        prof.step()


def profiler(**options: Any) -> stepscope.Profiler:
    if BACKEND == "torch":
        import torch  # noqa: F401 (found by what is imported)
    return stepscope.Profiler(FOLDER, backends=(BACKEND,), **options)


def endless() -> None:
    """One window after the other, until someone kills it."""
    prof = profiler(schedule=stepscope.schedule(skip=1, active=3, repeat=0), stacks=False)
    prof.start()
    steps(prof, 8)
    print("running", flush=True)  # noqa: T201
    while True:
        steps(prof, 1)


def any_moment() -> None:
    """Waits, warms up and records in turns, from the first moment on, until someone kills it."""
    prof = profiler(schedule=stepscope.schedule(skip=15, warmup=2, active=25, repeat=0), stacks=False)
    prof.start()
    print("running", flush=True)  # noqa: T201
    while True:
        time.sleep(0.001)
        steps(prof, 1)


def crashing(end: Callable[[], None]) -> None:
    """One step ends, in the next the process does: inside of two annotations."""
    prof = profiler(schedule=stepscope.schedule(skip=4, active=1000), stacks=False)
    prof.start()
    steps(prof, 5)
    with stepscope.annotate("outer"), stepscope.annotate("inner"):
        end()


def left() -> None:
    crashing(lambda: os._exit(9))


def crashed() -> None:
    crashing(lambda: os.kill(os.getpid(), signal.SIGSEGV))


def killed() -> None:
    crashing(lambda: os.kill(os.getpid(), signal.SIGKILL))


def killed_before_the_window() -> None:
    prof = profiler(schedule=stepscope.schedule(skip=100, active=5))
    prof.start()
    steps(prof, 7)
    while prof._ring._seen < 7:  # outside of windows a thread looks now and then
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def killed_in_stop() -> None:
    """The framework has stopped and not yet written."""
    prof = profiler(stacks=False)
    prof.start()
    steps(prof, 3)
    from importlib import import_module

    collector = import_module(f"stepscope.capture.backends.{BACKEND}")
    kind = getattr(collector, "TorchBackend" if BACKEND == "torch" else "HostBackend")
    kind.save = lambda _: os.kill(os.getpid(), signal.SIGKILL)
    prof.stop()


def killed_between() -> None:
    """One window is written, the next one is not."""
    prof = profiler(schedule=stepscope.schedule(skip=1, active=3, repeat=0), stacks=False)
    prof.start()
    steps(prof, 6)
    os.kill(os.getpid(), signal.SIGKILL)


def unwritten() -> None:
    """The window ends well, and its file cannot be written."""
    prof = profiler(stacks=False)
    prof.start()
    steps(prof, 3)
    from importlib import import_module

    collector = import_module(f"stepscope.capture.backends.{BACKEND}")
    kind = getattr(collector, "TorchBackend" if BACKEND == "torch" else "HostBackend")

    def fail(_: object) -> None:
        raise OSError(28, "No space left on device")

    kind.save = fail
    prof.stop()
    print("trained", len(prof.files), [each["code"] for each in prof.problems])  # noqa: T201


def forked_and_killed() -> None:
    """A child goes on with the loop as a DataLoader's worker might, and leaves the parent's ring alone."""
    prof = started()
    child = os.fork()
    if child == 0:
        with stepscope.annotate("of the child"):
            steps(prof, 50)
        os._exit(0)
    os.waitpid(child, 0)
    steps(prof, 2)
    os.kill(os.getpid(), signal.SIGKILL)


def raised() -> None:
    with profiler(schedule=stepscope.schedule(skip=1, active=3)) as prof:
        steps(prof, 3)
        raise KeyError("of the user")


def raised_between() -> None:
    with profiler(schedule=stepscope.schedule(skip=1, active=3)) as prof:
        steps(prof, 6)
        raise KeyError("of the user")


def started() -> stepscope.Profiler:
    prof = profiler()
    prof.start()
    steps(prof, 4)
    return prof


def forgotten() -> None:
    started()
    assert (
        "torch._inductor" not in sys.modules
    )  # recording alone must not take the seconds that importing it does


def exited() -> None:
    started()
    sys.exit(3)


def terminated() -> None:
    started()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(30)


def terminated_with_handler() -> None:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
    terminated()


def forked() -> None:
    prof = started()
    child = os.fork()
    steps(prof, 3)
    prof.stop()
    if child == 0 and BACKEND == "torch":
        os._exit(
            0
        )  # as multiprocessing does: PyTorch's own profiler hangs in a child that ends in the usual way
    if child == 0:
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0


def nested() -> None:
    prof = started()
    prof.start()
    with stepscope.profile(FOLDER / "second", backends=(BACKEND,)) as second:
        second.step()
    steps(prof, 2)
    prof.stop()
    prof.stop()
    prof.step()
    assert second.files == []
    with stepscope.profile(FOLDER / "third", backends=(BACKEND,)) as third:
        steps(third, 2)
    assert len(third.files) == 1


def no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    prof = started()
    steps(prof, 200)
    prof.stop()
    print("trained", len(prof.files), [each["code"] for each in prof.problems])  # noqa: T201


def read_only() -> None:
    prof = started()
    prof.stop()
    print("trained", len(prof.files), [each["code"] for each in prof.problems])  # noqa: T201


def together() -> None:
    """One of many that begin when all of them are there."""
    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    started().stop()


if __name__ == "__main__":
    globals()[HOW]()
