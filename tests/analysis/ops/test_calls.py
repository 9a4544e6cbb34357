"""Ops: calls, self and total times on host and device, where and how they ran."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.ops.calls import execution, op_calls, ops_table
from stepscope.trace.finish import finish
from stepscope.trace.schema import TABLES
from stepscope.trace.trace import Trace
from tests.builders.inline import trace_of
from tests.builders.tables import draft, trace

US = 1000
LINEAR = """
    track     start  dur  name              kind        launches
    main          0  100  ProfilerStep#1    annotation  -
    main         10   50  aten::linear      op          -
    main         20   30  aten::addmm       op          -
    main         30   10  cudaLaunchKernel  runtime     gemm
    stream 7     60   20  gemm              kernel      -
    main         70   10  aten::add         op          -
    main         75    2  cudaLaunchKernel  runtime     add
    stream 7     80    5  add               kernel      -
    """


def rows(found: Trace, by: tuple[str, ...] = ("name",)) -> dict[str, dict[str, Any]]:
    """The table by name, with times in µs."""
    table = ops_table(op_calls(found), by)
    in_us = [(pl.col(name) // US) for name in table.columns if name.endswith("_ns")]
    return {row["name"]: row for row in table.with_columns(in_us).to_dicts()}


def test_self_and_total() -> None:
    """Self is without the ops and launches inside; device time belongs to the op that launched, and to those around it."""
    table = rows(trace_of(LINEAR))
    keys = ("calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns")
    assert {name: tuple(row[key] for key in keys) for name, row in table.items()} == {
        "aten::addmm": (1, 30, 20, 20, 20),
        "aten::add": (1, 10, 8, 5, 5),
        "aten::linear": (1, 50, 20, 20, 0),
    }


def test_self_times_sum_to_the_total() -> None:
    """With the launches, they are the time of the outermost ops."""
    table = rows(trace_of(LINEAR))
    assert sum(row["host_self_ns"] for row in table.values()) + 10 + 2 == 50 + 10
    assert sum(row["device_self_ns"] for row in table.values()) == 25


def test_only_steps_count_where_there_are_steps() -> None:
    outside = LINEAR + "    main        200   10  aten::add         op          -\n"
    assert rows(trace_of(outside))["aten::add"]["calls"] == 1
    without = "track  start  dur  name  kind  launches\nmain  0  10  aten::add  op  -\nmain  20  10  aten::add  op  -\n"
    assert rows(trace_of(without))["aten::add"]["calls"] == 2


def test_an_op_inside_itself() -> None:
    """One that does nothing but call itself again is one call; time in both counts once."""
    table = rows(
        trace_of(
            """
            track  start  dur  name            kind  launches
            main       0   20  aten::div       op    -
            main       2   16  aten::div       op    -
            main      30   40  aten::linear    op    -
            main      32   10  aten::to        op    -
            main      45   20  aten::linear    op    -
            """
        )
    )
    assert (table["aten::div"]["calls"], table["aten::div"]["host_total_ns"]) == (1, 20)
    assert (table["aten::linear"]["calls"], table["aten::linear"]["host_total_ns"]) == (2, 40)
    assert table["aten::linear"]["host_self_ns"] == 40 - 10


def test_unnamed_work_inside_an_op_is_its_own() -> None:
    """TensorFlow's ParallelFor is a span; an op inside it is still another op."""
    table = rows(
        trace_of(
            """
            track  start  dur  name         kind  launches
            main       0  100  Conv2D       op    -
            main      10   80  ParallelFor  span  -
            main      20   30  MatMul       op    -
            """
        )
    )
    assert table["Conv2D"]["host_self_ns"] == 70
    assert table["MatMul"]["host_self_ns"] == 30


def test_placement() -> None:
    """The device that ran what the op launched; nothing is said of ops that launched nothing, if there is a device."""
    table = rows(trace_of(LINEAR))
    assert {name: row["placement"] for name, row in table.items()} == {
        "aten::addmm": "gpu:0",
        "aten::add": "gpu:0",
        "aten::linear": None,
    }
    alone = rows(trace_of("track  start  dur  name  kind  launches\nmain  0  10  aten::add  op  -\n"))
    assert alone["aten::add"]["placement"] == "cpu"


def test_execution() -> None:
    """By what runs the op; where nothing tells, nothing is said."""
    found = trace_of(
        """
        track  start  dur  name                     kind        launches
        main       0   10  EagerKernelExecute       span        -
        main       1    5  Add                      op          -
        pool       0   10  ExecutorState::Process   span        -
        pool       1    5  MatMul                   op          -
        main      20   10  Torch-Compiled Region    annotation  -
        main      21    5  aten::mm                 op          -
        main      40    5  aten::relu               op          -
        """
    )
    ops = found.events.filter(pl.col("kind") == "op")
    told = dict(zip(ops["name"].cast(pl.String), execution(found, ops["id"]), strict=True))
    assert told == {"Add": "eager", "MatMul": "graph", "aten::mm": "graph", "aten::relu": None}


def test_memory_is_that_of_the_innermost_op() -> None:
    made = draft(
        """
        track  start  dur  name          kind
        main       0   50  aten::linear  op
        main      10   20  aten::addmm   op
        main      15    0  [memory]      memory
        """
    )
    made.memory = pl.DataFrame([{"event": 2, "time_ns": 15, "bytes": 64}], schema=TABLES["memory"])
    table = rows(finish(made))
    assert {name: row["memory_bytes"] for name, row in table.items()} == {
        "aten::linear": 0,
        "aten::addmm": 64,
    }


def test_split_by_shape() -> None:
    ops = pl.DataFrame([{"event": 0, "shapes": "[[2,2]]"}, {"event": 1, "shapes": "[[4,4]]"}])
    found = trace(
        "track  start  dur  name      kind\nmain  0  10  aten::mm  op\nmain  20  30  aten::mm  op\n", ops=ops
    )
    by_shape = ops_table(op_calls(found), ("name", "shapes"))
    assert by_shape.select("shapes", "calls", "host_total_ns").rows() == [
        ("[[4,4]]", 1, 30),
        ("[[2,2]]", 1, 10),
    ]
    assert ops_table(op_calls(found)).row(0, named=True)["shapes"] is None  # not the same for all calls
