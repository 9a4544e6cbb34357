"""The critical path of real recordings: as long as the step, without a hole or an overlap, everything named."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.errors import StepscopeError
from tests.corpus.recordings import context_of, some
from tests.corpus.test_windows import FILES

MOST_BYTES = 4 << 20  # packed: larger files add time, and no other kind of recording
SMALL = [path for path in FILES if path.stat().st_size <= MOST_BYTES]
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not SMALL, reason="no corpus is set")]
# Where the replay is known to be as long as the recording, the path must come from it.
REPLAYED = ("dqn_launch_bound", "gpt_bf16_eager", "resnet_input_bound", "h100_timesformer", "kineto_resnet50")


@pytest.mark.parametrize("path", some(SMALL), ids=lambda path: path.name[:40])
def test_the_path_is_the_step(path: Path) -> None:
    try:
        context = context_of(path)
    except StepscopeError as error:
        pytest.skip(str(error))
    found, windows = context.critical_path, context.windows.windows
    if path.name.startswith(REPLAYED):
        assert found.source == "replay"
    assert_fills(found.rows, windows.filter(pl.col("device").eq_missing(context.critical_device)))


def assert_fills(rows: pl.DataFrame, windows: pl.DataFrame) -> None:
    """Each step is filled to the nanosecond, which is more than the 1 % that is asked for."""
    length = pl.col("end_ns") - pl.col("start_ns")
    assert rows.filter(length <= 0).is_empty()
    assert rows.filter(pl.col("name") == "").is_empty()
    breaks = rows.filter((pl.col("start_ns") != pl.col("end_ns").shift(1)).over("step"))
    assert breaks.is_empty()
    paths = rows.group_by("step").agg(pl.col("start_ns").min(), pl.col("end_ns").max(), ns=length.sum())
    both = windows.select("step", low="start_ns", high="end_ns").join(paths, on="step", how="full")
    fits = (pl.col("low") == pl.col("start_ns")) & (pl.col("high") == pl.col("end_ns"))
    fits &= pl.col("ns") == pl.col("high") - pl.col("low")
    assert both.filter(~fits.fill_null(False)).is_empty()
