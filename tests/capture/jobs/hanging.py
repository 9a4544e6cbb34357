"""A job that listens and then hangs: waiting for another thread, computing, or inside C with Python's lock."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

import stepscope


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def wait_for_others() -> None:
    threading.Event().wait()


def spin() -> None:
    while True:
        time.sleep(0.01)


def hang_in_c() -> None:
    pipe, _ = os.pipe()
    ctypes.PyDLL(None).read(pipe, ctypes.create_string_buffer(1), 1)


def main() -> None:
    way, own = sys.argv[1:3]
    if own != "0":  # a handler of the job's own
        signal.signal(int(own), lambda *_: say("mine"))
    address = stepscope.listen()
    threading.Thread(target=wait_for_others, name="prefetch-1", daemon=True).start()
    say(str(address))
    {"wait": wait_for_others, "spin": spin, "c": hang_in_c}[way]()


if __name__ == "__main__":
    main()
