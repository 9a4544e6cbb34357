# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""Tracks as the scanner knows them: pairs of a process and a thread, numbered."""

from __future__ import annotations

from stepscope.native.buffers import larger, room

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

_ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_ODD = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_MORE_ODD = cython.declare(cython.ulonglong, 0xD6E8FEB86659FD93)
# As for strings: pairs that were made to collide are numbered twice, instead of being searched for ever longer.
_FARTHEST = cython.declare(cython.Py_ssize_t, 64)


@cython.final
@cython.cclass
class Tracks:
    """Numbers tracks in the order they are met, by open addressing."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.count = self.last = 0
        self.pids = room("q", 1024)
        self.tids = room("q", 1024)
        self.slots = room("I", 4096)
        self.mask = 4095

    def all(self) -> list[tuple[int, int]]:
        """Process and thread of each track."""
        return [(self.pids[i], self.tids[i]) for i in range(self.count)]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def number(self, pid: cython.longlong, tid: cython.longlong) -> cython.Py_ssize_t:
        """The number of a track, which is taken in if it is new."""
        if self.pids[self.last] != pid or self.tids[self.last] != tid or self.count == 0:
            self.last = self._seek(pid, tid)
            if self.last < 0:
                self.last = self._add(pid, tid)
        return self.last

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _seek(self, pid: cython.longlong, tid: cython.longlong) -> cython.Py_ssize_t:
        at: cython.Py_ssize_t = self._first_slot(pid, tid)
        track: cython.Py_ssize_t
        _step: cython.Py_ssize_t
        for _step in range(_FARTHEST):
            track = cython.cast(cython.Py_ssize_t, self.slots[at]) - 1
            if track < 0 or (self.pids[track] == pid and self.tids[track] == tid):
                return track
            at = (at + 1) & self.mask
        return -1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add(self, pid: cython.longlong, tid: cython.longlong) -> cython.Py_ssize_t:
        track: cython.Py_ssize_t = self.count
        if track >= len(self.pids):
            with cython.gil:
                self._grow()
        self.pids[track] = pid
        self.tids[track] = tid
        self.count = track + 1
        self._place(track)
        return track

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _place(self, track: cython.Py_ssize_t) -> cython.int:
        at: cython.Py_ssize_t = self._first_slot(self.pids[track], self.tids[track])
        _step: cython.Py_ssize_t
        for _step in range(_FARTHEST):
            if self.slots[at] == 0:
                self.slots[at] = cython.cast(cython.uint, track + 1)
                return 0
            at = (at + 1) & self.mask
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _first_slot(self, pid: cython.longlong, tid: cython.longlong) -> cython.Py_ssize_t:
        h: cython.ulonglong = self.seed ^ (cython.cast(cython.ulonglong, pid) & _ALL_BITS)
        h = (h * _ODD) & _ALL_BITS
        h ^= (h >> 32) ^ (cython.cast(cython.ulonglong, tid) & _ALL_BITS)
        h = (h * _MORE_ODD) & _ALL_BITS
        return cython.cast(cython.Py_ssize_t, (h >> 32) & self.mask)

    def _grow(self) -> None:
        count = 2 * len(self.pids)
        self.pids = larger(memoryview(self.pids), "q", count)
        self.tids = larger(memoryview(self.tids), "q", count)
        self.slots = room("I", count * 4)
        self.mask = count * 4 - 1
        for track in range(self.count):
            self._place(track)
