# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""Events as rows of columns: those that lie in time, flows, metadata, ids, and JSON text that has no column."""

from __future__ import annotations

from stepscope.native.buffers import larger, room
from stepscope.native.json.numbers import MISSING

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

if not cython.compiled:  # compiled, event_rows.pxd imports them
    from stepscope.native.json.event_arguments import Arguments
    from stepscope.native.json.event_tracks import Tracks

COMPILED = bool(cython.compiled)

FLOW_COLUMNS = ("start", "track", "id", "category", "name", "ph", "bind_enclosing")
META_COLUMNS = ("name", "pid", "tid")
ASYNC_COLUMNS = ("event", "id")

_NO_CODE = cython.declare(cython.uint, 0xFFFFFFFF)
_MISSING = cython.declare(cython.longlong, MISSING)


@cython.final
@cython.cclass
class Event:
    """The members of the event that is being read."""

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def clear(self) -> cython.int:
        """Begin another event."""
        self.phase = 0
        self.name = self.category = _NO_CODE
        self.pid = self.tid = self.id = _MISSING
        self.start = self.start_part = self.dur = self.dur_part = 0
        self.has_start = self.has_dur = self.is_out_of_range = self.binds_enclosing = False
        self.members = 0
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def start_ns(self) -> cython.longlong:
        """The start, rounded half up."""
        return self.start + (self.start_part + 500000) // 1000000

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def end_ns(self) -> cython.longlong:
        """The end, rounded as the start is, and not start plus a rounded duration: so nesting survives."""
        return self.start + self.dur + (self.start_part + self.dur_part + 500000) // 1000000


@cython.final
@cython.cclass
class Rows:
    """All rows so far, and how many events became none."""

    def __init__(self, arguments: Arguments, seed: int, expected_events: int) -> None:
        self.arguments = arguments
        self.tracks = Tracks(seed)
        self.event = Event()
        self.look_at(memoryview(b"\0"))
        self.capacity = expected_events
        self.phases = room("B", self.capacity)
        self.names = room("I", self.capacity)
        self.categories = room("I", self.capacity)
        self.event_tracks = room("I", self.capacity)
        self.starts = room("q", self.capacity)
        self.durations = room("q", self.capacity)
        self.flows = room("q", self.capacity * 7)
        self.metas = room("q", 1024 * 3)
        self.asyncs = room("q", 1024 * 2)
        self.rest = room("B", 1 << 16)
        self.rest_events = room("q", 1024)
        self.rest_offsets = room("q", 1024 + 1)
        self.count = self.flow_count = self.meta_count = self.async_count = self.rest_count = 0
        self.untimed = self.out_of_range = self.without_duration = self.without_phase = self.empty = 0
        self.begin()

    def look_at(self, buf: memoryview) -> None:
        """JSON text lies in this buffer from now on."""
        self.buf = buf

    def events(self) -> dict[str, memoryview]:
        """The columns of all events."""
        columns = {
            "ph": memoryview(self.phases),
            "name": memoryview(self.names),
            "category": memoryview(self.categories),
            "track": memoryview(self.event_tracks),
            "start": memoryview(self.starts),
            "dur": memoryview(self.durations),
        }
        return {name: column[: self.count] for name, column in columns.items()}

    def flow_rows(self) -> memoryview:
        """Flow events, seven integers each; see FLOW_COLUMNS."""
        return memoryview(self.flows)[: self.flow_count * 7]

    def meta_rows(self) -> memoryview:
        """Metadata events, three integers each (see META_COLUMNS); row n's args are the rest of event -1 - n."""
        return memoryview(self.metas)[: self.meta_count * 3]

    def async_rows(self) -> memoryview:
        """The id of events that have one, two integers each; see ASYNC_COLUMNS."""
        return memoryview(self.asyncs)[: self.async_count * 2]

    def rest_texts(self) -> tuple[memoryview, memoryview, memoryview]:
        """JSON objects that no column holds: the event's row number (metadata: -1 - row), offsets, and the bytes."""
        end = self.rest_offsets[self.rest_count]
        return (
            memoryview(self.rest_events)[: self.rest_count],
            memoryview(self.rest_offsets)[: self.rest_count + 1],
            memoryview(self.rest)[:end],
        )

    def counts(self) -> dict[str, int]:
        """What was read and what was left out."""
        return {
            "events": self.count,
            "untimed": self.untimed,
            "out_of_range": self.out_of_range,
            "without_duration": self.without_duration,
            "without_phase": self.without_phase,
            "empty": self.empty,
        }

    # --- one event --------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def begin(self) -> cython.int:
        """Begin another event."""
        self.event.clear()
        self.arguments.clear()
        self.rest_before = self.rest_count
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def drop(self) -> cython.int:
        """Forget the JSON text that was set aside for an event that gets no row."""
        self.rest_count = self.rest_before
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def finish(self) -> cython.int:
        """The event was read to its end: give it a row, or count why not."""
        phase: cython.int = self.event.phase
        if phase == 77:  # M
            return self._add_meta()
        if not self._can_be_placed():
            return self.drop()
        if phase == 115 or phase == 116 or phase == 102:  # s t f
            return self._add_flow()
        if phase == 88 and not self.event.has_dur:
            self.without_duration += 1
        return self._add_event()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _can_be_placed(self) -> cython.bint:
        if self.event.members == 0:
            self.empty += 1
        elif self.event.phase == 0:
            self.without_phase += 1
        elif self.event.is_out_of_range:
            self.out_of_range += 1
        elif not self.event.has_start:
            self.untimed += 1
        else:
            return True
        return False

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add_event(self) -> cython.int:
        row: cython.Py_ssize_t = self.count
        if row >= self.capacity:
            with cython.gil:
                self._grow_events()
        self.phases[row] = cython.cast(cython.uchar, self.event.phase)
        self.names[row] = self.event.name
        self.categories[row] = self.event.category
        self.event_tracks[row] = cython.cast(cython.uint, self.tracks.number(self.event.pid, self.event.tid))
        self.starts[row] = self.event.start_ns()
        self.durations[row] = self.event.end_ns() - self.event.start_ns()
        if self.arguments.keep(row, self.event.category):
            self.set_aside(row, self.arguments.lo, self.arguments.hi, False)
        if self.event.id != _MISSING:
            self._add_async()
        self.count = row + 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add_flow(self) -> cython.int:
        at: cython.Py_ssize_t = self.flow_count * 7
        if at + 7 > len(self.flows):
            with cython.gil:
                self._grow_flows()
        self.flows[at] = self.event.start_ns()
        self.flows[at + 1] = self.tracks.number(self.event.pid, self.event.tid)
        self.flows[at + 2] = self.event.id
        self.flows[at + 3] = self.event.category
        self.flows[at + 4] = self.event.name
        self.flows[at + 5] = self.event.phase
        self.flows[at + 6] = self.event.binds_enclosing
        self.flow_count += 1
        return self.drop()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add_meta(self) -> cython.int:
        at: cython.Py_ssize_t = self.meta_count * 3
        if at + 3 > len(self.metas):
            with cython.gil:
                self._grow_metas()
        self.metas[at] = self.event.name
        self.metas[at + 1] = self.event.pid
        self.metas[at + 2] = self.event.tid
        self.drop()
        if self.arguments.lo >= 0:
            self.set_aside(-1 - self.meta_count, self.arguments.lo, self.arguments.hi, False)
        self.meta_count += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def _add_async(self) -> cython.int:
        at: cython.Py_ssize_t = self.async_count * 2
        if at + 2 > len(self.asyncs):
            with cython.gil:
                self._grow_asyncs()
        self.asyncs[at] = self.count
        self.asyncs[at + 1] = self.event.id
        self.async_count += 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-9)
    def set_aside(
        self, event: cython.Py_ssize_t, lo: cython.Py_ssize_t, hi: cython.Py_ssize_t, bare: cython.bint
    ) -> cython.int:
        """Keep the JSON text [lo, hi) for the event; a bare member gets braces round it."""
        i: cython.Py_ssize_t
        row: cython.Py_ssize_t = self.rest_count
        at: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.rest_offsets[row])
        if at + hi - lo + 2 > len(self.rest) or row >= len(self.rest_events):
            with cython.gil:
                self._grow_rest(at + hi - lo + 2)
        self.rest_events[row] = event
        if bare:
            self.rest[at] = 123
            at += 1
        for i in range(lo, hi):
            self.rest[at] = self.buf[i]
            at += 1
        if bare:
            self.rest[at] = 125
            at += 1
        self.rest_offsets[row + 1] = at
        self.rest_count = row + 1
        return 0

    # --- more room --------------------------------------------------------------------------------------------

    def _grow_events(self) -> None:
        self.capacity *= 2
        self.phases = larger(memoryview(self.phases), "B", self.capacity)
        self.names = larger(memoryview(self.names), "I", self.capacity)
        self.categories = larger(memoryview(self.categories), "I", self.capacity)
        self.event_tracks = larger(memoryview(self.event_tracks), "I", self.capacity)
        self.starts = larger(memoryview(self.starts), "q", self.capacity)
        self.durations = larger(memoryview(self.durations), "q", self.capacity)

    def _grow_flows(self) -> None:
        self.flows = larger(memoryview(self.flows), "q", 2 * len(self.flows))

    def _grow_metas(self) -> None:
        self.metas = larger(memoryview(self.metas), "q", 2 * len(self.metas))

    def _grow_asyncs(self) -> None:
        self.asyncs = larger(memoryview(self.asyncs), "q", 2 * len(self.asyncs))

    def _grow_rest(self, size: int) -> None:
        if size > len(self.rest):
            self.rest = larger(memoryview(self.rest), "B", 2 * size)
        if self.rest_count >= len(self.rest_events):
            self.rest_events = larger(memoryview(self.rest_events), "q", 2 * self.rest_count)
            self.rest_offsets = larger(memoryview(self.rest_offsets), "q", 2 * self.rest_count + 1)
