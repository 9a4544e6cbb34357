# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""What a thread was doing at each moment: its timeline cut into segments, each owned by the innermost event.

Also: the next event of a track after a moment.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)
NONE = 0xFFFFFFFF


def segments(
    track: cython.const[cython.uint][::1],
    start: cython.const[cython.longlong][::1],
    dur: cython.const[cython.longlong][::1],
) -> tuple[array[int], array[int], array[int]]:
    """Starts, ends and owning rows of all segments, for rows sorted by track, start and longer first.

    Where two events overlap without nesting, the later one owns what they share. Moments without an event, and
    events without a duration, own nothing.
    """
    n: cython.Py_ssize_t = len(start)
    starts = array("q", bytes(16 * n))
    ends = array("q", bytes(16 * n))
    rows = array("I", bytes(8 * n))
    out_start: cython.longlong[::1] = starts
    out_end: cython.longlong[::1] = ends
    out_row: cython.uint[::1] = rows
    open_rows = array("I", bytes(4 * n))
    stack: cython.uint[::1] = open_rows
    depth: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    cursor: cython.longlong = 0
    end: cython.longlong
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n + 1):
            # At a new track, and at the very end, everything still open is closed.
            while depth > 0:
                end = start[stack[depth - 1]] + dur[stack[depth - 1]]
                if i < n and track[i] == track[stack[depth - 1]] and end > start[i]:
                    break
                if cursor < end:
                    out_start[count] = cursor
                    out_end[count] = end
                    out_row[count] = stack[depth - 1]
                    count += 1
                    cursor = end
                depth -= 1
            if i == n:
                break
            if dur[i] <= 0:
                continue
            if depth > 0 and cursor < start[i]:
                out_start[count] = cursor
                out_end[count] = start[i]
                out_row[count] = stack[depth - 1]
                count += 1
            if depth == 0 or cursor < start[i]:
                cursor = start[i]
            stack[depth] = cython.cast(cython.uint, i)
            depth += 1
    return starts[:count], ends[:count], rows[:count]


def cut(
    span_track: cython.const[cython.uint][::1],
    span_start: cython.const[cython.longlong][::1],
    span_end: cython.const[cython.longlong][::1],
    track_first: cython.const[cython.uint][::1],
    segment_start: cython.const[cython.longlong][::1],
    segment_end: cython.const[cython.longlong][::1],
    segment_row: cython.const[cython.uint][::1],
) -> tuple[array[int], array[int], array[int], array[int], array[int]]:
    """Each span cut by the segments of its track: span, start, end, owner (NONE where no segment lies) and `place`.

    The segments of track t are track_first[t] to track_first[t + 1]. The pieces of a span cover it exactly. `place`
    is the segment that owns a piece, or for a piece that none owns, the one after it (perhaps of the next track).
    """
    pieces = _count(span_track, span_start, span_end, track_first, segment_start, segment_end)
    found = (
        array("I", bytes(4 * pieces)),
        array("q", bytes(8 * pieces)),
        array("q", bytes(8 * pieces)),
        array("I", bytes(4 * pieces)),
        array("I", bytes(4 * pieces)),
    )
    out_span: cython.uint[::1] = found[0]
    out_start: cython.longlong[::1] = found[1]
    out_end: cython.longlong[::1] = found[2]
    out_row: cython.uint[::1] = found[3]
    out_place: cython.uint[::1] = found[4]
    none: cython.uint = NONE
    n: cython.Py_ssize_t = len(span_start)
    tracks: cython.Py_ssize_t = len(track_first) - 1
    at: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    s: cython.Py_ssize_t
    last: cython.Py_ssize_t
    cursor: cython.longlong
    until: cython.longlong
    with cython.nogil:
        for i in range(n):
            cursor = span_start[i]
            s = 0
            last = 0
            if span_track[i] < tracks:
                last = track_first[span_track[i] + 1]
                s = _first_ending_after(segment_end, track_first[span_track[i]], last, cursor)
            while cursor < span_end[i]:
                out_span[at] = cython.cast(cython.uint, i)
                out_start[at] = cursor
                out_place[at] = cython.cast(cython.uint, s)
                if s >= last or segment_start[s] >= span_end[i]:
                    until = span_end[i]
                    out_row[at] = none
                elif segment_start[s] > cursor:
                    until = segment_start[s]
                    out_row[at] = none
                else:
                    until = segment_end[s] if segment_end[s] < span_end[i] else span_end[i]
                    out_row[at] = segment_row[s]
                    s += 1
                out_end[at] = until
                cursor = until
                at += 1
    return found


def next_start(
    first: cython.const[cython.uint][::1],
    start: cython.const[cython.longlong][::1],
    query_track: cython.const[cython.uint][::1],
    query_time: cython.const[cython.longlong][::1],
) -> array[int]:
    """For each query the first row of its track that starts at or after the time, or NONE.

    The rows of track t are first[t] to first[t + 1], in order of their starts.
    """
    n: cython.Py_ssize_t = len(query_time)
    result = array("I", bytes(4 * n))
    out: cython.uint[::1] = result
    none: cython.uint = NONE
    tracks: cython.Py_ssize_t = len(first) - 1
    i: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            out[i] = none
            if query_track[i] >= tracks:
                continue
            low = first[query_track[i]]
            high = first[query_track[i] + 1]
            while low < high:
                middle = (low + high) // 2
                if start[middle] < query_time[i]:
                    low = middle + 1
                else:
                    high = middle
            if low < first[query_track[i] + 1]:
                out[i] = cython.cast(cython.uint, low)
    return result


def _count(
    span_track: cython.const[cython.uint][::1],
    span_start: cython.const[cython.longlong][::1],
    span_end: cython.const[cython.longlong][::1],
    track_first: cython.const[cython.uint][::1],
    segment_start: cython.const[cython.longlong][::1],
    segment_end: cython.const[cython.longlong][::1],
) -> int:
    n: cython.Py_ssize_t = len(span_start)
    tracks: cython.Py_ssize_t = len(track_first) - 1
    pieces: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    s: cython.Py_ssize_t
    last: cython.Py_ssize_t
    cursor: cython.longlong
    with cython.nogil:
        for i in range(n):
            cursor = span_start[i]
            s = 0
            last = 0
            if span_track[i] < tracks:
                last = track_first[span_track[i] + 1]
                s = _first_ending_after(segment_end, track_first[span_track[i]], last, cursor)
            while cursor < span_end[i]:
                if s >= last or segment_start[s] >= span_end[i]:
                    cursor = span_end[i]
                elif segment_start[s] > cursor:
                    cursor = segment_start[s]
                else:
                    cursor = segment_end[s] if segment_end[s] < span_end[i] else span_end[i]
                    s += 1
                pieces += 1
    return pieces


@cython.cfunc
@cython.nogil
@cython.exceptval(-9)
def _first_ending_after(
    segment_end: cython.const[cython.longlong][::1],
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
    time: cython.longlong,
) -> cython.Py_ssize_t:
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if segment_end[middle] > time:
            high = middle
        else:
            low = middle + 1
    return low
