"""Loops that read values one by one, and what is left of the step without them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.own_reads import own_reads
from stepscope.analysis.serving.workload import INFERENCE, TRAINING
from stepscope.native.host import replay as native
from stepscope.trace.frames import conform
from stepscope.trace.schema import TABLES
from stepscope.trace.schema import conform as conform_to
from stepscope.trace.trace import Trace
from tests.builders.cases import HEAD, case_of, case_of_text, gemm, step, steps
from tests.builders.hlo import program
from tests.builders.inline import trace_of


def read_values(at: int, count: int) -> list[str]:
    """A function that makes and reads so many values, 40 µs each."""
    rows = [f"main  {at}  {40 * count}  pose.py(42): decode  python  -"]
    for begin in range(at, at + 40 * count, 40):
        rows += [f"main  {begin}  14  aten::argmax  op  -", *gemm(begin + 2, 4, begin=begin + 14)]
        rows += [f"main  {begin + 15}  24  aten::_local_scalar_dense  op  -"]
        rows += [f"main  {begin + 16}  6  cudaStreamSynchronize  runtime  -"]
    return rows


def compute(at: int, us: int) -> list[str]:
    """An op of the host that launches a little work."""
    return [f"main  {at}  {us}  aten::conv2d  op  -", *gemm(at + us - 14, 4, begin=at + us)]


ONCE = [*compute(0, 180), *read_values(200, 18), *compute(925, 60)]
TWICE = [*compute(0, 90), *read_values(95, 9), *compute(460, 90), *read_values(555, 9), *compute(925, 60)]
SHORT = [*compute(0, 580), *read_values(600, 8), *compute(925, 60)]


@pytest.mark.parametrize(("rows", "is_warmed"), [(ONCE, True), (TWICE, False), (SHORT, False)])
def test_the_rest_is_dispatched_from_warm_caches_without_one_long_loop(
    rows: list[str], is_warmed: bool
) -> None:
    """Short loops between the ops of a step put nothing out of the caches."""
    case = case_of_text(steps(*rows))
    found = {each.code: each for each in apply_rules(case)}
    assert found["device-sync"].where[0].function == "decode"
    change = case.changes["device-sync"]
    outside = case.trace.events["name"].cast(pl.String) == "aten::conv2d"
    mine = pl.col("event").is_in(case.trace.events["id"].filter(outside).implode())
    was, at_worst = (int(plan.host.filter(mine)["ns"].sum()) for plan in (case.plan, change.smallest))
    assert at_worst == pytest.approx(was * (0.9 if is_warmed else 1), rel=0.001)


_STEP_US, _VALUES, _EACH_US = 40_000, 20, 1900
_FRAMEWORK, _JOB = "site-packages/jax/_src/array.py(333): __getitem__", "serve.py(3): format"


def _values_of_results(python: str) -> list[str]:
    """A program of 1 ms, and values of its result that are made, copied and waited for one by one, with 0.6 ms of Python code for each."""
    rows = [
        "main  0  200  PjitFunction(rank)  span  -",
        "main  150  10  cuLaunchKernelEx  runtime  rank",
        "stream 7  170  1000  rank  kernel  -",
    ]
    for at in range(1200, 1200 + _VALUES * _EACH_US, _EACH_US):
        rows += [
            f"main  {at}  600  {python}  python  -",
            f"main  {at + 600}  500  PjitFunction(dynamic_slice)  span  -",
            f"main  {at + 1000}  10  cuLaunchKernelEx  runtime  slice",
            f"over gpu  {at + 1020}  2  jit_dynamic_slice  module  -",
            f"stream 7  {at + 1020}  2  slice  kernel  -",
            f"main  {at + 1110}  20  cuMemcpyDtoHAsync_v2  runtime  MemcpyD2H",
            f"stream 7  {at + 1140}  2  MemcpyD2H  copy  -",
            f"main  {at + 1140}  700  cuStreamSynchronize  runtime  -",
        ]
    return rows


def _with_programs(name: str, kernels: int) -> list[str]:
    """The same, with one more program between two values: 20 µs on the host for each of its kernels."""
    rows = _values_of_results(_FRAMEWORK)
    for at in range(1200, 1200 + (_VALUES - 1) * _EACH_US, _EACH_US):
        rows += [
            f"main  {at + 1842}  50  PjitFunction({name})  span  -",
            f"over gpu  {at + 1850}  45  jit_{name}  module  -",
        ]
        for kernel in range(kernels):
            rows += [
                f"main  {at + 1842 + 10 * kernel}  9  cuLaunchKernelEx  runtime  {name}",
                f"stream 7  {at + 1853 + 10 * kernel}  2  {name}  kernel  -",
            ]
    return rows


def _codes_of(rows: list[str]) -> tuple[Case, set[str]]:
    case = replace(_case_of_jax(rows), workload=INFERENCE)
    return case, {each.code for each in apply_rules(case)}


def _programs(trace: Trace, codes: dict[str, bytes]) -> dict[str, pl.DataFrame]:
    """The tables that say which kernels are of these programs: they have the program's name."""
    if not codes:
        return {}
    names = [name.removeprefix("jit_") for name in codes]
    kernels = trace.events.filter(pl.col("kind") == "kernel", pl.col("name").cast(pl.String).is_in(names))
    name = pl.col("name").cast(pl.String)
    ops = kernels.select(event="id", scope=pl.concat_str(pl.lit("jit_"), name, pl.lit("/"), name))
    modules = [
        {"name": name, "program_id": place, "hlo": hlo} for place, (name, hlo) in enumerate(codes.items())
    ]
    return {"ops": conform_to("ops", ops), "modules": pl.DataFrame(modules, schema=TABLES["modules"])}


def _read_results(
    workload: str, python: str = _FRAMEWORK, rows: list[str] | None = None, **codes: bytes
) -> tuple[Case, Finding]:
    case = replace(
        _case_of_jax(_values_of_results(python) if rows is None else rows, **codes), workload=workload
    )
    return case, {each.code: each for each in apply_rules(case)}["device-sync"]


def _case_of_jax(parts: list[str], **codes: bytes) -> Case:
    """Three steps of these rows, whose copies are of single values to the host."""
    lines = [HEAD]
    for number in range(3):
        start = _STEP_US * number
        _, *rows = step(number, start, *parts)
        lines += [f"main  {start}  {_STEP_US}  ProfilerStep#{number}  annotation  -", *rows]
    trace = trace_of("\n".join(lines), framework="jax")
    copies = trace.events.filter(pl.col("kind") == "copy").select(
        event="id",
        bytes=pl.lit(4),
        direction=pl.lit("DtoH"),
        source=pl.lit("Device"),
        target=pl.lit("Pageable"),
    )
    tables = {**trace.tables, **_programs(trace, codes), "copies": conform(copies, trace.copies.schema)}
    return case_of(trace.over(tables, trace.cold))


def test_results_that_are_read_one_by_one_are_read_once() -> None:
    """The host still waits for the program, and reads once; the framework's Python code for each value goes, and little is in doubt."""
    case, found = _read_results(INFERENCE)
    waits = [
        int(plan.items["kind"].eq(native.WAIT).sum()) / len(case.lengths)
        for plan in (case.plan, case.changes["device-sync"].smallest)
    ]
    assert waits == [_VALUES, 1]
    assert found.left_ns_per_step is not None
    assert found.left_ns_per_step.low > 1_100_000
    assert found.left_ns_per_step.high < 8_000_000
    assert "one jax.device_get" in found.detail


@pytest.mark.parametrize(("name", "kernels", "stays"), [("gather", 1, False), ("refine", 4, True)])
def test_all_that_takes_values_out_of_results_goes_but_no_compiled_function(
    name: str, kernels: int, stays: bool
) -> None:
    case, _ = _read_results(INFERENCE, rows=_with_programs(name, kernels))
    names = case.trace.events["name"].cast(pl.String)
    items = case.changes["device-sync"].smallest.items
    mine = items.filter((names == name).gather(items["event"]).fill_null(False))
    assert len(mine) == kernels * (_VALUES - 1) * 3
    assert (mine["device_ns"] > 0).any() == stays


def test_results_are_said_to_be_fetched_at_once_also_where_the_workload_is_known() -> None:
    _, found = _read_results(INFERENCE)
    assert "jax.device_get" in found.fix
    assert found.evidence["values_read_per_step"] == _VALUES


def test_training_need_not_wait_for_what_it_reads() -> None:
    case, _ = _read_results(TRAINING)
    assert not case.changes["device-sync"].smallest.items["kind"].eq(native.WAIT).any()


def test_python_code_of_the_job_stays_when_values_are_read_once() -> None:
    _, found = _read_results(INFERENCE, _JOB)
    assert found.left_ns_per_step is not None
    assert found.left_ns_per_step.low > _VALUES * 500_000


def _loop_of_program(turns: int, track: str = "stream 7") -> list[str]:
    """One program with a loop: after each turn of two kernels it copies the condition to the host, which waits for it."""
    rows = [
        "main  0  38000  PjitFunction(solve)  span  -",
        f"over gpu  100  {500 * turns}  jit_solve  module  -",
    ]
    for at in range(100, 100 + 500 * turns, 500):
        for k in range(2):
            rows += [
                f"main  {at + 10 * k}  8  cuLaunchKernelEx  runtime  turn",
                f"stream 7  {at + 20 + 10 * k}  8  turn  kernel  -",
            ]
        rows += [
            f"main  {at + 30}  8  cuMemcpyDtoHAsync_v2  runtime  MemcpyD2H",
            f"{track}  {at + 45}  2  MemcpyD2H  copy  -",
            f"main  {at + 50}  400  cuStreamSynchronize  runtime  -",
        ]
    rows += [
        f"main  {110 + 500 * turns}  8  cuLaunchKernelEx  runtime  last",
        f"stream 7  {80 + 500 * turns}  8  last  kernel  -",
    ]
    return rows


def test_conditions_that_a_program_reads_by_itself_are_not_read_by_the_job() -> None:
    """No code of the job reads them, and no kernel is there for them alone."""
    case, codes = _codes_of(_loop_of_program(60))
    assert own_reads(case).sum() == 2 * 3 * 60
    assert "device-sync" not in codes


def test_what_is_copied_on_another_stream_meanwhile_is_read_by_the_job() -> None:
    case, codes = _codes_of(_loop_of_program(60, "stream 9"))
    assert not own_reads(case).any()
    assert "device-sync" in codes


@pytest.mark.parametrize(("returned", "goes_on"), [("f32[64,128]", True), ("f32[64]", False)])
def test_a_loop_that_acts_on_values_needs_each_before_its_next_turn(returned: str, goes_on: bool) -> None:
    """A function is given what it returned, a cache of keys and values, and another program chooses the token that is read."""
    rows = _with_programs("refine", 4)
    code = program(
        f"main:\n  cache = f32[64,128] parameter(0)\n  refine = {returned} fusion(cache) calls=inner\n"
        "inner:\n  x = f32[64,128] parameter(0)\n"
    )
    _, found = _read_results(INFERENCE, rows=rows, jit_refine=code)
    assert ("one jax.device_get" in found.detail) != goes_on
    assert ("jax.lax.while_loop" in found.fix) == goes_on
