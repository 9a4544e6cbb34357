"""A Python loop over compiled programs of JAX: what makes them known, whatever runs between their calls, and what a compiled loop leaves."""

from __future__ import annotations

import pytest

from stepscope.analysis.context import RankContext
from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.options import Options
from tests.analysis.findings.programs.host_programs import host_program_trace, run_inside
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace

_LOOP, _OPS = (
    "A Python loop calls compiled programs one by one",
    "The step runs op by op instead of compiled",
)
_TURNS, _CALL = 20, 50
_GLUE = ("_threefry_split", "unstack", "dynamic_slice", "add", "squeeze")


def _code(computing: int) -> bytes:
    """One kernel, in which so many instructions compute; a comparison and a selection are of its indices."""
    lines = ["fused:", "  x.0 = f32[64] parameter(0)"]
    lines += [f"  x.{n + 1} = f32[64] multiply(x.{n}, x.{n})" for n in range(computing)]
    last = f"x.{computing}"
    lines += [f"  less = pred[64] compare({last}, x.0)", f"  out = f32[64] select(less, {last}, x.0)"]
    lines += ["main:", "  a = f32[64] parameter(0)", "  fusion = f32[64] fusion(a) calls=fused"]
    return program("\n".join(lines) + "\n")


def _call(at: int, function: str, launching: int, updating: int = 0) -> list[str]:
    """A call of 49 µs with a kernel of 1 µs; XLA launches it in some µs, in which it may update a graph first."""
    program_name = f"jit_{function.replace('<', '_').replace('>', '_')}"
    rows = [f"main  {at}  {_CALL - 1}  PjitFunction({function})  span  -  -"]
    if launching:
        rows.append(f"main  {at + 5}  {launching}  [0] GpuExecutable::ExecuteThunks  span  -  -")
    if updating:
        rows.append(f"main  {at + 6}  {updating}  command_buffer::update  span  -  -")
    return [
        *rows,
        f"over modules  {at + 41}  2  {program_name}  module  -  -",
        f"main  {at + 38}  2  cuLaunchKernelEx  runtime  fusion  -",
        f"stream 7  {at + 41}  1  fusion  kernel  -  {program_name}",
    ]


def _found(
    *between: str, computing: int = 20, launching: int = 0, updating: int = 0, function: str = "advance"
) -> Finding:
    """Of steps that call a function 20 times, with single ops between its calls."""
    lines: list[str] = []
    length = _TURNS * _CALL * (1 + len(between)) + 20
    for number in range(3):
        begin = length * number
        lines += [
            f"main  {begin}  {length}  ProfilerStep#{number}  annotation  -  -",
            f"main  {begin + 1}  {length - 2}  $solver.py:48 frame  python  -  -",
        ]
        at = begin + 10
        for _ in range(_TURNS):
            lines += _call(at, function, launching, updating)
            lines += [row for place, op in enumerate(between, 1) for row in _call(at + place * _CALL, op, 0)]
            at += _CALL * (1 + len(between))
    lines.sort(key=lambda line: int(line.split("  ")[1]))
    name = f"jit_{function.replace('<', '_').replace('>', '_')}"
    codes = {name: _code(computing), **{f"jit_{op}": _code(60 if op[0] == "_" else 1) for op in between}}
    found = apply_rules(case_of(program_trace(lines, **codes)))
    return next(each for each in found if each.code == "eager-execution")


@pytest.mark.parametrize(("computing", "title"), [(20, _LOOP), (9, _LOOP), (8, _OPS), (1, _OPS)])
def test_a_function_of_one_kernel_computes_more_than_an_op(computing: int, title: str) -> None:
    assert _found(computing=computing).title == title


def test_where_the_loop_is() -> None:
    found = _found()
    assert "A step calls advance 20 times." in found.detail
    assert [(place.file, place.line) for place in found.where] == [("solver.py", 48)]
    assert "lax.fori_loop" in found.fix


def test_a_lambda_is_called_by_its_name() -> None:
    assert "A step calls <lambda> 20 times." in _found(function="<lambda>").detail


@pytest.mark.parametrize(("ops", "title"), [(0, _LOOP), (1, _LOOP), (3, _LOOP), (5, _OPS)])
def test_a_few_ops_between_the_calls_cut_inputs_split_keys_and_count(ops: int, title: str) -> None:
    found = _found(*_GLUE[:ops])
    assert found.title == title
    assert ("calls advance 20 times" in found.detail) == (title == _LOOP)


def test_what_makes_random_numbers_is_an_op_of_the_framework() -> None:
    assert _found("add", function="_normal", computing=90).title == _OPS


def test_a_compiled_loop_launches_its_kernels_in_each_turn() -> None:
    """Of 50 µs from call to call, 35 launch: of those, 75 to 95 % stay in each turn, and the rest goes."""
    nothing, short, long = (_found(launching=us).speedup for us in (0, 10, 35))
    assert long.high < short.low < short.mid < nothing.mid
    assert 1.1 < long.low < 50 / (0.95 * 35) < long.mid < 50 / (0.75 * 35) < long.high < 2.1


def test_a_graph_that_stays_the_same_needs_no_update() -> None:
    assert _found(launching=35, updating=25).speedup.low > _found(launching=35).speedup.high


@pytest.mark.parametrize(("ops", "title"), [(0, _LOOP), (3, _LOOP), (5, _OPS)])
def test_on_a_cpu_a_loop_is_named_by_the_function_that_computes(ops: int, title: str) -> None:
    names = (*_GLUE[:ops], "cell")
    rows = [
        row
        for turn in range(12)
        for place, name in enumerate(names)
        for row in run_inside(10 + 60 * (len(names) * turn + place), 55, name, before=50)
    ]
    codes = {f"jit_{name}": _code(60 if name[0] == "_" else 1) for name in names[:-1]}
    trace = host_program_trace(60 * 12 * len(names) + 20, *rows, jit_cell=_code(20), **codes)
    context = RankContext(0, trace, Options())
    found = next(each for each in apply_rules(context.case) if each.code == "eager-execution")
    assert found.title == title
    assert ("A step calls cell 12 times." in found.detail) == (title == _LOOP)
