"""What passes between two pieces of work of a stream that has more to do."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.replay.queue_gaps import queue_gaps

COUNT, LENGTH = 30, 20_000


def work(gap: int, count: int = COUNT, launched: int = -100_000, stream: int = 0) -> pl.DataFrame:
    """Kernels with a gap before each, launched all at once."""
    starts = [number * (LENGTH + gap) for number in range(count)]
    return pl.DataFrame(
        {"stream": [stream] * count, "start": starts, "device_ns": [LENGTH] * count, "at": [launched] * count}
    )


def test_the_gaps_of_queued_work_are_known() -> None:
    assert queue_gaps(work(1_500)).to_list() == [1_500] * COUNT


def test_kernels_that_overlap_take_less() -> None:
    assert queue_gaps(work(-500))[1:].to_list() == [-500] * (COUNT - 1)


def test_work_that_was_launched_late_has_the_mean_of_the_others() -> None:
    late = pl.DataFrame({"stream": [0], "start": [9_000_000], "device_ns": [LENGTH], "at": [8_999_000]})
    assert queue_gaps(pl.concat([late, work(1_000)]))[0] == 1_000
    assert queue_gaps(pl.concat([late, work(-1_000)]))[0] == 0  # nothing to overlap with


def test_few_queued_kernels_say_nothing() -> None:
    assert set(queue_gaps(work(1_500, count=5)).to_list()) == {0}


def test_streams_are_apart() -> None:
    both = pl.concat([work(1_000), work(3_000, stream=1)])
    assert queue_gaps(both).to_list()[1:COUNT] == [1_000] * (COUNT - 1)


def test_no_work() -> None:
    assert queue_gaps(work(0, count=0)).to_list() == []
