"""The tree of ops sums to the steps, and utilisation is between nothing and all."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.analysis.context import RankContext
from stepscope.analysis.op_tree import OpTree, op_tree
from stepscope.analysis.options import Options
from stepscope.formats import read
from stepscope.formats.source import Source

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "src/stepscope/samples/tiny_gpt.pt.trace.json.gz"
JAX = ROOT / "tests/fixtures/diagnosis/jax_input.slow.xplane.pb.gz"


def _tree(path: Path) -> tuple[RankContext, OpTree]:
    context = RankContext(0, read(Source(str(path))), Options())
    return context, op_tree(context)


@pytest.mark.parametrize("path", [SAMPLE, JAX], ids=["torch", "jax"])
def test_the_top_sums_to_all_ops_of_the_steps(path: Path) -> None:
    context, found = _tree(path)
    calls = context.op_calls
    inside = calls.filter(pl.col("step").is_not_null()) if calls["step"].count() else calls
    top = found.nodes.filter(pl.col("parent") < 0)
    for side in ("host", "device"):
        assert top[f"total_{side}_ns"].sum() == inside[f"{side}_self_ns"].sum()
    below = found.nodes.group_by("parent").agg(pl.col("total_device_ns").sum())
    for parent, ns in below.filter(pl.col("parent") >= 0).iter_rows():
        node = found.nodes.row(parent, named=True)
        assert node["total_device_ns"] == ns + node["self_device_ns"]


def test_utilisation_is_time_at_the_peak_over_time() -> None:
    _, found = _tree(JAX)
    known = found.nodes["utilisation"].drop_nulls()
    assert len(known) and known.min() >= 0 and known.max() <= 1  # type: ignore[operator]
    product = found.nodes.filter(pl.col("name") == "dot_general").row(0, named=True)
    assert product["is_op"] and product["utilisation"] > 0.5


def test_parents_come_first_and_ops_are_leaves() -> None:
    _, found = _tree(SAMPLE)
    parents = found.nodes["parent"]
    assert (parents < pl.int_range(len(parents), eager=True)).all()
    assert not found.nodes["is_op"].gather(parents.filter(parents >= 0)).any()
