"""What a late rank costs without a recorder, by the unprofiled steps that the capture timed."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from stepscope.ranks.stragglers.find import ALWAYS, SOMETIMES, Straggler
from stepscope.ranks.stragglers.pace import PARTS, STEPS, Pace
from stepscope.ranks.stragglers.unrecorded import without_recorder as unrecorded


def late(cause: str, kind: str = ALWAYS, share: float = 0.44, steps_late: int = 100) -> Straggler:
    return Straggler(
        rank=2,
        ranks=(2,),
        kind=kind,
        late_ns=round(share * 6000),
        late_ns_per_step=round(share * 60),
        share=share,
        steps_late=steps_late,
        steps=100,
        cause=cause,
    )


def paces(*ratios: float | None, usual_ns: float | None = None, calls: Sequence[float] = ()) -> list[Pace]:
    steps, parts = pl.DataFrame(schema=STEPS), pl.DataFrame(schema=PARTS)
    called = [pl.DataFrame({"rank": rank, "launches": each}) for rank, each in enumerate(calls)]
    called = called or [pl.DataFrame() for _ in ratios]
    return [
        Pace(steps, parts, called=each, unprofiled_ratio=ratio, unprofiled_median_ns=usual_ns)
        for ratio, each in zip(ratios, called, strict=True)
    ]


def without_recorder(found: Straggler, paces: Sequence[Pace]) -> Straggler:
    made = unrecorded(found, paces)
    assert made is not None
    return made


def test_what_the_recorder_alone_makes_late_is_left_out() -> None:
    """Twice the calls of the others take 15 of 30 that the recorder takes of 60: more than the rank is late."""
    assert unrecorded(late("work", share=0.05), paces(0.5, 0.5, 0.5, calls=(50.0, 50.0, 100.0))) is None


def test_a_slow_host_is_as_slow_at_recording() -> None:
    assert without_recorder(late("host_compute"), paces(0.8, 0.8, 0.8)) == late("host_compute")


def test_larger_batches_take_no_more_time_of_the_recorder() -> None:
    """Of a step of 60 recorded and 54 unprofiled, all ranks give 6 to the recorder: what the rank is late is 26.4 of 54."""
    found = without_recorder(late("work"), paces(0.9, 0.9, 0.9, calls=(50.0, 50.0, 50.0)))
    assert found.share == pytest.approx(0.44 / 0.9)
    assert found.late_ns_per_step == pytest.approx(found.share * 60, abs=1)


def test_more_calls_take_more_time_of_the_recorder() -> None:
    """With twice the calls, the others give it 3 of those 6: they take 33.6 - 3 of 54."""
    found = without_recorder(late("work"), paces(0.9, 0.9, 0.9, calls=(50.0, 50.0, 100.0)))
    assert found.share == pytest.approx(1 - (33.6 - 3) / 54)


@pytest.mark.parametrize("cause", ["input", "io", "python", "unexplained"])
def test_of_a_wait_or_code_it_is_the_middle(cause: str) -> None:
    """30 of 67 recorded as computed, 30 of 55 if waited for."""
    found = without_recorder(late(cause), paces(0.8, 0.8))
    assert found.share == pytest.approx(0.44 / 0.8**0.5)
    assert without_recorder(late(cause, share=0.9), paces(0.3, 0.3)).share == pytest.approx(1.0)


def test_now_and_then_it_is_beside_steps_in_which_nobody_is_late() -> None:
    """26 of 60 recorded, beside 20 unprofiled 26 of 46: the middle."""
    seldom = late("io", SOMETIMES, steps_late=25)
    found = without_recorder(seldom, paces(0.9, 0.9, usual_ns=20))
    assert found.share == pytest.approx((0.44 * 26 / 46) ** 0.5)
    assert without_recorder(seldom, paces(0.9, 0.9, usual_ns=90)) == seldom
    assert without_recorder(seldom, paces(0.9, 0.9)) == seldom
    often = late("io", SOMETIMES, steps_late=60)
    assert without_recorder(often, paces(0.9, 0.9, usual_ns=20)) == often


@pytest.mark.parametrize("ratios", [(None, None), (0.8, None), (1.1, 1.1), ()])
def test_without_shorter_unprofiled_steps_all_stays(ratios: tuple[float | None, ...]) -> None:
    for cause in ("python", "work", "host_compute"):
        assert without_recorder(late(cause), paces(*ratios)) == late(cause)
