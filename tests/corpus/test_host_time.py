"""Host time by what it does, in real profiles: preprocessing in a library is Python, eager serving is dispatch."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from stepscope.analysis.account.account import account
from stepscope.analysis.host.functions import where
from stepscope.analysis.steps.find import find_steps
from tests.corpus.recordings import trace_of

CORPUS = Path(os.environ.get("STEPSCOPE_CORPUS_2", "/nonexistent"))
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.exists(), reason="STEPSCOPE_CORPUS_2 has no profiles"),
]


@pytest.mark.parametrize(
    ("name", "part", "least"),
    [("h100_timesformer.json.gz", "python", 0.5), ("serving/b200_vllm_eager.json.gz", "dispatch", 0.7)],
)
def test_most_of_the_step(name: str, part: str, least: float) -> None:
    trace = trace_of(CORPUS / name)
    parts = account(trace, find_steps(trace)).parts
    assert int(parts.filter(pl.col("part") == part)["ns"].sum()) >= least * int(parts["ns"].sum())


def test_preprocessing_has_a_place() -> None:
    trace = trace_of(CORPUS / "h100_timesformer.json.gz")
    slices = account(trace, find_steps(trace)).slices.filter(pl.col("part") == "python")
    named = slices.select(
        "named_by",
        ns=pl.col("end_ns") - pl.col("start_ns"),
        name=trace.events["name"].gather(slices["named_by"]),
    )
    ranked = named.group_by("name").agg(pl.col("ns").sum(), pl.col("named_by").first()).sort("ns")
    (place,) = where(trace, ranked["named_by"].tail(1))
    assert (place.file, place.function) == ("transformers/image_transforms.py", "normalize")
