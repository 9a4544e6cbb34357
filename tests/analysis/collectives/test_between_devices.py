"""What devices of one recording wait for each other, by its one clock."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.analysis.collectives.between_devices import waits_between_devices
from stepscope.analysis.collectives.calls import CALLS

FOLDER = Path(os.environ.get("STEPSCOPE_CORPUS_2", "/nonexistent"), "nsys")


def _calls(*rows: tuple[int, int, int], name: str = "all_reduce", on_host: bool = False) -> pl.DataFrame:
    """Of devices, each with its start and length."""
    found = pl.DataFrame(rows, schema=["device", "start_ns", "dur_ns"], orient="row")
    given = found.with_columns(name=pl.lit(name), on_host=pl.lit(on_host))
    return pl.concat([pl.DataFrame(schema=CALLS), given.cast({"device": pl.Int32})], how="diagonal")


def _waited(*calls: pl.DataFrame) -> dict[str, tuple[int, int]]:
    rows = waits_between_devices(pl.concat(calls)).select("name", "wait_ns", "transfer_ns").iter_rows()
    return {name: (wait, transfer) for name, wait, transfer in rows}


def test_the_first_waits_for_the_last() -> None:
    rows = [(0, 0, 100), (1, 60, 40), (0, 200, 50), (1, 190, 60)]
    assert _waited(_calls(*rows)) == {"all_reduce": (60 + 10, 40 + 50)}


def test_one_device_waits_for_nobody() -> None:
    assert _waited(_calls((0, 0, 100), (0, 200, 100))) == {}
    assert _waited(_calls((0, 0, 100), (1, 10, 90), on_host=True)) == {}


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 0, 100), (1, 150, 40)],  # they do not meet
        [(0, 0, 100), (1, 60, 40), (0, 200, 50)],  # one call was not recorded
    ],
)
def test_calls_that_do_not_meet_are_left_out(rows: list[tuple[int, int, int]]) -> None:
    met = _calls((0, 1000, 100), (1, 1060, 40), name="all_gather")
    assert _waited(_calls(*rows), met) == {"all_gather": (60, 40)}


@pytest.mark.corpus
@pytest.mark.skipif(not FOLDER.exists(), reason="no corpus is set")
@pytest.mark.parametrize(("clip", "share"), [("before", 0.53), ("after", 0.67)])
def test_two_gpus_in_one_file_of_nsight(clip: str, share: float) -> None:
    found = stepscope.report(FOLDER / f"mfu_2gpu_{clip}.sqlite.gz", sections=["collectives"])
    [row] = found.collectives.rows
    assert row.wait_ns is not None
    assert row.wait_ns / row.total_ns == pytest.approx(share, abs=0.01)
