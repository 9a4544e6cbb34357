"""Launches of graphs as rows of ops, and what is inside them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.analysis.capture_quality.coverage import coverage
from stepscope.analysis.kernels.calls import kernel_calls
from stepscope.analysis.ops.calls import op_calls, ops_table
from stepscope.analysis.ops.graph_calls import REPLAY, graphs_table
from stepscope.trace.graphs import captures, named_by_captures
from stepscope.trace.trace import Trace
from tests.builders.graphs import captured, replayed

FIXTURES = Path(__file__).parents[2] / "fixtures" / "capture_gpu"


def named() -> Trace:
    """Two replays that a capture names."""
    return named_by_captures(replayed(), captures(captured()))


def test_a_launch_is_a_row_with_all_its_work() -> None:
    """Two launches, each with 60 ns on the device; the host time is that of the calls."""
    rows = ops_table(op_calls(replayed())).to_dicts()
    assert [(row["name"], row["calls"], row["execution"]) for row in rows] == [
        ("cudaGraphLaunch (3 nodes)", 2, REPLAY)
    ]
    assert (rows[0]["host_total_ns"], rows[0]["device_total_ns"], rows[0]["device_self_ns"]) == (
        100,
        120,
        120,
    )


def test_named_work_belongs_to_its_ops() -> None:
    """It counts once: the launch keeps it in its total, not in its own time."""
    rows = {row["name"]: row for row in ops_table(op_calls(named())).to_dicts()}
    assert {name: row["device_self_ns"] for name, row in rows.items()} == {
        "aten::addmm": 60, "aten::relu": 40, "aten::mm": 20, "cudaGraphLaunch (3 nodes)": 0
    }  # fmt: skip
    assert rows["cudaGraphLaunch (3 nodes)"]["device_total_ns"] == 120
    assert (rows["aten::addmm"]["scope"], rows["aten::addmm"]["shapes"]) == ("Net_0/Head_1", "[[5]]")
    assert rows["aten::addmm"]["calls"] == 2


def test_kernels_belong_to_the_launch_or_the_named_op() -> None:
    assert set(kernel_calls(replayed())["op"]) == {"cudaGraphLaunch (3 nodes)"}
    found = kernel_calls(named())
    assert found["op"].to_list() == ["aten::mm", "aten::relu", "aten::addmm"] * 2
    assert found["precision"].to_list()[1] == "fp32"


def test_the_graphs_with_their_kernels() -> None:
    trace = named()
    (row,) = graphs_table(trace, op_calls(trace)).to_dicts()
    assert (row["calls"], row["nodes"], row["device_ns"], row["named_ns"]) == (2, 3, 120, 120)
    assert row["kernels"] == [{"name": "gemm", "calls": 4, "ns": 80}, {"name": "relu", "calls": 2, "ns": 40}]


def test_coverage_says_graph_replay() -> None:
    """The launch is not the op that the time belongs to."""
    trace = replayed()
    found = coverage(trace, op_calls(trace), None)
    assert found.device_time == 0.0
    (gap,) = [gap for gap in found.gaps if gap["what"] == "device_time"]
    assert str(gap["reason"]).startswith("Graph replay")
    assert "capture_traces/" in str(gap["fix"])
    trace = named()
    assert coverage(trace, op_calls(trace), None).device_time == 1.0


GRAPHS = FIXTURES.parent / "graphs"  # recorded on an H200, PyTorch 2.11


def test_a_capture_in_the_same_recording_names_the_replays() -> None:
    """A whole training step, whose backward pass was captured on another thread."""
    report = stepscope.report(GRAPHS / "manual_capture.json.gz")
    (graph,) = report.ops.graphs
    assert (graph.calls, graph.nodes, graph.named_share) == (6, 22, 1.0)
    assert {"aten::addmm", "aten::mm", "aten::_foreach_add_"} <= {row.name for row in report.ops.rows}
    assert report.coverage.device_time == 1.0
    assert "launches-without-work" not in {problem.code for problem in report.problems}


@pytest.mark.parametrize(
    ("name", "least"), [("manual_capture", 0.95), ("manual_plain", 0.95), ("reduce_overhead", 0.4)]
)
def test_the_launch_has_the_device_time_of_its_graph(name: str, least: float) -> None:
    """With reduce-overhead, the loss, the optimizer and copies of inputs stay outside of the graphs."""
    trace = stepscope.load(GRAPHS / f"{name}.json.gz").traces[0]
    rows = graphs_table(trace, op_calls(trace))
    work = int(trace.events.filter(pl.col("kind").is_in(["kernel", "copy", "memset"]))["dur_ns"].sum())
    assert int(rows["device_ns"].sum()) >= least * work
    assert rows["calls"].to_list() == [6] * len(rows)
    assert "unknown" not in set(kernel_calls(trace)["precision"])


@pytest.mark.parametrize(("case", "nodes"), [("torch_graphs", [26]), ("torch_compile_graphs", [17, 6])])
def test_recorded_on_a_gpu(case: str, nodes: list[int]) -> None:
    """A manual graph and torch.compile's reduce-overhead: all their kernels belong to a launch."""
    trace = stepscope.load(FIXTURES / case).traces[0]
    rows = graphs_table(trace, op_calls(trace))
    assert rows["nodes"].to_list() == nodes
    assert rows["calls"].to_list() == [5] * len(nodes)
    in_graphs = trace.kernels.filter(pl.col("graph_node").is_not_null())["event"]
    launched = kernel_calls(trace).filter(pl.col("op").cast(pl.String).str.starts_with("cudaGraphLaunch"))
    assert set(in_graphs) <= set(launched["event"])
