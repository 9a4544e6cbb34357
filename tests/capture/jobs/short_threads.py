"""Deep stacks, generators and short threads, sampled with as many switches between threads as there can be: fails if none was seen."""

from __future__ import annotations

import gc
import sys
import threading
import time

from stepscope.capture.process.host_spans import Sampler


class Knot:
    """Garbage that only a collection finds, and that lets other threads go on when it is found."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        time.sleep(0)


def work(left: int) -> int:
    """Calls itself, and leaves garbage."""
    Knot()
    return work(left - 1) if left else sum(i * i for i in range(3_000))


def main() -> None:
    """Half a second of threads that end."""
    gc.set_threshold(10)
    sampler = Sampler()
    sys.setswitchinterval(1e-6)
    sampler.start()
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        thread = threading.Thread(target=work, args=(20,))
        thread.start()
        thread.join()
    sampler.stop()
    sys.exit(not any(span.name.endswith(": work") for span in sampler.spans))


if __name__ == "__main__":
    main()
