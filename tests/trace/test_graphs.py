"""Work of graphs, in the order of its nodes, and its names by a recording of the capture."""

from __future__ import annotations

import polars as pl

from stepscope.trace.finish import finish
from stepscope.trace.graphs import captured_calls, captures, graph_work, named_by_captures
from stepscope.trace.trace import Trace
from tests.builders.graphs import CAPTURE, captured, replayed
from tests.builders.tables import draft


def scopes(trace: Trace) -> list[str | None]:
    """The rows of ops of the replayed kernels, in the order of time."""
    kernels = trace.events.filter(pl.col("kind") == "kernel").sort("start_ns")["id"]
    rows = dict(trace.ops.select("event", pl.col("scope").cast(pl.String)).iter_rows())
    return [rows.get(event) for event in kernels]


def test_the_work_of_each_launch_in_order() -> None:
    work = graph_work(replayed())
    assert work["place"].to_list() == [0, 1, 2, 0, 1, 2]
    assert work["launch"].n_unique() == 2


def test_nodes_are_ordered_by_their_number_where_they_have_one() -> None:
    """Branches of a graph run side by side, in any order."""
    trace = replayed([1, 3, 2, 1, 3, 2])
    names = trace.events["name"].gather(graph_work(trace)["event"].head(3)).to_list()
    assert names == ["gemm", "gemm", "relu"]


def test_a_capture_with_as_many_nodes_names_them() -> None:
    """CUDA's calls do not say which kernel they launch: position alone decides."""
    named = named_by_captures(replayed(), captures(captured()))
    assert scopes(named) == ["Net_0/aten::mm", "aten::relu", "Net_0/Head_1/aten::addmm"] * 2
    assert named.ops["shapes"].to_list()[:3] == ["[[2, 3]]", "[[4]]", "[[5]]"]


def test_kernel_names_must_agree_where_the_capture_has_them() -> None:
    right = captures(captured("hip", ("gemm", "relu", "gemm")))
    wrong = captures(captured("hip", ("copy", "sort", "scan")))
    assert named_by_captures(replayed(), wrong).ops.is_empty()
    assert scopes(named_by_captures(replayed(), [*wrong, *right]))[0] == "Net_0/aten::mm"


def test_a_capture_of_another_size_names_nothing() -> None:
    """Without kernel names there is nothing to align by."""
    short = CAPTURE.replace(
        "main      40   20  aten::relu              op\nmain      45    5  {lib}LaunchKernel        runtime\n",
        "",
    )
    made = finish(draft(short.format(lib="cuda")))
    assert [len(found.kernels) for found in captures(made)] == [2]
    assert named_by_captures(replayed(), captures(made)).ops.is_empty()


def test_a_trace_without_graphs_stays_as_it_is() -> None:
    trace = captured()
    assert graph_work(trace).is_empty()
    assert named_by_captures(trace, captures(trace)) is trace
    assert captures(replayed()) == []


def test_calls_that_record_a_node_are_no_launches() -> None:
    """The last call comes after the capture."""
    assert len(captured_calls(captured())) == 3
    assert captured_calls(replayed()).is_empty()


def test_annotations_of_kernels_name_what_no_capture_does() -> None:
    """As torch.cuda.graph's mark_kernels puts them into the arguments of kernels."""
    trace = replayed()
    first = graph_work(trace)["event"][0]
    noted = pl.DataFrame({"event": [first], "json": [b'{"str": "model/attention"}']})
    named = named_by_captures(Trace(trace.tables, {"rest": noted}), [])
    assert scopes(named) == ["model/attention", *[None] * 5]
