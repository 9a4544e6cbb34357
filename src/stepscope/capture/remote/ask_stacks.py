"""Ask listening processes for the stacks of their threads: through the socket, or by their signal where no answer comes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stepscope.capture.remote import ask, sockets
from stepscope.capture.remote.stack_signal import ENDING, is_in, read_masks, read_stat
from stepscope.errors import StepscopeError

# A job that answers does so at once; one that holds Python's lock in C never does.
_PATIENCE_SECONDS = 3.0
_SIGNAL_SECONDS = 3.0
_QUIET_SECONDS = 0.2
_MOST_AT_ONCE = 64
_LONGEST = 1 << 24
_OURS = "stepscope/capture/process/guarded.py"  # in which all our threads begin
_THREAD = re.compile(r"^(?P<now>Current t|T)hread (?P<id>0x[0-9a-f]+)(?: \[(?P<name>[^\]]*)\])?.*:$")
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+|\?\?\?) in (?P<name>.*)$')


@dataclass(frozen=True)
class ThreadStack:
    """One thread; each frame is function, file and line, the innermost first."""

    name: str
    is_main: bool
    frames: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class ProcessStacks:
    """One process. `how` is socket or signal; `why` says why there are no stacks."""

    pid: str
    rank: int | None = None
    threads: tuple[ThreadStack, ...] = ()
    how: str = ""
    why: str = field(default="", compare=False)


def ask_all(paths: Sequence[Path]) -> list[ProcessStacks]:
    """All at once: stacks of different moments would show ranks that merely move on."""
    with ThreadPoolExecutor(max(1, min(len(paths), _MOST_AT_ONCE))) as pool:
        found = list(pool.map(ask_one, paths))
    return sorted(found, key=lambda each: (each.rank is None, each.rank or 0, each.pid))


def ask_one(path: Path) -> ProcessStacks:
    """The stacks of one process, whatever it is doing."""
    pid = path.name.removesuffix(sockets.ENDING)
    try:
        return _by_socket(path, pid)
    except (OSError, StepscopeError) as error:
        why = error.what if isinstance(error, StepscopeError) else f"{error.strerror or error}"
    try:
        return _by_signal(path.parent, pid)
    except (OSError, StepscopeError) as error:
        second = error.what if isinstance(error, StepscopeError) else f"{error.strerror or error}"
        return ProcessStacks(
            pid, _read_rank(pid), why=f"it does not answer ({why.rstrip('.')}), and {second}"
        )


def _by_socket(path: Path, pid: str) -> ProcessStacks:
    with closing(ask.connect(path)) as connection:
        connection.settimeout(_PATIENCE_SECONDS)
        sockets.send(connection, verb="stacks")
        answer = next(sockets.lines(connection, _LONGEST), None)
    threads = answer.get("threads") if answer is not None else None
    if not isinstance(threads, list):
        raise StepscopeError("it hung up, or runs an older stepscope")
    rank = _number(answer.get("rank")) if answer is not None else None
    found = tuple(_thread(each) for each in threads if isinstance(each, dict))
    return ProcessStacks(pid, rank, found, "socket")


def _thread(said: dict[str, Any]) -> ThreadStack:
    frames = said.get("frames")
    return ThreadStack(
        str(said.get("name", "")),
        bool(said.get("is_main")),
        tuple(
            (str(each[0]), str(each[1]), _number(each[2]) or 0)
            for each in (frames if isinstance(frames, list) else ())
            if isinstance(each, list) and len(each) == 3
        ),
    )


def _by_signal(folder: Path, pid: str) -> ProcessStacks:
    """Only where the process itself catches the signal: one that is not caught would end it."""
    for path in folder.glob(f"{pid}.*{ENDING}"):
        number, started = (_number(word) for word in path.name.removesuffix(ENDING).split(".")[1:3])
        masks = read_masks(pid)
        if number is None or masks is None or started is None or read_stat(pid) != started:
            continue
        if not is_in(masks["SigCgt"], number):
            raise StepscopeError("it no longer catches its signal")
        os.truncate(path, 0)
        os.kill(int(pid), number)
        return ProcessStacks(pid, _read_rank(pid), parse_dump(_await(path)), "signal")
    raise StepscopeError("it has no signal for stacks")


def _await(path: Path) -> str:
    """What is written, when nothing more comes."""
    end, size, quiet_since = time.monotonic() + _SIGNAL_SECONDS, 0, time.monotonic()
    while time.monotonic() < end:
        time.sleep(_QUIET_SECONDS / 4)
        now = path.stat().st_size if path.exists() else 0
        if now != size:
            size, quiet_since = now, time.monotonic()
        elif size and time.monotonic() - quiet_since >= _QUIET_SECONDS:
            break
    if not size:
        raise StepscopeError("its signal brought nothing: it has ended, is stopped, or is inside the kernel")
    with path.open("rb") as file:
        return file.read(_LONGEST).decode(errors="replace")


def parse_dump(text: str) -> tuple[ThreadStack, ...]:
    """What faulthandler wrote. The thread that was current last is the main one: signals arrive there."""
    threads: list[tuple[str, bool, list[tuple[str, str, int]]]] = []
    for line in text.splitlines():
        thread, frame = _THREAD.match(line), _FRAME.match(line)
        if thread is not None:
            threads.append((thread["name"] or f"thread {thread['id']}", thread["now"] != "T", []))
        elif frame is not None and threads:
            threads[-1][2].append((frame["name"], frame["file"], _number(frame["line"]) or 0))
    has_current = any(is_main for _, is_main, _ in threads)
    found = [
        # Without a current thread nobody holds the lock; the main thread was started first and is written last.
        _name_main(
            ThreadStack(name, is_main or (not has_current and place == len(threads) - 1), tuple(frames))
        )
        for place, (name, is_main, frames) in enumerate(threads)
        if not any(file.endswith(_OURS) for _, file, _ in frames)
    ]
    return tuple(sorted(found, key=lambda each: not each.is_main))


def _name_main(thread: ThreadStack) -> ThreadStack:
    """As Python names it: faulthandler of most versions writes no names."""
    return (
        replace(thread, name="MainThread")
        if thread.is_main and thread.name.startswith("thread 0x")
        else thread
    )


def _read_rank(pid: str) -> int | None:
    """Of a process that does not answer, by its environment."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    found = next((word[5:] for word in words if word.startswith(b"RANK=")), b"")
    return _number(found.decode(errors="replace"))


def _number(value: object) -> int | None:
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdigit() and len(value) < 19 else None
