# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
# mypy: disable-error-code="valid-type, no-any-return, misc, untyped-decorator, import-untyped"
"""A step played again: the host works and launches, streams run what they are given in order, waits wait."""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, and Cython is not installed
    from stepscope.native import shadow as cython

COMPILED = bool(cython.compiled)

WORK = 0  # the host works for `host` ns, then launches `device` ns of work on `stream`
WAIT = 1  # the host waits until all streams are empty, then works for `host` ns


def replay(
    kind: cython.const[cython.uchar][::1],
    host: cython.const[cython.longlong][::1],
    stream: cython.const[cython.uint][::1],
    device: cython.const[cython.longlong][::1],
    delay: cython.const[cython.longlong][::1],
    last: cython.const[cython.uchar][::1],
    streams: int,
) -> array[int]:
    """The moment at which each step is over, for items in the order in which the host came to them.

    Work starts `delay` ns after its launch at the earliest, and after everything before it on its stream. `last`
    marks the last item of a step; the step is over when the host has come there and all its work is done.
    """
    n: cython.Py_ssize_t = len(kind)
    free = array("q", [0]) * max(streams, 1)
    free_at: cython.longlong[::1] = free
    count: cython.Py_ssize_t = len(free)
    steps: cython.Py_ssize_t = 0
    now: cython.longlong = 0
    start: cython.longlong
    latest: cython.longlong = 0
    step: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    s: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            if last[i]:
                steps += 1
    ends = array("q", [0]) * steps
    out: cython.longlong[::1] = ends
    with cython.nogil:
        for i in range(n):
            if kind[i] == 1:
                for s in range(count):
                    if free_at[s] > now:
                        now = free_at[s]
            now += host[i]
            if kind[i] == 0 and device[i] > 0 and stream[i] < count:
                start = now + delay[i]
                if free_at[stream[i]] > start:
                    start = free_at[stream[i]]
                free_at[stream[i]] = start + device[i]
                if free_at[stream[i]] > latest:
                    latest = free_at[stream[i]]
            if last[i]:
                out[step] = now if now > latest else latest
                step += 1
    return ends


def sums_between(
    values: cython.const[cython.longlong][::1], until: cython.const[cython.uint][::1]
) -> array[int]:
    """The sums of the values up to each of the places, which rise, from the place before it."""
    n: cython.Py_ssize_t = len(until)
    size: cython.Py_ssize_t = len(values)
    sums = array("q", [0]) * n
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
