"""Imports a module once and forks for each job that tests/capture/jobs/warm.py orders: forks.py MODULE SOCKET."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Order:
    """A script with its arguments, and the environment that it is to find."""

    words: list[str]
    environment: dict[str, str]


def wait_for_order(orders: socket.socket) -> Order | None:
    """In a fork: the script and the arguments that it is to run. None in the parent, when nobody orders any more."""
    while True:
        words, files, _, _ = socket.recv_fds(orders, 1 << 16, 3)
        if not words:
            return None
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork() == 0:
            orders.close()
            watch_a_fork(*files)
            return Order(**json.loads(words))
        for each in files:
            os.close(each)


def watch_a_fork(out: int, err: int, answers: int) -> None:
    """Fork once more, tell the number and the end of that process, and return in it."""
    job = os.fork()
    if job:
        os.write(answers, f"{job}\n".encode())
        for each in (out, err):
            os.close(each)
        os.write(answers, f"{os.waitpid(job, 0)[1]}\n".encode())
        os._exit(0)
    os.close(answers)
    for each, place in ((out, 1), (err, 2)):
        os.dup2(each, place)
        os.close(each)


if __name__ == "__main__":
    importlib.import_module(sys.argv[1])
    order = wait_for_order(socket.socket(fileno=int(sys.argv[2])))
    if order is not None:
        sys.argv = order.words
        sys.path[0] = str(Path(order.words[0]).parent)
        os.environ.clear()
        os.environ.update(order.environment)
        # The last thing that happens here: the fork ends as any Python does.
        runpy.run_path(order.words[0], run_name="__main__")
