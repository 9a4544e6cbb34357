# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""The work of many ranks replayed: a node starts when all nodes before it are over, and a meeting when its last member has come."""

from __future__ import annotations

from stepscope.native.buffers import column

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

NONE = 0xFFFFFFFF


@cython.final
@cython.cclass
class Rendezvous:
    """A graph that is put in order once and replayed with any durations.

    `edge_from` and `edge_to` are nodes; `meeting` has for each node its meeting, or NONE. A node without a meeting is over `ns`
    after its start, a member of a meeting `ns` after the start of the last member.
    """

    meeting: cython.const[cython.uint][::1]
    first_before: cython.uint[::1]
    before: cython.uint[::1]
    first_after: cython.uint[::1]
    after: cython.uint[::1]
    first_member: cython.uint[::1]
    member: cython.uint[::1]
    order: cython.uint[::1]
    came: cython.uint[::1]
    lasts: cython.longlong[::1]
    starts: cython.longlong[::1]
    ends: cython.longlong[::1]
    count: cython.Py_ssize_t

    def __init__(
        self,
        edge_from: cython.const[cython.uint][::1],
        edge_to: cython.const[cython.uint][::1],
        meeting: cython.const[cython.uint][::1],
        meetings: int,
    ) -> None:
        nodes = len(meeting)
        self.meeting = meeting
        self.first_before, self.before = _grouped(edge_to, edge_from, nodes)
        self.first_after, self.after = _grouped(edge_from, edge_to, nodes)
        self.first_member, self.member = _members(meeting, meetings)
        self.came, self.lasts = column("I", meetings), column("q", meetings)
        self.order = column("I", nodes)
        self.count = 0
        waits_for = column("I", nodes)
        self._put_in_order(waits_for)

    @property
    def reached(self) -> int:
        """How many nodes can be replayed; fewer than there are where some wait for each other in a circle."""
        return self.count

    @cython.cfunc
    def _put_in_order(self, waits_for: cython.uint[::1]) -> cython.void:
        """Kahn's way: what waits for nothing comes next; members of a meeting are over together."""
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t
        m: cython.Py_ssize_t
        node: cython.Py_ssize_t
        done: cython.Py_ssize_t = 0
        with cython.nogil:
            for i in range(len(waits_for)):
                waits_for[i] = self.first_before[i + 1] - self.first_before[i]
                if waits_for[i] == 0:
                    self.order[self.count] = cython.cast(cython.uint, i)
                    self.count += 1
            while done < self.count:
                node = self.order[done]
                done += 1
                if self.meeting[node] >= len(self.came):
                    self._release(node, waits_for)
                    continue
                m = self.meeting[node]
                self.came[m] += 1
                if self.came[m] == self.first_member[m + 1] - self.first_member[m]:
                    for at in range(self.first_member[m], self.first_member[m + 1]):
                        self._release(self.member[at], waits_for)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _release(self, node: cython.Py_ssize_t, waits_for: cython.uint[::1]) -> cython.int:
        at: cython.Py_ssize_t
        for at in range(self.first_after[node], self.first_after[node + 1]):
            waits_for[self.after[at]] -= 1
            if waits_for[self.after[at]] == 0:
                self.order[self.count] = self.after[at]
                self.count += 1
        return 0

    def play(self, ns: cython.const[cython.longlong][::1]) -> tuple[memoryview, memoryview]:
        """When each node starts and when it is over; 0 for those that are never reached."""
        nodes = len(self.order)
        starts, ends = column("q", nodes), column("q", nodes)
        self.starts, self.ends = starts, ends
        self._play(ns)
        return starts, ends

    @cython.cfunc
    def _play(self, ns: cython.const[cython.longlong][::1]) -> cython.void:
        i: cython.Py_ssize_t
        at: cython.Py_ssize_t
        m: cython.Py_ssize_t
        node: cython.Py_ssize_t
        start: cython.longlong
        with cython.nogil:
            for m in range(len(self.came)):
                self.came[m] = 0
                self.lasts[m] = 0
            for i in range(self.count):
                node = self.order[i]
                start = 0
                for at in range(self.first_before[node], self.first_before[node + 1]):
                    if self.ends[self.before[at]] > start:
                        start = self.ends[self.before[at]]
                self.starts[node] = start
                if self.meeting[node] >= len(self.came):
                    self.ends[node] = start + ns[node]
                    continue
                m = self.meeting[node]
                self.came[m] += 1
                if start > self.lasts[m]:
                    self.lasts[m] = start
                if self.came[m] == self.first_member[m + 1] - self.first_member[m]:
                    for at in range(self.first_member[m], self.first_member[m + 1]):
                        self.ends[self.member[at]] = self.lasts[m] + ns[self.member[at]]


def _grouped(
    key: cython.const[cython.uint][::1], value: cython.const[cython.uint][::1], keys: int
) -> tuple[memoryview, memoryview]:
    """The values by their key: where those of each key begin, and the values in that order."""
    firsts, values = column("I", keys + 1), column("I", len(key))
    first: cython.uint[::1] = firsts
    out: cython.uint[::1] = values
    free = column("I", keys)
    at: cython.uint[::1] = free
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(key)):
            first[key[i] + 1] += 1
        for i in range(len(at)):
            first[i + 1] += first[i]
            at[i] = first[i]
        for i in range(len(key)):
            out[at[key[i]]] = value[i]
            at[key[i]] += 1
    return firsts, values


def _members(meeting: cython.const[cython.uint][::1], meetings: int) -> tuple[memoryview, memoryview]:
    """The nodes of each meeting: where they begin, and the nodes in that order."""
    firsts, nodes = column("I", meetings + 1), column("I", len(meeting))
    first: cython.uint[::1] = firsts
    out: cython.uint[::1] = nodes
    free = column("I", meetings)
    at: cython.uint[::1] = free
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(meeting)):
            if meeting[i] < len(at):
                first[meeting[i] + 1] += 1
        for i in range(len(at)):
            first[i + 1] += first[i]
            at[i] = first[i]
        for i in range(len(meeting)):
            if meeting[i] < len(at):
                out[at[meeting[i]]] = cython.cast(cython.uint, i)
                at[meeting[i]] += 1
    return firsts, nodes
