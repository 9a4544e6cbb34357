"""A compiled model that Python calls for one input after the other, where one call would take all of them."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace

_WIDTH, _ACTIONS, _EACH_US, _COUNT = 1024, 8, 60, 32
_KERNELS = 4
_STEP = _EACH_US * _COUNT + 400


def _policy(actions: int, products: int) -> bytes:
    """Four kernels, the first of which are products; the result is as long as the input, or shorter."""
    x = f"f32[1,{_WIDTH}]"
    lines = [f"  w.{n} = f32[{_WIDTH},{_WIDTH}] parameter({n})" for n in range(products - 1)]
    lines += [f"  w.{_KERNELS - 1} = f32[{_WIDTH},{actions}] parameter({products - 1})"]
    lines += [f"  h.0 = {x} parameter({products})"]
    for n in range(_KERNELS - 1):
        what = f"dot(h.{n}, w.{n}) contracts=1,0" if n < products - 1 else f"tanh(h.{n})"
        lines.append(f"  h.{n + 1} = {x} {what}")
    lines.append(f"  h.{_KERNELS} = f32[1,{actions}] dot(h.{_KERNELS - 1}, w.{_KERNELS - 1}) contracts=1,0")
    return program("main:\n" + "\n".join(lines) + "\n")


def _found(
    actions: int = _ACTIONS, between: str = "", stretch: int = _COUNT, products: int = 4
) -> dict[str, Finding]:
    """Of steps that call a policy 32 times and read each result; `between` is what they call then, after a stretch of calls."""
    lines: list[str] = []
    for step in range(3):
        at = _STEP * step
        lines += [
            f"main  {at}  {_STEP}  ProfilerStep#{step}  annotation  -  -",
            f"main  {at + 2}  {_STEP - 4}  $train.py:9 collect  python  -  -",
        ]
        for number in range(_COUNT):
            begin = at + 10 + number * _EACH_US
            lines += [
                f"main  {begin}  30  PjitFunction(policy)  span  -  -",
                f"over modules  {begin + 26}  16  jit_policy  module  -  -",
            ]
            for layer in range(_KERNELS):
                lines += [
                    f"main  {begin + 5 + 5 * layer}  3  cudaLaunchKernel  runtime  h_{layer + 1}  -",
                    f"stream 7  {begin + 26 + 4 * layer}  3  h_{layer + 1}  kernel  -  jit_policy",
                ]
            lines += [
                f"main  {begin + 32}  20  $numpy asarray  python  -  -",
                f"main  {begin + 33}  18  np.asarray(jax.Array)  span  -  -",
            ]
            if between and (number + 1) % stretch == 0:
                lines.append(f"main  {begin + 54}  4  {between}  python  -  -")
    lines.sort(key=lambda line: int(line.split("  ")[1]))
    trace = program_trace(lines, jit_policy=_policy(actions, products))
    return {one.code: one for one in apply_rules(case_of(trace))}


@pytest.mark.parametrize("products", [4, 2])
def test_calls_that_need_no_other_become_one(products: int) -> None:
    """Also where only two weights are multiplied, which layers may share: each is used for one input."""
    found = _found(products=products)["unbatched-loop"]
    assert "for each input" in found.title
    assert "jax.vmap" in found.fix
    assert found.evidence["iterations"] == _COUNT
    assert [place.function for place in found.where] == ["collect"]
    assert found.speedup.mid > 3


def test_a_result_that_may_be_the_next_input_holds_the_next_call_up() -> None:
    """As where a sampler sends its picture through the model again."""
    assert "unbatched-loop" not in _found(actions=_WIDTH)


@pytest.mark.parametrize(("stretch", "is_found"), [(1, False), (16, True)])
def test_what_is_called_in_between_may_make_the_next_input(stretch: int, is_found: bool) -> None:
    """As a simulator does for each robot, or after all of them."""
    found = _found(between="$train.py:30 simulate", stretch=stretch)
    assert ("unbatched-loop" in found) == is_found
    if is_found:
        assert found["unbatched-loop"].evidence["iterations"] == stretch


def test_results_may_be_put_into_a_list() -> None:
    assert _found(between="$list append", stretch=1)["unbatched-loop"].evidence["iterations"] == _COUNT


_ROW = 100  # µs from one call to the next where the inputs are rows of an array on the device
_PICKS = "$array.py:338 __getitem__"
_ROWS_OF = {
    "jit_dynamic_slice": (f"f32[{_COUNT},{_WIDTH}]", f"f32[1,{_WIDTH}]", "dynamic-slice"),
    "jit_squeeze": (f"f32[1,{_WIDTH}]", f"f32[{_WIDTH}]", "reshape"),
}


def _head(result: str, last: str, wide: int) -> bytes:
    """A model that is given one row: the result is as long as the bias of the last layer, a leaf of this argument."""
    lines = [f"  x = f32[{_WIDTH}] parameter(0) op_name=x"]
    for n, size in enumerate((_WIDTH, _WIDTH, _WIDTH, _ACTIONS)):
        root = last if size == _ACTIONS else "params"
        columns = wide if size == _ACTIONS else size
        lines.append(f"  w.{n} = f32[{_WIDTH},{columns}] parameter({2 * n + 1}) op_name={root}['w{n}']")
        lines.append(f"  b.{n} = f32[{size}] parameter({2 * n + 2}) op_name={root}['b{n}']")
        before = f"h.{n}" if n else "x"
        lines.append(f"  h.{n + 1} = f32[{size}] dot({before}, w.{n}) contracts=0,0")
    lines.append(f"  out = {result} add(h.{_KERNELS}, b.3)")
    return program("main:\n" + "\n".join(lines) + "\n")


def _mover(given: str, result: str, opcode: str) -> bytes:
    return program(f"main:\n  a = {given} parameter(0)\n  y = {result} {opcode}(a)\n")


def _stack(result: str, count: int) -> bytes:
    given = "".join(f"  a.{n} = {result} parameter({n})\n" for n in range(count))
    names = ", ".join(f"a.{n}" for n in range(count))
    return program(f"main:\n{given}  y = f32[{count},{_ACTIONS}] concatenate({names})\n")


def _call(at: int, name: str, kernels: list[str]) -> list[str]:
    lines = [
        f"main  {at}  {8 * len(kernels)}  PjitFunction({name})  span  -  -",
        f"over modules  {at + 4}  {5 * len(kernels)}  jit_{name}  module  -  -",
    ]
    for place, kernel in enumerate(kernels):
        lines += [
            f"main  {at + 1 + 2 * place}  1  cudaLaunchKernel  runtime  {kernel}  -",
            f"stream 7  {at + 4 + 5 * place}  4  {kernel}  kernel  -  jit_{name}",
        ]
    return lines


def _found_rows(
    between: str = "",
    picks: str = _PICKS,
    result: str = f"f32[{_ACTIONS}]",
    last: str = "params",
    wide: int = _ACTIONS,
    cuts: int = _COUNT,
    codes: dict[str, bytes] | None = None,
) -> dict[str, Finding]:
    """Of steps that call a model for each row of an array on the device, and stack the results."""
    length = _ROW * _COUNT + 400
    lines: list[str] = []
    for step in range(3):
        at = length * step
        lines += [
            f"main  {at}  {length}  ProfilerStep#{step}  annotation  -  -",
            f"main  {at + 2}  {length - 4}  $train.py:9 collect  python  -  -",
        ]
        for number in range(_COUNT):
            begin = at + 10 + number * _ROW
            lines.append(f"main  {begin}  36  {picks}  python  -  -")
            if number < cuts:
                lines += _call(begin + 8, "dynamic_slice", ["y"]) + _call(begin + 22, "squeeze", ["y"])
            lines += _call(begin + 40, "model", [f"h_{n + 1}" for n in range(_KERNELS)])
            if between:
                lines += _call(begin + 82, between, ["y"])
        begin = at + 10 + _COUNT * _ROW
        lines.append(f"main  {begin}  300  $lax_numpy.py:99 stack  python  -  -")
        lines += _call(begin + 280, "stack", ["y"])
    lines.sort(key=lambda line: int(line.split("  ")[1]))
    known = {name: _mover(*what) for name, what in _ROWS_OF.items()}
    known |= {"jit_model": _head(result, last, wide), "jit_stack": _stack(result, _COUNT)} | (codes or {})
    return {one.code: one for one in apply_rules(case_of(program_trace(lines, **known)))}


def test_rows_of_an_array_on_the_device_are_called_together() -> None:
    """Each index is two programs between the calls, and the results are stacked."""
    found = _found_rows()["unbatched-loop"]
    assert "for each input" in found.title
    assert "jax.vmap" in found.fix and "index" in found.fix
    assert found.evidence["iterations"] == _COUNT
    assert [place.function for place in found.where] == ["collect"]
    assert (
        found.speedup.low < 8 < 15 < found.speedup.high
    )  # at worst something still takes as long as the stack


@pytest.mark.parametrize(("cuts", "is_found"), [(1, True), (0, False)])
def test_an_array_that_a_loop_goes_through_is_cut_at_once(cuts: int, is_found: bool) -> None:
    """Where nothing is cut, the same call may be made again and again, as to take its time."""
    found = _found_rows(picks="$array.py:350 <genexpr>", cuts=cuts)
    assert ("unbatched-loop" in found) == is_found


def test_a_part_of_the_result_may_be_taken() -> None:
    """No call can be given it."""
    part = _mover(f"f32[{_ACTIONS}]", "f32[1]", "slice")
    assert "unbatched-loop" in _found_rows("slice", codes={"jit_slice": part})


_HEAD, _INPUT, _PAIR = f"f32[{_ACTIONS}]", f"f32[{_WIDTH}]", f"f32[2,{_WIDTH}]"
_ALL = f"f32[{_COUNT},{_WIDTH}]"


@pytest.mark.parametrize(
    ("returned", "given", "made", "opcode"),
    [
        (_HEAD, _HEAD, _INPUT, "pad"),  # of the result: it may be the next input
        (_PAIR, _PAIR, _INPUT, "slice"),
        (_HEAD, _ALL, _INPUT, "reduce"),  # computes
        (_HEAD, _ALL, _ALL, "concatenate"),  # may need the one before
        (_HEAD, _ALL, _ALL, "dynamic-update-slice"),
    ],
)
def test_other_programs_in_between_may_make_the_next_input(
    returned: str, given: str, made: str, opcode: str
) -> None:
    other = _mover(given, made, opcode)
    assert "unbatched-loop" not in _found_rows("other", result=returned, codes={"jit_other": other})


def test_rows_of_a_result_may_be_the_next_inputs() -> None:
    """As where a planner goes on from the first of the states that it returns."""
    assert "unbatched-loop" not in _found_rows(result=_ALL)
    assert "unbatched-loop" in _found_rows(result=_PAIR)


def test_rows_that_own_code_makes_may_depend_on_results() -> None:
    assert "unbatched-loop" not in _found_rows(picks="$train.py:30 simulate")


def test_a_state_that_is_returned_is_no_row() -> None:
    assert "unbatched-loop" not in _found_rows(result=f"f32[{_WIDTH}]")


def test_an_ensemble_has_weights_for_each_row() -> None:
    """One call for all of its members reads as many weights as all calls."""
    members = f"f32[{_COUNT},{_WIDTH},{_WIDTH}]"
    cut = _mover(members, f"f32[{_WIDTH},{_WIDTH}]", "dynamic-slice")
    assert "unbatched-loop" not in _found_rows(codes={"jit_dynamic_slice": cut})


def test_a_bias_is_one_of_a_model() -> None:
    """A small tree may be a state that the caller makes of what the last call returned, and so may a leaf as wide as no matrix."""
    assert "unbatched-loop" not in _found_rows(last="state")
    assert "unbatched-loop" not in _found_rows(wide=2 * _ACTIONS)
