"""Spans that stepscope itself records, for jobs without a framework: exact ones from annotations, sampled ones from stacks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple

from stepscope.capture.process import active
from stepscope.capture.process.guarded import guarded_thread
from stepscope.capture.process.stacks import read_stack
from stepscope.ring_layout import PYTHON

# Twice the interval at which Python lets another thread run would already miss short functions.
SAMPLE_SECONDS = 0.002
_DEEPEST = 64


class Span(NamedTuple):
    """What a thread did from one moment to another, on the `perf_counter` clock."""

    thread: int
    name: str
    kind: str
    role: str | None
    step: int | None
    start_ns: int
    end_ns: int


class Recorder:
    """Collects spans of all threads; appending to a list is atomic."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, str, str, str | None, int | None, int, int]] = []
        self.is_on = False

    @property
    def spans(self) -> list[Span]:
        """What was collected. Made afterwards: a named tuple costs the job ten times what a tuple does."""
        return [Span(*row) for row in self._rows]

    def add(
        self,
        name: str,
        kind: str,
        start_ns: int,
        end_ns: int,
        *,
        role: str | None = None,
        step: int | None = None,
    ) -> None:
        """A span of the thread that calls."""
        if self.is_on:
            self._rows.append((threading.get_ident(), name, kind, role, step, start_ns, end_ns))


# The recorder of the window that is open in this process, if it has one.
current: Recorder | None = None


@dataclass
class _Open:
    """A frame that was seen in the samples up to now."""

    code: CodeType
    start_ns: int


@dataclass
class Sampler:
    """Looks at the stacks of all threads from a thread of its own."""

    spans: list[Span] = field(default_factory=list)
    is_paused: bool = False
    _open: dict[int, list[_Open]] = field(default_factory=dict)
    _last_ns: dict[int, int] = field(default_factory=dict)
    _done: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        self._thread = guarded_thread(self._run, "stepscope-sampler")

    def stop(self) -> None:
        """Look no more, and close what is open."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=1)
        self._close_all()

    def _run(self) -> None:
        import sys

        me = threading.get_ident()
        while not self._done.wait(SAMPLE_SECONDS):
            if self.is_paused:
                self._close_all()
                continue
            frames = sys._current_frames()
            now = time.perf_counter_ns()
            threads = set(frames) - {me}
            for thread in threads:
                # Taken out, and let go at once: what a frame holds must not live longer because of us.
                self._seen(thread, _codes(frames.pop(thread)), now)
            for thread in [known for known in self._open if known not in threads]:
                self._close(thread, 0, now)
            del frames

    def _seen(self, thread: int, codes: list[CodeType], now: int) -> None:
        """Frames that are the same as in the sample before go on; the others ended between the two."""
        stack = self._open.setdefault(thread, [])
        between = (self._last_ns.get(thread, now) + now) // 2
        same = 0
        while same < min(len(stack), len(codes)) and stack[same].code is codes[same]:
            same += 1
        self._close(thread, same, between)
        stack.extend(_Open(code, between) for code in codes[same:])
        self._last_ns[thread] = now

    def _close(self, thread: int, depth: int, end_ns: int) -> None:
        stack = self._open.get(thread, [])
        while len(stack) > depth:
            each = stack.pop()
            name, end = _label(each.code), max(each.start_ns, end_ns)
            self.spans.append(Span(thread, name, "python", None, None, each.start_ns, end))
            ring = active.ring
            if ring is not None:
                ring.seen(PYTHON, name, thread, each.start_ns, end)

    def _close_all(self) -> None:
        for thread in list(self._open):
            self._close(thread, 0, self._last_ns.get(thread, 0))
            del self._open[thread]


def _codes(frame: FrameType) -> list[CodeType]:
    """From the outermost function inwards, without stepscope's own."""
    return [code for code, names in reversed(read_stack(frame, _DEEPEST)) if not _is_ours(names)]


def _is_ours(names: dict[str, Any]) -> bool:
    return str(names.get("__name__", "")).startswith("stepscope.capture")


def _label(code: CodeType) -> str:
    return f"{code.co_filename}({code.co_firstlineno}): {code.co_name}"


def cut(sampled: list[Span], exact: list[Span]) -> Iterator[Span]:
    """Sampled spans, cut where exact ones of their thread begin or end: so that each is either inside or outside the other."""
    from bisect import bisect_left, bisect_right

    edges: dict[int, list[int]] = {}
    for span in exact:
        edges.setdefault(span.thread, []).extend((span.start_ns, span.end_ns))
    for moments in edges.values():
        moments.sort()
    for span in sampled:
        moments = edges.get(span.thread, [])
        inside = moments[bisect_right(moments, span.start_ns) : bisect_left(moments, span.end_ns)]
        start = span.start_ns
        for moment in [*dict.fromkeys(inside), span.end_ns]:
            if moment > start:
                yield span._replace(start_ns=start, end_ns=moment)
            start = moment


def _forget_in_child() -> None:
    """A forked child has no sampling thread."""
    global current
    current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
