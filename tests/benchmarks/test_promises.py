"""Promises: the right side of each limit, and figures that mean what they say."""

from __future__ import annotations

from benchmarks.measure import Run, Series
from benchmarks.promises import Promise, faster, linear, second_open, smaller

MB = 1_000_000


def series(tool: str, seconds: float, peak: int = 100 * MB, base: int = 50 * MB) -> Series:
    """A tool that was run three times, once on a bad day."""
    runs = [Run(seconds * factor, seconds, peak, base, {}) for factor in (1, 1, 9)]
    return Series(tool, runs)


def test_the_median_counts() -> None:
    assert series("a", 2.0).seconds == 2.0


def test_ratios() -> None:
    ours, peer = series("stepscope", 1.0, 100 * MB), series("json.load", 7.0, 300 * MB)
    assert faster("x", ours, peer, 6.0).line() == "PASS  x: cold load faster than json.load: 7x (>= 6x)"
    assert (
        smaller("x", ours, peer, 0.25).line() == "FAIL  x: peak memory against json.load: 0.333x (<= 0.25x)"
    )


def test_a_figure_without_a_promise_does_not_fail() -> None:
    assert Promise("x", 5, 6, at_least=True, required=False).line() == "no    x: 5x (>= 6x)"


def test_the_second_open_may_take_a_twentieth_of_a_long_first_one() -> None:
    assert second_open("x", series("a", 1.0), series("b", 0.09)).kept
    assert not second_open("x", series("a", 1.0), series("b", 0.11)).kept
    assert second_open("x", series("a", 4.0), series("b", 0.19)).kept


def test_cost_per_event_leaves_out_the_interpreter() -> None:
    small, large = series("a", 1.0, 60 * MB), series("a", 10.0, 150 * MB)
    time, memory = linear((1000, small), (10_000, large))
    assert (time.value, memory.value) == (1.0, 1.0)
