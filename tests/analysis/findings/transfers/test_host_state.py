"""An average of the weights, or statistics, on the host: every step copies tensors there, and ops of the framework take them."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.trace.frames import conform
from tests.builders.cases import HEAD, case_of, gemm, step
from tests.builders.inline import trace_of

_STEP_US, _COMPUTE_US, _EACH_US = 7200, 2000, 600
_AWAY, _BACK = "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pageable -> Device)"
_BYTES = 4 * 1024 * 512


def _case(
    takes: str = "aten::add_",
    tensors: int = 8,
    shape: str = "[1024, 512]",
    around: str = "train.py(9): update_average  python",
    comes_back: bool = False,
) -> Case:
    """Steps in which the device works for 2 ms, and then tensors go to the host one by one, where an op takes each."""
    lines = [HEAD]
    for number in range(4):
        end = 2040 + tensors * _EACH_US
        rows = [*gemm(10, _COMPUTE_US), f"main  2030  {end - 2060}  {around}  -"]
        for at in range(2040, end, _EACH_US):
            rows += [
                f"main  {at}  350  aten::copy_  op  -",
                f"main  {at + 10}  330  cudaMemcpyAsync  runtime  {_AWAY}",
                f"stream 7  {at + 20}  300  {_AWAY}  copy  -",
                f"main  {at + 360}  200  {takes}  op  -",
            ]
        if comes_back:
            rows += [
                f"main  6900  220  cudaMemcpyAsync  runtime  {_BACK}",
                f"stream 7  6910  200  {_BACK}  copy  -",
            ]
        lines += [f"main  {_STEP_US * number}  {_STEP_US}  ProfilerStep#{number}  annotation  -"]
        lines += step(number, _STEP_US * number, *rows)[1:]
    trace = trace_of("\n".join(lines), framework="pytorch")
    name = pl.col("name").cast(pl.String)
    copies = trace.events.filter(pl.col("kind") == "copy").select(
        event="id",
        bytes=pl.lit(_BYTES),
        direction=name.str.extract("(HtoD|DtoH)"),
        source=pl.lit("Device"),
        target=pl.lit("Pageable"),
    )
    ops = trace.events.filter(name == takes).select(
        event="id", shapes=pl.lit(f"[{shape}, {shape}, []]"), dtypes=pl.lit('["float", "float", "Scalar"]')
    )
    if not shape:
        ops = ops.clear()
    tables = {
        "copies": conform(copies, trace.copies.schema),
        "ops": conform(ops, {name: kind for name, kind in trace.ops.schema.items() if name in ops.columns}),
    }
    tables["ops"] = pl.concat([trace.ops.clear(), tables["ops"]], how="diagonal")
    return case_of(trace.over({**trace.tables, **tables}, trace.cold))


def _found(case: Case) -> dict[str, Finding]:
    return {each.code: each for each in apply_rules(case)}


def _is_of_state(case: Case) -> bool:
    found = _found(case).get("round-trip-copy")
    return found is not None and found.title.startswith("State on the host")


@pytest.mark.parametrize("shape", ["[1024, 512]", ""])
def test_copies_waits_and_the_ops_that_take_them_go_together(shape: str) -> None:
    """What is left is about what the device computes; the ops are known by their sizes or, without these, by their number."""
    found = _found(_case(shape=shape))["round-trip-copy"]
    assert found.title.startswith("State on the host")
    assert "torch._foreach_lerp_" in found.fix
    assert found.evidence["tensors_per_step"] == 8
    assert [place.function for place in found.where] == ["update_average"]
    left = found.left_ns_per_step
    assert left is not None
    assert left.low <= _COMPUTE_US * 1000 * 1.05 < left.mid < 1.5 * _COMPUTE_US * 1000


def test_one_large_tensor_is_state_where_an_op_updates_something_with_it() -> None:
    assert _is_of_state(_case(tensors=1))
    assert not _is_of_state(_case(tensors=1, takes="aten::argmax"))


def test_ops_on_other_tensors_take_nothing() -> None:
    assert not _is_of_state(_case(shape="[16, 16]"))


def test_a_snapshot_is_not_computed_on() -> None:
    """No loader shortens copies to the host."""
    found = _found(_case(takes="aten::clone"))
    assert "round-trip-copy" not in found
    assert "side stream, and use the copy a step later" in found["exposed-copy"].fix


def test_what_comes_back_to_the_device_is_no_state() -> None:
    """Such as gradients for an optimizer on the host, which sends the weights back."""
    assert not _is_of_state(_case(comes_back=True))


def test_an_optimizer_on_the_host_has_its_own_finding() -> None:
    assert not _is_of_state(_case(around="Optimizer.step#SGD.step  annotation"))
