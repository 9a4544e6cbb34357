# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""What an event stands for, told from its own code and the codes of the events around it, in one pass.

Rows are events whose parents come before them. `analysis.causes` says what the codes mean and why the rules are so.
"""

from __future__ import annotations

from stepscope.native.buffers import column, room
from stepscope.native.checks import need_equal

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
NONE = 0xFFFFFFFF

SILENT, OP, CALL, FRAMEWORK, LIBRARY, USER, CONTEXT, FRAMEWORK_CONTEXT, WAIT_DEVICE, WAIT_THREAD = range(10)
OWN = 10  # a frame of stepscope's capture, which may call all of the job
# From here on, an event explains everything below it, however deep.
INPUT, COMPILE, IO, HOST_COLLECTIVE, PROFILER, GARBAGE, ALLOCATOR = range(11, 18)

ACTS, COMPUTES, WAITS, WAITS_FOR_THREAD, LEADS_TO_OP = 1, 2, 4, 8, 16

_SILENT = cython.declare(cython.int, 0)
_OP = cython.declare(cython.int, 1)
_CALL = cython.declare(cython.int, 2)
_FRAMEWORK = cython.declare(cython.int, 3)
_LIBRARY = cython.declare(cython.int, 4)
_USER = cython.declare(cython.int, 5)
_CONTEXT = cython.declare(cython.int, 6)
_FRAMEWORK_CONTEXT = cython.declare(cython.int, 7)
_WAIT_DEVICE = cython.declare(cython.int, 8)
_WAIT_THREAD = cython.declare(cython.int, 9)
_OWN = cython.declare(cython.int, 10)
_INPUT = cython.declare(cython.int, 11)
_ALLOCATOR = cython.declare(cython.int, 17)
_NONE = cython.declare(cython.uint, 0xFFFFFFFF)
_ACTS = cython.declare(cython.int, 1)
_COMPUTES = cython.declare(cython.int, 2)
_WAITS = cython.declare(cython.int, 4)
_WAITS_FOR_THREAD = cython.declare(cython.int, 8)
_LEADS_TO_OP = cython.declare(cython.int, 16)


@cython.final
@cython.cclass
class _Lineage:
    """For each row with rows below it, one more than the nearest of itself and its ancestors of some code (0: none).

    Most rows have none below them. They share the first place, so that the memory of most is never touched.
    """

    place: cython.uint[::1]  # of each row
    seen: cython.uchar[::1]  # by code: whether a row without others around it was met
    flags_alone: cython.uchar[::1]
    is_api_alone: cython.uchar[::1]
    parent: cython.const[cython.uint][::1]
    code: cython.const[cython.uchar][::1]
    annotation: cython.const[cython.uchar][::1]
    strong: cython.uint[::1]  # the outermost that explains all below it
    annotated: cython.uint[::1]  # the outermost annotation of input
    user: cython.uint[::1]
    op: cython.uint[::1]
    context: cython.uint[::1]
    own_context: cython.uint[::1]
    api: cython.uint[::1]  # the outermost call below the nearest user frame or annotation
    speaking: cython.uchar[::1]  # the code of the nearest that is neither silent nor a library's
    asking: cython.uchar[::1]  # the code of the nearest wait, op or user frame
    in_python: cython.uchar[::1]
    out_code: cython.uchar[::1]
    out_named: cython.uint[::1]
    out_detail: cython.uint[::1]
    out_api: cython.uint[::1]
    out_flags: cython.uchar[::1]

    def __init__(self, parent: object, code: object, annotation: object, outputs: object) -> None:
        self.parent = parent
        self.code = code
        self.annotation = annotation
        self.place = room("I", len(self.code))
        self.seen, self.flags_alone, self.is_api_alone = bytearray(256), bytearray(256), bytearray(256)
        n: cython.Py_ssize_t = self._mark_parents() + 1
        self.strong, self.annotated, self.user = column("I", n), column("I", n), column("I", n)
        self.op, self.context, self.own_context = column("I", n), column("I", n), column("I", n)
        self.api = column("I", n)
        self.speaking, self.asking, self.in_python = bytearray(n), bytearray(n), bytearray(n)
        self.out_code, self.out_named, self.out_detail, self.out_api, self.out_flags = outputs

    def run(self) -> None:
        """Fill all columns."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.code)
        places: cython.uint = 0
        here: cython.uint
        resolved: cython.int
        with cython.nogil:
            for i in range(n):
                here = self.place[i]
                if here == 0 and self.parent[i] >= i and self.seen[self.code[i]]:
                    self._speak_alone(i, self.code[i])
                    continue
                if here:
                    places += 1
                    here = self.place[i] = places
                resolved = self.code[i]
                if self.parent[i] < i:
                    resolved = self._resolved(resolved, self.place[self.parent[i]])
                    self._inherit(here, self.place[self.parent[i]])
                else:
                    self._begin(here)
                self._add_self(here, i, self.code[i])
                self._speak(here, i, resolved)
                if here == 0 and self.parent[i] >= i:
                    self.seen[self.code[i]] = 1
                    self.flags_alone[self.code[i]] = self.out_flags[i]
                    self.is_api_alone[self.code[i]] = self.out_api[i] != _NONE

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _speak_alone(self, i: cython.Py_ssize_t, code: cython.int) -> cython.int:
        """Say of a row with none above and none below it what was found of the first such row of its code."""
        self.out_code[i] = cython.cast(cython.uchar, code)
        self.out_named[i] = cython.cast(cython.uint, i)
        self.out_detail[i] = _NONE
        self.out_api[i] = cython.cast(cython.uint, i) if self.is_api_alone[code] else _NONE
        self.out_flags[i] = self.flags_alone[code]
        return 0

    @cython.cfunc
    def _mark_parents(self) -> cython.Py_ssize_t:
        """Mark the rows that have others below them, and count them."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.code)
        count: cython.Py_ssize_t = 0
        with cython.nogil:
            for i in range(n):
                if self.parent[i] < i and not self.place[self.parent[i]]:
                    self.place[self.parent[i]] = 1
                    count += 1
        return count

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _begin(self, here: cython.uint) -> cython.int:
        self.strong[here] = self.annotated[here] = self.user[here] = self.op[here] = 0
        self.api[here] = self.context[here] = self.own_context[here] = 0
        self.speaking[here] = self.asking[here] = self.in_python[here] = 0
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _resolved(self, code: cython.int, up: cython.uint) -> cython.int:
        """A library's frame stands for what called it, and everything plain inside a wait is the wait."""
        found: cython.int = code
        caller: cython.int = self.speaking[up]
        if code == _LIBRARY and (_OP <= caller <= _FRAMEWORK or _WAIT_DEVICE <= caller <= _OWN):
            found = caller
        if (found == _CALL or found == _FRAMEWORK) and self.asking[up] == _WAIT_DEVICE:
            found = _WAIT_DEVICE
        return found

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _inherit(self, here: cython.uint, up: cython.uint) -> cython.int:
        self.strong[here] = self.strong[up]
        self.annotated[here] = self.annotated[up]
        self.user[here] = self.user[up]
        self.op[here] = self.op[up]
        self.api[here] = self.api[up]
        self.context[here] = self.context[up]
        self.own_context[here] = self.own_context[up]
        self.speaking[here] = self.speaking[up]
        self.asking[here] = self.asking[up]
        self.in_python[here] = self.in_python[up]
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _add_self(self, here: cython.uint, i: cython.Py_ssize_t, code: cython.int) -> cython.int:
        is_context: cython.bint = code == _CONTEXT or code == _FRAMEWORK_CONTEXT
        own: cython.uint = cython.cast(cython.uint, i + 1)
        if code >= _INPUT and self.strong[here] == 0:
            self.strong[here] = own
        if code == _INPUT and self.annotation[i] and self.annotated[here] == 0:
            self.annotated[here] = own
        if code == _USER:
            self.user[here] = own
        if code == _OP:
            self.op[here] = own
        if is_context:
            self.context[here] = own
        if code == _CONTEXT:
            self.own_context[here] = own
        if code == _USER or code == _SILENT or code == _OWN or is_context:
            self.api[here] = 0
        elif self.api[here] == 0:
            self.api[here] = own
        if code != _LIBRARY and code != _SILENT:
            self.speaking[here] = cython.cast(cython.uchar, code)
        if code == _WAIT_DEVICE or code == _WAIT_THREAD or code == _OP or code == _USER:
            self.asking[here] = cython.cast(cython.uchar, code)
        if code == _USER or code == _FRAMEWORK or code == _LIBRARY:
            self.in_python[here] = 1
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _speak(self, here: cython.uint, i: cython.Py_ssize_t, resolved: cython.int) -> cython.int:
        by: cython.uint = self.annotated[here] if self.annotated[here] != 0 else self.strong[here]
        named: cython.uint
        detail: cython.uint
        if by != 0:
            named = by
            detail = self._slow_inside(here, i, by)
            self.out_code[i] = self.code[by - 1]
            self.out_flags[i] = cython.cast(cython.uchar, _ACTS)
        else:
            named = self._named(here, i, resolved)
            detail = self._around(here, i, resolved)
            self.out_code[i] = cython.cast(cython.uchar, resolved)
            self.out_flags[i] = cython.cast(cython.uchar, self._flags(here, resolved))
        self.out_named[i] = named - 1
        self.out_detail[i] = detail - 1 if detail != 0 and detail != named else _NONE
        self.out_api[i] = self.api[here] - 1 if self.api[here] != 0 else _NONE
        return 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(0xFFFFFFFF)
    def _slow_inside(self, here: cython.uint, i: cython.Py_ssize_t, by: cython.uint) -> cython.uint:
        """Inside what explains it: the user's frame or op, the inner of the two, or else the event itself.

        A call of the allocator has nothing inside: who asked for memory says more.
        """
        inner: cython.uint = self.user[here] if self.user[here] > self.op[here] else self.op[here]
        if self.code[by - 1] == _ALLOCATOR and inner != 0:
            return inner
        return inner if inner > by else cython.cast(cython.uint, i + 1)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(0xFFFFFFFF)
    def _named(self, here: cython.uint, i: cython.Py_ssize_t, code: cython.int) -> cython.uint:
        own: cython.uint
        if code == _LIBRARY or code == _USER or code == _CONTEXT:
            # Of an annotation and a user's frame the inner one says more.
            own = self.user[here] if self.user[here] > self.own_context[here] else self.own_context[here]
            if own != 0:
                return own
        elif code == _FRAMEWORK_CONTEXT or code == _OWN:
            return cython.cast(cython.uint, i + 1)
        elif self.op[here] != 0:
            return self.op[here]
        return self.api[here] if self.api[here] != 0 else cython.cast(cython.uint, i + 1)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(0xFFFFFFFF)
    def _around(self, here: cython.uint, i: cython.Py_ssize_t, code: cython.int) -> cython.uint:
        if code == _LIBRARY or code == _USER or code == _CONTEXT:
            return cython.cast(cython.uint, i + 1)
        return self.user[here] if self.user[here] != 0 else self.context[here]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1)
    def _flags(self, here: cython.uint, code: cython.int) -> cython.int:
        in_op: cython.bint = self.op[here] != 0
        flags: cython.int = 0
        if code == _WAIT_THREAD:
            flags = _WAITS_FOR_THREAD
        elif code == _CONTEXT or code == _FRAMEWORK_CONTEXT:
            flags = _ACTS if self.in_python[here] else 0
        elif code != _SILENT:
            flags = _ACTS
        if in_op and (_OP <= code <= _FRAMEWORK or code == _FRAMEWORK_CONTEXT or code == _WAIT_THREAD):
            flags |= _COMPUTES
        if not in_op and (code == _FRAMEWORK or code == _FRAMEWORK_CONTEXT):
            flags |= _LEADS_TO_OP
        if code == _WAIT_DEVICE:
            flags |= _WAITS
        return flags


def lineage(
    parent: cython.const[cython.uint][::1],
    code: cython.const[cython.uchar][::1],
    annotation: cython.const[cython.uchar][::1],
) -> tuple[bytearray, memoryview, memoryview, memoryview, bytearray]:
    """For each event the code it stands for, the event that names it, one that says more, the call around it, flags.

    `annotation` marks annotations. Events are row numbers, NONE where there is none; flags are a sum of ACTS, ….
    """
    need_equal(len(parent), len(code), len(annotation))
    n: cython.Py_ssize_t = len(code)
    outputs = (
        bytearray(n),
        column("I", n),
        column("I", n),
        column("I", n),
        bytearray(n),
    )
    _Lineage(parent, code, annotation, outputs).run()
    return outputs
