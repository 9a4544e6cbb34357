# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""A step played again: the host works and launches, streams run what they are given in order, waits wait."""

from __future__ import annotations

from array import array

from stepscope.native.buffers import column, room

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

WORK = 0  # the host works for `host` ns, then launches `device` ns of work on `stream`
WAIT = 1  # the host waits until all streams are empty, or for the work of an item `back` before it; then works for `host` ns
# What decides a moment of the critical path: the host on its way to an item, the delay of its launch, its device work.
HOST, LAUNCH, DEVICE = 0, 1, 2
NOTHING = -1


@cython.final
@cython.cclass
class _Player:
    """Replays items in order, and may note which of the things that an item waited for came last.

    By item: when the host had `come` there and when its work was `done`; the item that its work was `behind` on the
    stream, the one that `held` the host up, or nothing. By step: the item whose work it `ended` with, or the host.
    """

    kind: cython.const[cython.uchar][::1]
    host: cython.const[cython.longlong][::1]
    stream: cython.const[cython.uint][::1]
    device: cython.const[cython.longlong][::1]
    delay: cython.const[cython.longlong][::1]
    back: cython.const[cython.uint][::1]
    last: cython.const[cython.uchar][::1]
    free_at: cython.longlong[::1]
    occupied_by: cython.longlong[::1]
    ends: cython.longlong[::1]
    come: cython.longlong[::1]
    done: cython.longlong[::1]
    behind: cython.longlong[::1]
    held: cython.longlong[::1]
    ended: cython.longlong[::1]
    is_noting: cython.bint
    count: cython.Py_ssize_t
    out_step: cython.uint[::1]
    out_item: cython.uint[::1]
    out_what: cython.uchar[::1]

    def __init__(
        self,
        kind: object,
        host: object,
        stream: object,
        device: object,
        delay: object,
        back: object,
        last: object,
    ) -> None:
        self.kind, self.host, self.stream = kind, host, stream
        self.device, self.delay, self.back, self.last = device, delay, back, last
        self.done = column("q", len(self.kind))
        self.is_noting = False
        self.count = 0

    def take_notes(self, steps: int) -> None:
        """Makes room for what each item and step waited for."""
        items = len(self.kind)
        self.is_noting = True
        self.come = column("q", items)
        self.behind, self.held = array("q", [NOTHING]) * items, array("q", [NOTHING]) * items
        self.ended = array("q", [NOTHING]) * steps

    def play(self, streams: int, steps: int) -> array[int]:
        """The moment at which each step is over."""
        ends = array("q", bytes(8 * steps))
        self.free_at = array("q", bytes(8 * streams))
        self.occupied_by = array("q", [NOTHING]) * streams
        self.ends = ends
        self._play()
        return ends

    @cython.cfunc
    def _play(self) -> cython.void:
        now: cython.longlong = 0
        latest: cython.longlong = 0
        latest_item: cython.longlong = -1
        step: cython.Py_ssize_t = 0
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(len(self.kind)):
                if self.kind[i] == 1:
                    now = self._wait(i, now)
                now += self.host[i]
                if self.kind[i] == 0 and self.stream[i] < len(self.free_at):
                    self._launch(i, now)
                    if self.free_at[self.stream[i]] > latest:
                        latest = self.free_at[self.stream[i]]
                        latest_item = i
                if self.is_noting:
                    self.come[i] = now
                if self.last[i]:
                    self.ends[step] = now if now > latest else latest
                    if self.is_noting and latest > now:
                        self.ended[step] = latest_item
                    step += 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=True)
    def _wait(self, i: cython.Py_ssize_t, now: cython.longlong) -> cython.longlong:
        """When all streams are empty, or when the work is done that this one waits for."""
        s: cython.Py_ssize_t
        back: cython.Py_ssize_t = self.back[i]
        if back > 0:
            if back <= i and self.done[i - back] > now:
                now = self.done[i - back]
                if self.is_noting:
                    self.held[i] = i - back if self.device[i - back] > 0 else self.behind[i - back]
            return now
        for s in range(len(self.free_at)):
            if self.free_at[s] > now:
                now = self.free_at[s]
                if self.is_noting:
                    self.held[i] = self.occupied_by[s]
        return now

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _launch(self, i: cython.Py_ssize_t, now: cython.longlong) -> cython.int:
        """Puts work behind what its stream has to do; work that a change took away is done with what was before it."""
        s: cython.Py_ssize_t = self.stream[i]
        start: cython.longlong = now + self.delay[i]
        is_gone: cython.bint = self.device[i] <= 0
        if is_gone or self.free_at[s] > start:
            start = self.free_at[s]
            if self.is_noting:
                self.behind[i] = self.occupied_by[s]
        self.done[i] = start
        if not is_gone:
            self.done[i] = self.free_at[s] = start + self.device[i]
            self.occupied_by[s] = i
        return 0

    def walk_back(self) -> tuple[memoryview, memoryview, memoryview]:
        """The steps from the last to the first, each from its end to that of the step before: step, item, what."""
        most = 3 * len(self.kind)
        steps, items, what = room("I", most), room("I", most), room("B", most)
        self.out_step, self.out_item, self.out_what = steps, items, what
        self._walk()
        return steps[: self.count], items[: self.count], what[: self.count]

    @cython.cfunc
    def _walk(self) -> cython.void:
        i: cython.Py_ssize_t
        step: cython.Py_ssize_t = len(self.ends)
        with cython.nogil:
            for i in range(len(self.kind) - 1, -1, -1):
                if self.last[i]:
                    step -= 1
                    self._walk_step(step, i, self.ends[step - 1] if step > 0 else 0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _walk_step(self, step: cython.Py_ssize_t, i: cython.Py_ssize_t, begin: cython.longlong) -> cython.int:
        """From the step's last item to whatever was under way when it began."""
        is_device: cython.bint = self.ended[step] >= 0
        if is_device:
            i = self.ended[step]
        while i >= 0:
            if is_device:
                if self.done[i] <= begin:
                    break
                self._note(step, i, 2)
                if self.behind[i] >= 0:
                    i = self.behind[i]
                    continue
                if self.done[i] - self.device[i] <= begin:
                    break
                self._note(step, i, 1)
                is_device = False
            if self.come[i] <= begin:
                break
            self._note(step, i, 0)
            is_device = self.held[i] >= 0
            i = self.held[i] if is_device else i - 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _note(self, step: cython.Py_ssize_t, i: cython.Py_ssize_t, what: cython.uchar) -> cython.int:
        self.out_step[self.count] = cython.cast(cython.uint, step)
        self.out_item[self.count] = cython.cast(cython.uint, i)
        self.out_what[self.count] = what
        self.count += 1
        return 0


def replay(
    kind: object,
    host: object,
    stream: object,
    device: object,
    delay: object,
    back: object,
    last: cython.const[cython.uchar][::1],
    streams: int,
) -> array[int]:
    """The moment at which each step is over, for items in the order in which the host came to them.

    Work starts `delay` ns after its launch at the earliest, and after everything before it on its stream. A wait is for the
    work of the item that is `back` items before it (nothing if that is before the first), and for all work if `back` is 0. `last`
    marks the last item of a step; the step is over when the host has come there and all its work is done.
    """
    player = _Player(kind, host, stream, device, delay, back, last)
    return player.play(max(streams, 1), _count(last))


def critical_path(
    kind: object,
    host: object,
    stream: object,
    device: object,
    delay: object,
    back: object,
    last: cython.const[cython.uchar][::1],
    streams: int,
) -> tuple[memoryview, memoryview, memoryview, array[int]]:
    """What decided when each step was over: place of the step, item and what of it, from the last moment to the first.

    Each of them waited for the one that follows, and for nothing that took longer. With it, the ends as `replay` has them.
    """
    player = _Player(kind, host, stream, device, delay, back, last)
    steps = _count(last)
    player.take_notes(steps)
    ends = player.play(max(streams, 1), steps)
    return *player.walk_back(), ends


def _count(last: cython.const[cython.uchar][::1]) -> int:
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(last)):
            if last[i]:
                count += 1
    return count


def sums_between(
    values: cython.const[cython.longlong][::1], until: cython.const[cython.uint][::1]
) -> memoryview:
    """The sums of the values up to each of the places, which rise, from the place before it."""
    n: cython.Py_ssize_t = len(until)
    size: cython.Py_ssize_t = len(values)
    sums = column("q", n)
    out: cython.longlong[::1] = sums
    total: cython.longlong
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(n):
            total = 0
            while at < size and at < until[i]:
                total += values[at]
                at += 1
            out[i] = total
    return sums
