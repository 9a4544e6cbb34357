"""Launches into a full queue: where the host is far ahead, most of them wait for the device."""

from __future__ import annotations

from stepscope.analysis.replay.blocked import full_queue
from tests.builders.inline import US, trace_of

_QUICK, _ALL, _WORK = 6, 30, 500


def launches(queued: bool) -> str:
    """A few launches that find room and many that take as long as the device's work; `queued`: work begins long after its launch."""
    rows, at, begin = ["track  start  dur  name  kind  launches"], 0, 0
    for number in range(_ALL):
        dur = 20 if number < _QUICK else _WORK
        begin = max(begin + _WORK, at + 10) if queued else at + dur - 5
        work = _WORK if queued else 4
        rows += [
            f"main  {at}  {dur}  cuGraphLaunch  runtime  k{number}",
            f"stream 7  {begin}  {work}  k{number}  kernel  -",
        ]
        at += dur + 10
    return "\n".join(rows)


def test_most_launches_may_wait_for_room() -> None:
    full, usual = full_queue(trace_of(launches(queued=True)))
    assert (int(full.sum()), usual) == (_ALL - _QUICK, 20 * US)


def test_long_launches_that_the_device_waits_for_are_work() -> None:
    full, usual = full_queue(trace_of(launches(queued=False)))
    assert (int(full.sum()), usual) == (0, _WORK * US)
