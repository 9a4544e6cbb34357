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
