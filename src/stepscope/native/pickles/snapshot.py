# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True, auto_pickle=False
"""The pickle of a memory snapshot as columns: its opcodes are read one by one, and an event is a row as soon as it is whole.

Only what such a file consists of is understood: numbers, text, lists, dicts, tuples and the memo. Nothing is ever looked up or
called. Anything else, and anything odd, ends the reading as `Unusual`, and the caller opens the file in another way.
What a file can make it take is bounded by the size of the file.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Any

from stepscope.native.buffers import larger, room
from stepscope.native.pickles.values import Rows, Stack, Unusual

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

if not cython.compiled:  # compiled, snapshot.pxd imports them
    from stepscope.native.pickles.stacks import Stacks
    from stepscope.native.pickles.values import Values

__all__ = ["COMPILED", "NO_STACK", "Machine", "Rows", "Stack", "Unusual"]

COMPILED = bool(cython.compiled)

NO_STACK = 0xFFFFFFFF
_NO_STACK = cython.declare(cython.uint, 0xFFFFFFFF)
# What a value is.
_INT = cython.declare(cython.uchar, 1)
_TEXT = cython.declare(cython.uchar, 2)
_DICT = cython.declare(cython.uchar, 3)
_LIST = cython.declare(cython.uchar, 4)
_OBJECT = cython.declare(cython.uchar, 5)
_NONE = cython.declare(cython.uchar, 6)
_BOOL = cython.declare(cython.uchar, 7)
# What a dict or a list is.
_NEW = cython.declare(cython.uchar, 0)
_FRAMES = cython.declare(cython.uchar, 1)  # a frame, or a list of them
_EVENTS = cython.declare(cython.uchar, 2)
_PYTHON = cython.declare(cython.uchar, 3)

# The keys of events and frames: their texts are taken in first, so the place here is the number.
_KEYS = (
    b"action",
    b"addr",
    b"device_free",
    b"size",
    b"stream",
    b"time_us",
    b"frames",
    b"name",
    b"filename",
    b"line",
)
_ACTION = cython.declare(cython.Py_ssize_t, 0)
_ADDR = cython.declare(cython.Py_ssize_t, 1)
_DEVICE_FREE = cython.declare(cython.Py_ssize_t, 2)
_SIZE = cython.declare(cython.Py_ssize_t, 3)
_STREAM = cython.declare(cython.Py_ssize_t, 4)
_TIME = cython.declare(cython.Py_ssize_t, 5)
_FRAMES_KEY = cython.declare(cython.Py_ssize_t, 6)
_NAME = cython.declare(cython.Py_ssize_t, 7)
_FILENAME = cython.declare(cython.Py_ssize_t, 8)
_LINE = cython.declare(cython.Py_ssize_t, 9)
_KEY_COUNT = cython.declare(cython.Py_ssize_t, 10)
_FREE_REQUESTED = cython.declare(cython.uint, 10)  # the text behind the keys; it has no use for its stack

_DEEPEST = cython.declare(cython.Py_ssize_t, 256)  # marks
_MOST_FRAMES = cython.declare(cython.Py_ssize_t, 512)  # of a stack; deeper ones are cut at the outer end


@cython.final
@cython.cclass
class Machine(Values):
    """Reads the opcodes of one pickle."""

    def __init__(self, data: Any) -> None:
        Values.__init__(self, data, (*_KEYS, b"free_requested"))
        self.depth = self.dict_count = self.list_count = 0
        self.marks = room("q", 256)
        self.dict_kinds, self.dict_numbers = room("B", 1024), room("I", 1024)
        self.list_kinds, self.list_numbers = room("B", 1024), room("I", 1024)
        self.stacks = Stacks()
        self.count = self.placed = 0
        self.action, self.stack = room("I", 1024), room("I", 1024)
        self.address, self.stream = room("Q", 1024), room("Q", 1024)
        self.size, self.time = room("q", 1024), room("q", 1024)
        self.objects: list[Any] = []
        self.runs: list[tuple[int, int]] = []
        self.frame_rows: list[tuple[int, int, int]] = []
        self.frame_numbers: dict[tuple[int, int, int], int] = {}
        self.texts: dict[int, str] = {}
        if not cython.compiled:
            self.seen = [0] * len(_KEYS)

    def run(self, until: int) -> bool:
        """Read to this place or a little further; whether the pickle goes on."""
        return self._go(min(until, self.end)) == 0

    def result(self) -> Any:
        """The value of the whole pickle: events are Rows in it, lists of frames a Stack."""
        if self.top != 1 or self.placed != self.count:
            raise Unusual
        return self._object(0)

    def events(self) -> dict[str, memoryview]:
        """The columns of the events."""
        return {
            "action": memoryview(self.action)[: self.count],
            "address": memoryview(self.address)[: self.count],
            "bytes": memoryview(self.size)[: self.count],
            "stream": memoryview(self.stream)[: self.count],
            "time": memoryview(self.time)[: self.count],
            "stack": memoryview(self.stack)[: self.count],
        }

    def lists_of_events(self) -> list[tuple[int, int]]:
        """The number of a list and how many events it has, in the order of the file."""
        return list(self.runs)

    def all_frames(self) -> list[tuple[int, int, int]]:
        """Texts of the name and of the file, and the line."""
        return list(self.frame_rows)

    def frames_of(self, number: int) -> list[int]:
        """The frames of a stack, the innermost first."""
        return self.stacks.frames_of(number)

    @cython.cfunc
    @cython.exceptval(-9)
    def _go(self, until: cython.Py_ssize_t) -> cython.int:
        op: cython.int
        while self.at < until:
            op = self.data[self.at]
            self.at += 1
            if op == 46:  # STOP
                return 1
            self._do(op)
        if self.at >= self.end:
            raise Unusual
        return 0

    @cython.cfunc
    @cython.exceptval(-9)
    def _do(self, op: cython.int) -> cython.int:
        """The opcodes that make up almost all of a snapshot."""
        if op == 106:  # LONG_BINGET
            return self._get(self._number_at(4))
        if op == 104:  # BINGET
            return self._get(self._number_at(1))
        if op == 148:  # MEMOIZE
            return self._put(self.memo_count)
        if op == 138:  # LONG1
            return self._push_int(self._number_at(1), True)
        if op == 75:  # BININT1
            return self._push_int(1, False)
        if op == 77:  # BININT2
            return self._push_int(2, False)
        if op == 74:  # BININT
            return self._push_int(4, True)
        if op == 140:  # SHORT_BINUNICODE
            return self._push_text(1)
        if op == 125:
            return self._new_dict()
        if op == 93:
            return self._new_list()
        if op == 40:  # MARK
            if self.depth >= _DEEPEST:
                raise Unusual
            self.marks[self.depth] = self.top
            self.depth += 1
            return 0
        if op == 117:  # SETITEMS
            return self._fill(self._unmark())
        if op == 101:  # APPENDS
            return self._extend(self._unmark())
        return self._do_rare(op)

    @cython.cfunc
    @cython.exceptval(-9)
    def _do_rare(self, op: cython.int) -> cython.int:
        if op == 113:  # BINPUT
            return self._put(self._number_at(1))
        if op == 114:  # LONG_BINPUT
            return self._put(self._number_at(4))
        if op == 88:  # BINUNICODE
            return self._push_text(4)
        if op == 115:  # SETITEM
            return self._fill(self.top - 2)
        if op == 97:  # APPEND
            return self._extend(self.top - 1)
        if op == 78:
            return self._push(_NONE, 0)
        if op == 136 or op == 137:  # NEWTRUE, NEWFALSE
            return self._push(_BOOL, 137 - op)
        if op == 128:  # PROTO
            self._number_at(1)
            return 0
        if op == 149:  # FRAME
            self._number_at(4)
            self._number_at(4)
            return 0
        return self._do_objects(op)

    def _do_objects(self, op: int) -> int:
        """Tuples and fractions, as Python objects."""
        if op == 71:  # BINFLOAT
            if self.at + 8 > self.end:
                raise Unusual
            found = unpack_from(">d", memoryview(self.data), self.at)[0]
            self.at += 8
            return self._push_object(found)
        if op == 116:  # TUPLE
            low = self._unmark()
        elif op == 41:
            low = self.top
        elif 133 <= op <= 135:  # TUPLE1 to TUPLE3
            low = self.top - (op - 132)
        else:
            raise Unusual
        if low < (self.marks[self.depth - 1] if self.depth else 0):
            raise Unusual
        made = tuple(self._object(place) for place in range(low, self.top))
        self.top = low
        return self._push_object(made)

    def _push_object(self, value: object) -> int:
        self._keep(value)
        return self._push(_OBJECT, len(self.objects) - 1)

    @cython.cfunc
    @cython.exceptval(-9)
    def _new_dict(self) -> cython.int:
        which: cython.Py_ssize_t = self.dict_count
        if which >= len(self.dict_kinds):
            if 8 * which > self.end + (1 << 16):
                raise Unusual
            self.dict_kinds = larger(memoryview(self.dict_kinds), "B", 2 * which)
            self.dict_numbers = larger(memoryview(self.dict_numbers), "I", 2 * which)
        self.dict_count = which + 1
        return self._push(_DICT, which)

    @cython.cfunc
    @cython.exceptval(-9)
    def _new_list(self) -> cython.int:
        which: cython.Py_ssize_t = self.list_count
        if which >= len(self.list_kinds):
            if 8 * which > self.end + (1 << 16):
                raise Unusual
            self.list_kinds = larger(memoryview(self.list_kinds), "B", 2 * which)
            self.list_numbers = larger(memoryview(self.list_numbers), "I", 2 * which)
        self.list_count = which + 1
        return self._push(_LIST, which)

    @cython.cfunc
    @cython.exceptval(-9)
    def _unmark(self) -> cython.Py_ssize_t:
        """The place of the last mark, which is taken away."""
        if self.depth < 1:
            raise Unusual
        self.depth -= 1
        return self.marks[self.depth]

    @cython.cfunc
    @cython.exceptval(-9)
    def _extend(self, low: cython.Py_ssize_t) -> cython.int:
        """Append the values from `low` on to the list below them."""
        which: cython.Py_ssize_t
        kind: cython.uchar = _PYTHON
        if low < 1 or low > self.top or self.tags[low - 1] != _LIST:
            raise Unusual
        if self.depth and self.marks[self.depth - 1] > low - 1:
            raise Unusual
        which = cython.cast(cython.Py_ssize_t, self.values[low - 1])
        if low == self.top:
            return 0
        if self.tags[low] == _DICT:
            kind = self.dict_kinds[self.values[low]]
        if kind == _FRAMES:
            self._extend_frames(which, low)
        elif kind == _EVENTS:
            self._extend_events(which, low)
        else:
            self._extend_objects(which, low)
        self.top = low
        return 0

    @cython.cfunc
    @cython.exceptval(-9)
    def _extend_frames(self, which: cython.Py_ssize_t, low: cython.Py_ssize_t) -> cython.int:
        place: cython.Py_ssize_t
        if self.list_kinds[which] != _NEW:
            raise Unusual
        for place in range(low, self.top):
            if self.tags[place] != _DICT or self.dict_kinds[self.values[place]] != _FRAMES:
                raise Unusual
            self.values[place] = self.dict_numbers[self.values[place]]
        self.list_kinds[which] = _FRAMES
        self.list_numbers[which] = cython.cast(
            cython.uint, self.stacks.number(self.values, low, min(self.top, low + _MOST_FRAMES))
        )
        return 0

    @cython.cfunc
    @cython.exceptval(-9)
    def _extend_events(self, which: cython.Py_ssize_t, low: cython.Py_ssize_t) -> cython.int:
        """Each event is in one list, and they come in the order in which they were made."""
        place: cython.Py_ssize_t
        if self.list_kinds[which] != _NEW and self.list_kinds[which] != _EVENTS:
            raise Unusual
        for place in range(low, self.top):
            if self.tags[place] != _DICT or self.dict_kinds[self.values[place]] != _EVENTS:
                raise Unusual
            if self.dict_numbers[self.values[place]] != self.placed:
                raise Unusual
            self.placed += 1
        self.list_kinds[which] = _EVENTS
        self.runs.append((which, self.top - low))
        return 0

    def _extend_objects(self, which: int, low: int) -> None:
        held = self._list(which)
        if not isinstance(held, list):
            raise Unusual
        held.extend(self._object(place) for place in range(low, self.top))

    @cython.cfunc
    @cython.exceptval(-9)
    def _fill(self, low: cython.Py_ssize_t) -> cython.int:
        """Set the pairs from `low` on in the dict below them."""
        which: cython.Py_ssize_t
        if low < 1 or low > self.top or (self.top - low) % 2 or self.tags[low - 1] != _DICT:
            raise Unusual
        if self.depth and self.marks[self.depth - 1] > low - 1:
            raise Unusual
        which = cython.cast(cython.Py_ssize_t, self.values[low - 1])
        self._look_for_keys(low)
        if self.seen[_ACTION]:
            self._make_event(which)
        elif self.seen[_NAME] and self.seen[_FILENAME] and self.seen[_LINE]:
            self._make_frame(which)
        else:
            self._fill_object(which, low)
        self.top = low
        return 0

    @cython.cfunc
    @cython.exceptval(-9)
    def _look_for_keys(self, low: cython.Py_ssize_t) -> cython.int:
        """The place of the value of each known key; 0 where there is none."""
        place: cython.Py_ssize_t
        key: cython.Py_ssize_t
        for key in range(_KEY_COUNT):
            self.seen[key] = 0
        for place in range(low, self.top, 2):
            if self.tags[place] == _TEXT and self.values[place] < _KEY_COUNT:
                self.seen[self.values[place]] = place + 1
        return 0

    @cython.cfunc
    @cython.exceptval(-9)
    def _is_number(self, key: cython.Py_ssize_t, signed: cython.bint) -> cython.bint:
        place: cython.Py_ssize_t = self.seen[key]
        return place > 0 and self.tags[place] == _INT and (signed or self.values[place] >= 0)

    @cython.cfunc
    @cython.exceptval(-9)
    def _make_event(self, which: cython.Py_ssize_t) -> cython.int:
        """A row of the events."""
        row: cython.Py_ssize_t = self.count
        frames: cython.Py_ssize_t = self.seen[_FRAMES_KEY]
        at: cython.Py_ssize_t = _ADDR if self.seen[_ADDR] else _DEVICE_FREE
        action: cython.Py_ssize_t = self.seen[_ACTION]
        if not (
            self._is_number(at, False) and self._is_number(_SIZE, True) and self._is_number(_STREAM, False)
        ):
            raise Unusual
        if not self._is_number(_TIME, True) or self.tags[action] != _TEXT:
            raise Unusual
        if frames == 0 or self.tags[frames] != _LIST or self.dict_kinds[which] != _NEW:
            raise Unusual
        if self.list_kinds[self.values[frames]] != _NEW and self.list_kinds[self.values[frames]] != _FRAMES:
            raise Unusual
        if row >= len(self.action):
            self._grow_rows()
        self.action[row] = cython.cast(cython.uint, self.values[action])
        self.address[row] = cython.cast(cython.ulonglong, self.values[self.seen[at]])
        self.size[row] = self.values[self.seen[_SIZE]]
        self.stream[row] = cython.cast(cython.ulonglong, self.values[self.seen[_STREAM]])
        self.time[row] = self.values[self.seen[_TIME]]
        if self.list_kinds[self.values[frames]] == _NEW or self.action[row] == _FREE_REQUESTED:
            self.stack[row] = _NO_STACK
        else:
            self.stack[row] = self.list_numbers[self.values[frames]]
        self.dict_kinds[which] = _EVENTS
        self.dict_numbers[which] = cython.cast(cython.uint, row)
        self.count = row + 1
        return 0

    def _grow_rows(self) -> None:
        if self.count >= 1 << 31:
            raise Unusual
        count = 2 * self.count
        self.action = larger(memoryview(self.action), "I", count)
        self.stack = larger(memoryview(self.stack), "I", count)
        self.address = larger(memoryview(self.address), "Q", count)
        self.stream = larger(memoryview(self.stream), "Q", count)
        self.size = larger(memoryview(self.size), "q", count)
        self.time = larger(memoryview(self.time), "q", count)

    @cython.cfunc
    @cython.exceptval(-9)
    def _make_frame(self, which: cython.Py_ssize_t) -> cython.int:
        name: cython.Py_ssize_t = self.seen[_NAME]
        file: cython.Py_ssize_t = self.seen[_FILENAME]
        line: cython.Py_ssize_t = self.seen[_LINE]
        if self.tags[name] != _TEXT or self.tags[file] != _TEXT or self.dict_kinds[which] != _NEW:
            raise Unusual
        if not self._is_number(_LINE, False) or self.values[line] > 0x7FFFFFFF:
            raise Unusual
        self.dict_kinds[which] = _FRAMES
        self.dict_numbers[which] = self._frame(self.values[name], self.values[file], self.values[line])
        return 0

    def _frame(self, name: int, file: int, line: int) -> int:
        """The number of a frame, equal for equal content."""
        row = (name, file, line)
        found = self.frame_numbers.setdefault(row, len(self.frame_rows))
        if found == len(self.frame_rows):
            self.frame_rows.append(row)
        return found

    def _fill_object(self, which: int, low: int) -> None:
        held = self._dict(which)
        if not isinstance(held, dict):
            raise Unusual
        try:
            for place in range(low, self.top, 2):
                held[self._object(place)] = self._object(place + 1)
        except TypeError:  # a key that cannot be one
            raise Unusual from None

    def _object(self, place: int) -> Any:
        """The value at this place of the stack, for Python."""
        tag, value = self.tags[place], self.values[place]
        if tag == _INT:
            return value
        if tag == _TEXT:
            return self._text(value)
        if tag == _DICT:
            return self._dict(value)
        if tag == _LIST:
            return self._list(value)
        if tag == _OBJECT:
            return self.objects[value]
        return bool(value) if tag == _BOOL else None

    def _text(self, code: int) -> str:
        """Each text becomes one object."""
        if code not in self.texts:
            self.texts[code] = self.text(code)
        return self.texts[code]

    def _dict(self, which: int) -> Any:
        kind = self.dict_kinds[which]
        if kind == _NEW:
            self._keep({})
            self.dict_kinds[which] = _PYTHON
            self.dict_numbers[which] = len(self.objects) - 1
        elif kind != _PYTHON:
            raise Unusual
        return self.objects[self.dict_numbers[which]]

    def _list(self, which: int) -> Any:
        kind = self.list_kinds[which]
        if kind == _NEW:
            self._keep([])
            self.list_kinds[which] = _PYTHON
            self.list_numbers[which] = len(self.objects) - 1
        elif kind == _FRAMES:
            return Stack(self.list_numbers[which])
        elif kind == _EVENTS:
            return Rows(which)
        return self.objects[self.list_numbers[which]]

    def _keep(self, value: object) -> None:
        if 32 * len(self.objects) > self.end + (1 << 16):
            raise Unusual
        self.objects.append(value)
