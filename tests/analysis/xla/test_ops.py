"""Kernels of compiled programs, and the instructions and ops they belong to."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.analysis.ops.calls import op_calls, ops_table
from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.ops import (
    Program,
    aligned,
    in_whole_runs,
    program_ops,
    programs_that_ran,
    unrolled,
)
from tests.analysis.xla.test_instruction_cost import F32, made, reads, shaped
from tests.builders.protobuf import field

JAX = Path(__file__).parents[2] / "fixtures" / "jax"


def program(*names: str) -> list[Instruction]:
    """Instructions in order; those called `call` are a library's."""
    return [
        Instruction(name=name, opcode="custom-call" if name.startswith("call") else "fusion")
        for name in names
    ]


def test_equal_instructions_share_a_kernel() -> None:
    """The second and third run under the name of the fourth; order tells them apart."""
    code = program("loop_add.1", "gemm.2", "gemm.3", "gemm.4", "loop_add.5")
    kernels = ["loop_add_1", "gemm_4", "gemm_4", "gemm_4", "loop_add_1"]
    assert aligned(kernels, code) == ["loop_add.1", "gemm.2", "gemm.3", "gemm.4", "loop_add.5"]


def test_library_kernels_by_the_calls_in_between() -> None:
    code = program("call.1", "fuse.1", "call.2", "call.3", "fuse.2", "call.4")
    assert aligned(["nvjet", "fuse_1", "nvjet", "nvjet", "fuse_2", "split", "reduce"], code) == [
        "call.1", "fuse.1", "call.2", "call.3", "fuse.2", "call.4", "call.4",
    ]  # fmt: skip


def test_as_many_as_it_takes_or_nobody() -> None:
    """Three kernels for two calls: which is whose is not known."""
    code = program("fuse.1", "call.1", "call.2", "fuse.2")
    assert aligned(["fuse_1", "a", "b", "c", "fuse_2"], code) == ["fuse.1", None, None, None, "fuse.2"]


def test_copies_belong_to_what_only_moves_data() -> None:
    """A library's kernel beside a copy is still that of the only call; a copy more than there are is nobody's."""
    code = [
        *program("fuse.1", "call.1"),
        Instruction(name="start.1", opcode="async-start"),
        *program("fuse.2"),
    ]
    assert aligned(["fuse_1", "nvjet", "memcpy32_post", "fuse_2"], code) == [
        "fuse.1", "call.1", "start.1", "fuse.2",
    ]  # fmt: skip
    assert aligned(["fuse_1", "memcpy128", "nvjet", "memcpy128", "fuse_2"], code) == [
        "fuse.1", None, "call.1", None, "fuse.2",
    ]  # fmt: skip


def _loop_of(turns: bytes) -> Module:
    """A program with a kernel before a loop, whose turns have a call of a library and a kernel."""
    carried = field(3, field(2, 13) + field(4, field(2, F32) + field(3, bytes([8]))))
    body = field(
        3,
        field(1, "body")
        + made("p", "parameter", 1, carried)
        + made("part", "get-tuple-element", 2, shaped(F32, 8), reads(1))
        + made("call.1", "custom-call", 3, shaped(F32, 8), reads(2))
        + made("fuse.1", "fusion", 4, shaped(F32, 8), reads(3))
        + made("root", "tuple", 5, carried, reads(4))
        + field(5, 9),
    )
    loop = made("while.1", "while", 3, carried, reads(2), field(38, 9), field(43, turns))
    first = made("first", "fusion", 1, shaped(F32, 8))
    entry = field(
        3, field(1, "main") + first + made("init", "tuple", 2, carried, reads(1)) + loop + field(5, 1)
    )
    return Module(field(1, body + entry + field(6, 1)))


def test_every_turn_of_a_loop_is_written_out() -> None:
    module = _loop_of(b'{"known_trip_count":{"n":"2"}}')
    code = unrolled(module, module.entry)
    assert [one.name for one in code] == ["first", "call.1", "fuse.1", "call.1", "fuse.1"]
    assert aligned(["first", "nvjet", "fuse_1", "nvjet", "fuse_1"], code) == [one.name for one in code]


@pytest.mark.parametrize(
    "turns", [b"", b"[]", b'{"known_trip_count":7}', b'{"known_trip_count":{"n":"900000000"}}']
)
def test_a_loop_of_unknown_or_endless_turns_stays_one_instruction(turns: bytes) -> None:
    module = _loop_of(turns)
    assert [one.name for one in unrolled(module, module.entry)] == ["first", "while.1"]


def test_kernels_in_another_order() -> None:
    assert aligned(["b_1", "a_1", "b_1"], program("a.1", "b.1")) is None


def test_a_run_that_a_step_cuts_goes_on() -> None:
    """The host began a step while the program ran: its second half does not begin as the program does."""
    order = {"a_1": 0, "b_1": 1, "c_1": 2}
    code = Program(b"", "jit_f")
    code._turns = order
    names = ["a_1", "b_1", "c_1", "a_1", "b_1", "c_1", "a_1"]
    rows = pl.DataFrame(
        {
            "name": names,
            "run": [1, 1, 1, 2, 3, 3, 4],
            "start_ns": range(7),
            "event": range(7),
            "device": [0] * 7,
            "kind": ["kernel"] * 7,
            "instruction": ["graph_1"] * 7,
        }
    )
    assert in_whole_runs(code, rows)["run"].to_list() == [1, 1, 1, 2, 2, 2, 4]


def test_a_run_begins_with_what_comes_before_a_graph() -> None:
    """The kernels of the graph come in another order than their names have: the call before it tells where runs begin."""
    code = Program(b"", "jit_f")
    code._turns, code._places = {"call_1": 0, "z_1": 1, "a_1": 2}, {"call.1": 1}
    rows = pl.DataFrame(
        {
            "name": ["nvjet", "z_1", "a_1", "nvjet", "z_1", "a_1"],
            "run": [1, 1, 1, 2, 2, 3],
            "start_ns": range(6),
            "event": range(6),
            "device": [0] * 6,
            "kind": ["kernel"] * 6,
            "instruction": ["call.1", "graph_1", "graph_1"] * 2,
        }
    )
    assert in_whole_runs(code, rows)["run"].to_list() == [1, 1, 1, 2, 2, 2]


def test_a_loop_without_a_count_keeps_its_calls() -> None:
    """The only call of the program itself is not what multiplies in a loop beside it."""
    code = program("first.1", "call.2", "last.3")
    kernels = ["first_1", "nvjet", "turn_1", "nvjet", "turn_1", "last_3"]
    assert aligned(kernels, code, {"turn_1"}) == ["first.1", *[None] * 4, "last.3"]
    assert aligned(["first_1", "nvjet", "last_3"], code, {"turn_1"}) == [one.name for one in code]


def test_a_recorded_program() -> None:
    """Every kernel has its op, by the program in the profile."""
    trace = stepscope.load(JAX).traces[0]
    found = program_ops(trace)
    kernels = trace.events.filter(pl.col("kind") == "kernel")
    assert set(kernels["id"]) <= set(found["event"])
    assert "custom-call" not in found["op"].to_list()
    assert {name for name, _, _ in programs_that_ran(trace)} == {"jit_train_step", "jit_convert_element_type"}
    table = {row["name"]: row for row in ops_table(op_calls(trace)).to_dicts()}
    product = table["dot_general"]
    # Four steps of four layers: the forward product, and two backward ones but for the first layer.
    assert (product["calls"], product["host_self_ns"], product["execution"]) == (4 * 11, 0, "graph")
    assert product["flops"] == 44 * 2**27  # 2 · M · N · K
    assert sum(row["device_self_ns"] for row in table.values()) >= int(kernels["dur_ns"].sum())
    graphs = [row for row in table.values() if "GraphLaunch" in str(row["name"])]
    assert [row["scope"] for row in graphs] == ["train"]  # launched by the host, in the step's annotation
    programs = [row for row in table.values() if row not in graphs]
    assert all(str(row["scope"] or "jit").startswith("jit") for row in programs)
