"""The buffers that are live at the peak sum to it, as far as they were recorded."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.analysis.memory import recorded
from stepscope.analysis.memory_lives import lives_of_allocator, lives_of_program
from stepscope.formats import read
from stepscope.formats.source import Source

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "src/stepscope/samples/tiny_gpt.pt.trace.json.gz"
JAX = ROOT / "tests/fixtures/diagnosis/jax_input.slow.xplane.pb.gz"


def test_of_an_allocator() -> None:
    found = recorded(read(Source(str(SAMPLE))))[0]
    lives = lives_of_allocator(found)
    assert lives.unit == "ns" and lives.peak_at is not None
    assert lives.at_peak["bytes"].sum() == found.known_at(lives.peak_at)
    assert lives.at_peak["bytes"].is_sorted(descending=True)
    around = lives.at_peak.filter(
        pl.col("begin") <= lives.peak_at, pl.col("end").fill_null(2**62) > lives.peak_at
    )
    assert len(around) == len(lives.at_peak)


def test_of_a_compiled_program_the_buffers_sum_to_the_peak_of_their_curve() -> None:
    lives = lives_of_program(read(Source(str(JAX))), 0)
    assert lives is not None and lives.unit == "instruction"
    assert lives.at_peak["bytes"].sum() == lives.curve["bytes"].max()
    assert lives.curve["bytes"][-1] == 0


def test_a_device_without_programs_has_none() -> None:
    assert lives_of_program(read(Source(str(JAX))), 99) is None
