"""What a late rank costs without a recorder, by the unprofiled steps that the capture timed."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.ranks.stragglers.find import ALWAYS, SOMETIMES, Straggler
from stepscope.ranks.stragglers.pace import PARTS, STEPS, Pace
from stepscope.ranks.stragglers.unrecorded import without_recorder
from stepscope.registers.calibration.profiler import SHARED_CORE_SAVES, SHARED_CORE_SAVES_LEAST


def late(cause: str, kind: str = ALWAYS, share: float = 0.44) -> Straggler:
    return Straggler(
        rank=2,
        ranks=(2,),
        kind=kind,
        late_ns=round(share * 6000),
        late_ns_per_step=round(share * 60),
        share=share,
        steps_late=100,
        steps=100,
        cause=cause,
    )


def paces(*ratios: float | None) -> list[Pace]:
    steps, parts = pl.DataFrame(schema=STEPS), pl.DataFrame(schema=PARTS)
    return [Pace(steps, parts, unprofiled_ratio=ratio) for ratio in ratios]


def test_on_a_shared_core_the_recorder_is_late_as_well() -> None:
    """A step of 60 recorded and 48 unprofiled, in which the others take 34: the rank costs 14."""
    found = without_recorder(late("host_compute"), paces(0.8, 0.8, 0.8))
    assert found.share == pytest.approx(1 - 0.56 / 0.8)
    assert found.late_ns_per_step == pytest.approx(found.share * 60, abs=1)


@pytest.mark.parametrize("cause", ["work", "python"])
def test_with_more_to_compute_the_others_are_recorded_as_slowly(cause: str) -> None:
    assert without_recorder(late(cause), paces(0.9, 0.9)) == late(cause)


@pytest.mark.parametrize("cause", ["input", "io"])
def test_a_wait_is_hardly_longer_under_the_recorder(cause: str) -> None:
    """Of a step that is shorter without it, it takes more: 30 of 67 recorded, 30 of 55 at most, the middle."""
    found = without_recorder(late(cause), paces(0.8, 0.8))
    assert found.share == pytest.approx(0.44 / 0.8**0.5)
    assert without_recorder(late(cause, share=0.9), paces(0.3, 0.3)).share == pytest.approx(1.0)


@pytest.mark.parametrize("ratios", [(None, None), (0.8, None), ()])
def test_without_unprofiled_steps_only_a_shared_core_is_corrected(ratios: tuple[float | None, ...]) -> None:
    assert without_recorder(late("python"), paces(*ratios)) == late("python")
    found = without_recorder(late("host_compute"), paces(*ratios))
    assert found.share == pytest.approx(0.44 * SHARED_CORE_SAVES)


def test_a_recording_that_is_not_slower_costs_nothing() -> None:
    assert without_recorder(late("host_compute"), paces(1.1, 1.1)) == late("host_compute")
    assert without_recorder(late("host_compute", SOMETIMES), paces(0.8, 0.8)).share == 0.44


def test_no_recorder_takes_all_of_it() -> None:
    found = without_recorder(late("host_compute"), paces(0.3, 0.3))
    assert found.share == pytest.approx(0.44 * SHARED_CORE_SAVES_LEAST)
