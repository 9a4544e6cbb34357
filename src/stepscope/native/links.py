# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""Consumers linked to their producers by a key that both carry: one producer for each consumer, never a product."""

from __future__ import annotations

from array import array
from typing import Any

from stepscope.native.checks import need_equal

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

_ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


def link(
    producers: list[Any],
    consumers: list[Any],
    start: object,
    early: bool,
    seed: int,
) -> tuple[array[int], array[int]]:
    """From and to: each consumer with the latest producer of its key that started no later than it.

    Producers and consumers are columns of row, kind and id, where kind and id are the key; `start` has the start of each
    row. Where every producer of the key is later, the consumer takes the first one if `early` says so, else none.
    """
    work = _Flows(producers, consumers, start, seed)
    work.group()
    work.order()
    found = array("I", bytes(4 * work.consumer_count()))
    to = array("I", bytes(4 * work.consumer_count()))
    count = work.match(found, to, early)
    del found[count:], to[count:]
    return found, to


@cython.final
@cython.cclass
class _Flows:
    row: cython.const[cython.uint][::1]
    kind: cython.const[cython.uint][::1]
    id: cython.const[cython.longlong][::1]
    to_row: cython.const[cython.uint][::1]
    to_kind: cython.const[cython.uint][::1]
    to_id: cython.const[cython.longlong][::1]
    start: cython.const[cython.longlong][::1]
    odd: cython.ulonglong
    mask: cython.ulonglong
    shift: cython.int
    groups: cython.Py_ssize_t
    # By slot: one more than the group there. By group: a producer that shows its key, and where its members begin.
    slot: cython.uint[::1]
    shown: cython.uint[::1]
    begin: cython.uint[::1]
    # By producer: its group. Then the producers by group and start.
    group_of: cython.uint[::1]
    member: cython.uint[::1]

    def __init__(
        self,
        producers: list[Any],
        consumers: list[Any],
        start: object,
        seed: int,
    ) -> None:
        self.row, self.kind, self.id = producers
        self.to_row, self.to_kind, self.to_id = consumers
        self.start = start
        need_equal(len(self.row), len(self.kind), len(self.id))
        need_equal(len(self.to_row), len(self.to_kind), len(self.to_id))
        count = len(self.row)
        bits = max(4, (2 * count + 1).bit_length())
        self.groups = 0
        self.odd = seed | 1
        self.mask = (1 << bits) - 1
        self.shift = 64 - bits
        self.slot = array("I", bytes(4 << bits))
        self.shown, self.begin = array("I", bytes(4 * count)), array("I", bytes(4 * count + 4))
        self.group_of, self.member = array("I", bytes(4 * count)), array("I", bytes(4 * count))

    def consumer_count(self) -> int:
        return len(self.to_row)

    def group(self) -> None:
        """Give producers of one key one group."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.row)
        place: cython.ulonglong
        with cython.nogil:
            for i in range(n):
                place = self._place(self.kind[i], self.id[i])
                if self.slot[place] == 0:
                    self.shown[self.groups] = cython.cast(cython.uint, i)
                    self.groups += 1
                    self.slot[place] = cython.cast(cython.uint, self.groups)
                self.group_of[i] = self.slot[place] - 1
                self.begin[self.group_of[i]] += 1

    def order(self) -> None:
        """Put the members of each group side by side, earliest first."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.row)
        total: cython.uint = 0
        size: cython.uint
        with cython.nogil:
            for i in range(self.groups):
                size = self.begin[i]
                total += size
                self.begin[i] = total
            self.begin[self.groups] = total
            for i in range(n - 1, -1, -1):
                self.begin[self.group_of[i]] -= 1
                self.member[self.begin[self.group_of[i]]] = cython.cast(cython.uint, i)
            for i in range(self.groups):
                if self.begin[i + 1] - self.begin[i] > 1:
                    self._sort(self.begin[i], self.begin[i + 1])

    def match(self, found: cython.uint[::1], to: cython.uint[::1], early: cython.bint) -> int:
        """Write a link for each consumer whose producer is known; return how many."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.to_row)
        count: cython.Py_ssize_t = 0
        group: cython.uint
        at: cython.Py_ssize_t
        with cython.nogil:
            for i in range(n):
                group = self.slot[self._place(self.to_kind[i], self.to_id[i])]
                if group == 0:
                    continue
                at = self._latest(self.begin[group - 1], self.begin[group], self.start[self.to_row[i]])
                if at < self.begin[group - 1]:
                    if not early:
                        continue
                    at = self.begin[group - 1]
                if self.row[self.member[at]] != self.to_row[i]:
                    found[count] = self.row[self.member[at]]
                    to[count] = self.to_row[i]
                    count += 1
        return count

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _place(self, kind: cython.uint, ident: cython.longlong) -> cython.ulonglong:
        """The slot of this key, or the free one where it belongs."""
        place: cython.ulonglong = kind
        shown: cython.uint
        place = ((cython.cast(cython.ulonglong, ident) ^ (place << 48)) * self.odd) & _ALL_BITS
        place = place >> self.shift
        while self.slot[place]:
            shown = self.shown[self.slot[place] - 1]
            if self.id[shown] == ident and self.kind[shown] == kind:
                break
            place = (place + 1) & self.mask
        return place

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _start(self, place: cython.Py_ssize_t) -> cython.longlong:
        return self.start[self.row[self.member[place]]]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _latest(
        self, low: cython.Py_ssize_t, high: cython.Py_ssize_t, time: cython.longlong
    ) -> cython.Py_ssize_t:
        """The last member between low and high that starts by then; low - 1 where none does."""
        middle: cython.Py_ssize_t
        while low < high:
            middle = (low + high) // 2
            if self._start(middle) <= time:
                low = middle + 1
            else:
                high = middle
        return low - 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _sort(self, low: cython.Py_ssize_t, high: cython.Py_ssize_t) -> cython.int:
        """Shell's sort: fast where members nearly are in order, and never quadratic on thousands of them."""
        gap: cython.Py_ssize_t = 1
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t
        moving: cython.uint
        time: cython.longlong
        while gap < (high - low) // 9:
            gap = 3 * gap + 1
        while gap:
            for i in range(low + gap, high):
                moving = self.member[i]
                time = self.start[self.row[moving]]
                at = i
                while at >= low + gap and self._start(at - gap) > time:
                    self.member[at] = self.member[at - gap]
                    at -= gap
                self.member[at] = moving
            gap //= 3
        return 0
