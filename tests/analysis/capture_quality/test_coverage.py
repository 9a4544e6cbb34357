"""Coverage: shares, and the reason for what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from stepscope.analysis.account.account import account
from stepscope.analysis.capture_quality.coverage import Coverage, coverage
from stepscope.analysis.ops.calls import op_calls
from stepscope.analysis.steps.find import find_steps
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.draft import Draft
from stepscope.trace.finish import finish
from stepscope.trace.schema import TABLES
from stepscope.trace.trace import TraceInfo
from tests.builders.files import load
from tests.builders.nsys import write_export
from tests.builders.tables import draft
from tests.builders.tpu import Op, core_plane
from tests.builders.xspace_bytes import space

EVENTS = """
    track     start  dur  name              kind
    main          0  100  ProfilerStep#1    annotation
    main         10   40  aten::mm          op
    main         60   20  aten::add         op
    main         85    5  cudaLaunchKernel  runtime
    stream 7     20   30  gemm              kernel
    stream 7     60   10  loose             kernel
    """
ALL_ON = {"record_shapes": True, "with_stack": True, "profile_memory": True}


def covered(made: Draft, **info: Any) -> Coverage:
    """The coverage of the draft."""
    made.info = TraceInfo(framework="pytorch", **info)
    trace = finish(made)
    return coverage(trace, op_calls(trace), account(trace, find_steps(trace)))


def simple(**tables: Any) -> Draft:
    """A product on the device, and a kernel that nobody launched."""
    kernels = pl.DataFrame({"event": [4, 5], "op": [1, None]}, schema={"event": pl.UInt32, "op": pl.UInt32})
    ops = [{"event": 1, "shapes": "[[2,2]]"}, {"event": 2, "shapes": None}]
    return draft(
        EVENTS,
        kernels=kernels,
        ops=pl.DataFrame(ops, schema={"event": pl.UInt32, "shapes": pl.String}),
        **tables,
    )


def reasons(found: Coverage) -> dict[object, object]:
    """What is missing, and why."""
    return {gap["what"]: gap["reason"] for gap in found.gaps}


def test_shares() -> None:
    found = covered(simple(), capture_options=ALL_ON)
    assert (found.runtime, found.shapes, found.stacks, found.memory) == (1.0, 0.5, 0.0, None)
    assert found.device_time == 0.75  # 30 of 40 ns


def test_an_option_that_was_off_is_the_reason() -> None:
    found = covered(simple(), capture_options={})
    assert reasons(found)["shapes"] == "record_shapes was off."
    assert reasons(found)["stacks"] == "with_stack was off."
    assert reasons(found)["memory"] == "profile_memory was off."
    assert {gap["fix"] for gap in found.gaps} >= {f"torch.profiler.profile({name}=True)" for name in ALL_ON}


def test_reasons_with_all_options_on() -> None:
    found = reasons(covered(simple(), capture_options=ALL_ON))
    assert found["shapes"] == "Ops without tensor inputs carry no shapes."
    assert str(found["device_time"]).startswith("Work that was launched outside of ops")


def test_kernels_of_a_graph() -> None:
    made = simple()
    made.kernels = made.kernels.with_columns(graph_node=pl.Series([None, 7], dtype=pl.UInt64))
    assert "Graph replay" in str(reasons(covered(made, capture_options=ALL_ON))["device_time"])


def test_bytes_whose_op_is_known() -> None:
    rows = [
        {"event": 1, "time_ns": 10, "bytes": 75},
        {"event": 0, "time_ns": 5, "bytes": 25},
        {"event": 2, "time_ns": 60, "bytes": -75},
    ]
    found = covered(simple(memory=pl.DataFrame(rows, schema=TABLES["memory"])), capture_options=ALL_ON)
    assert found.memory is not None and 0 <= found.memory < 1
    assert "outside of ops" in str(reasons(found)["memory"])


def test_a_whole_figure_has_no_gap() -> None:
    found = covered(simple(), capture_options=ALL_ON)
    assert "runtime" not in reasons(found)
    assert all(0 < float(str(gap["share"])) <= 1 for gap in found.gaps)


def test_no_ops_no_shares() -> None:
    found = covered(draft("track  start  dur  name  kind\nmain  0  10  thing  span\n"))
    assert (found.runtime, found.shapes, found.stacks, found.device_time) == (None, None, None, None)


def test_vendor_tools_have_no_options_of_pytorch(tmp_path: Path) -> None:
    trace = read(Source(str(write_export(tmp_path / "a.sqlite"))))
    gaps = {gap["what"]: gap["reason"] for gap in coverage(trace, op_calls(trace), None).gaps}
    assert gaps["stacks"] == gaps["memory"] == "Files of Nsight Systems are read without this."


def test_copies_beside_the_ops_of_a_tpu_are_of_its_program(tmp_path: Path) -> None:
    plane = core_plane([Op("fusion.1", 0, 100)], copies=[Op("async-copy", 100, 500)])
    trace = load(space(plane), tmp_path)
    gaps = {gap["what"]: gap["reason"] for gap in coverage(trace, op_calls(trace), None).gaps}
    assert str(gaps["device_time"]).startswith("Copies that the program's own ops start")


def test_a_program_of_which_the_file_has_no_code_has_no_row_to_look_at() -> None:
    modules = pl.DataFrame({"name": ["jit_f"], "program_id": [7], "hlo": [None]}, schema=TABLES["modules"])
    found = reasons(covered(simple(modules=modules), capture_options=ALL_ON))
    assert str(found["memory"]).endswith("the file does not say what is in it.")
