"""User code: the function that takes much of a step beside a framework on the same processor."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.host.host_python import RULE, find
from stepscope.names import short_name
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of, case_of_text, findings_of, gemm, steps

OWN = "job.py(12): features"
LIBRARY = "/usr/lib/python3/site-packages/numpy/fft/_pocketfft.py(58): _raw_fft"


def found_in(length: int, outer: str = OWN, inner: str = LIBRARY) -> dict[str, Finding]:
    """Steps of 1 ms: so long in a function of the user's that calls a library, the rest in an op."""
    rows = [
        f"main  0  {length}  {outer}  python  -",
        f"main  10  {length - 10}  {inner}  python  -",
        f"main  {length}  {990 - length}  MatMul  op  -",
    ]
    case = replace(case_of_text(steps(*rows), framework="tensorflow"), device=None)
    return {each.code: each for each in apply_rules(case)}


def test_the_users_function_owns_the_libraries_that_it_calls() -> None:
    found = found_in(800)["host-python"]
    assert found.title == "One function takes most of the step"
    assert found.evidence["function"] == OWN
    assert found.share == pytest.approx(0.8, abs=0.01)
    assert (found.where[0].function, found.where[0].line) == ("features", 12)
    # Half of its time to all of it goes.
    assert 1.5 < found.speedup.low < found.speedup.mid == pytest.approx(1 / (1 - 0.8 * 0.8), rel=0.02)
    assert found.speedup.high == pytest.approx(5, rel=0.3)


def test_below_half_of_the_step_it_is_much_of_it() -> None:
    assert found_in(400)["host-python"].title == "One function takes much of the step"


def test_beside_a_longer_op_a_small_part_is_no_finding() -> None:
    found = found_in(200)["host-python"]
    assert "function" not in found.evidence
    assert [each["name"] for each in found.evidence["names"]] == ["MatMul"]
    assert found.title == "One op takes most of the step"


@pytest.mark.parametrize(
    ("name", "framework", "promises"),
    [
        ("_MklNativeFusedConv2D", "tensorflow", False),
        ("aten::mkldnn_convolution", "pytorch", False),
        ("RandomStandardNormal", "tensorflow", True),
        ("EagerPyFunc", "tensorflow", True),
    ],
)
def test_less_to_compute_is_advice_and_no_promise(name: str, framework: str, promises: bool) -> None:
    """No limit is known of what goes either, but for what may go as a whole."""
    case = replace(case_of_text(steps(f"main  0  900  {name}  op  -"), framework=framework), device=None)
    found = {each.code: each for each in apply_rules(case)}["host-python"]
    assert (found.class_ == "advice", found.speedup.high > 1) == (not promises, promises)


def test_code_of_libraries_alone_is_nobodys_function() -> None:
    found = found_in(800, outer=LIBRARY)
    assert "function" not in found["host-python"].evidence
    assert found["host-python"].speedup.mid == 1


def test_a_list_that_becomes_a_tensor_item_by_item_goes_nearly_as_a_whole() -> None:
    found = found_in(800, inner="<built-in method tensor of type object at 0xffff9934cc98>")["host-python"]
    assert found.speedup.mid == pytest.approx(1 / (1 - 0.8), rel=0.03)
    assert found.speedup.low > found_in(800)["host-python"].speedup.low
    assert "torch.tensor, which reads lists item by item" in found.detail
    assert "np.stack" in found.fix


def test_other_calls_of_pytorch_are_no_conversions() -> None:
    found = found_in(800, inner="<built-in method tensor_split of type object at 0xffff9934cc98>")[
        "host-python"
    ]
    assert found.speedup.mid == pytest.approx(1 / (1 - 0.8 * 0.8), rel=0.02)
    assert "np.stack" not in found.fix


@pytest.mark.parametrize(
    ("inner", "places"),
    [
        ("numpy/_core/shape_base.py(378): stack", [("sample", 33), ("stack", 378)]),
        ("job.py(50): join", [("join", 50), ("sample", 33)]),
    ],
)
def test_before_a_function_of_a_library_comes_who_calls_it(inner: str, places: list[tuple[str, int]]) -> None:
    rows = [
        "main  0  800  job.py(33): sample  python  -",
        f"main  100  700  {inner}  python  -",
        *gemm(900, 80),
    ]
    found = {each.code: each for each in apply_rules(case_of_text(steps(*rows, count=4)))}["host-python"]
    assert [(place.function, place.line) for place in found.where] == places
    assert short_name(inner) in found.detail


CONVERTS = "<built-in method tensor of type object at 0xffff9934cc98>"


def sampled(inner: str) -> Finding:
    """Steps in which a function makes a batch and sends it; then the device computes."""
    rows = [
        "main  0  850  job.py(33): sample  python  -",
        f"main  5  650  {inner}  python  -",
        "main  660  180  aten::copy_  op  -",
        "main  670  160  cudaMemcpyAsync  runtime  copy",
        "stream 7  680  10  copy  copy  -",
        *gemm(900, 80),
    ]
    return {each.code: each for each in apply_rules(case_of_text(steps(*rows, count=4)))}["host-python"]


def test_what_lists_were_read_for_is_still_sent() -> None:
    """Arrays take their place; another function may have made what the device could keep."""
    lists, other = sampled(CONVERTS), sampled(CONVERTS.replace("tensor", "sorted"))
    assert lists.speedup.high < 0.8 * other.speedup.high
    assert lists.speedup.low < other.speedup.low
    assert "np.stack" in lists.fix
    assert "np.stack" not in other.fix


_CALLS = {
    "nnx": ("$compilation.py:355 __call__", "$extract.py:262 to_tree", "$graph.py:947 flatten"),
    "equinox": ("$_jit.py:244 _call", "$_jit.py:63 _preprocess", "$_module.py:517 flatten"),
    "own": ("$train.py:9 update", "$extract.py:262 to_tree", "$graph.py:947 flatten"),
}


def _wrapped(library: str, flatten_us: int = 900) -> list[str]:
    call, prepare, flatten = _CALLS[library]
    return steps(
        "main  0  990  $train.py:30 step  python  -",
        f"main  5  {flatten_us + 50}  {call}  python  -",
        f"main  8  {flatten_us + 4}  {prepare}  python  -",
        f"main  10  {flatten_us}  {flatten}  python  -",
        f"main  {flatten_us + 20}  20  PjitFunction(step)  span  -",
        f"main  {flatten_us + 25}  5  cuLaunchKernel  runtime  gemm",
        f"stream 7  {flatten_us + 30}  40  gemm  kernel  -",
        count=4,
    )


@pytest.mark.parametrize(
    ("library", "advice", "place"),
    [
        ("nnx", "nnx.cached_partial", "step"),
        ("equinox", "equinox.partition", "step"),
        ("own", "Move", "flatten"),
    ],
)
def test_libraries_that_wrap_jit_go_through_the_model_in_each_call(
    library: str, advice: str, place: str
) -> None:
    """Their files are named as the job's own may be, and JAX leaves the folder out."""
    found = {each.code: each for each in findings_of(_wrapped(library), framework="jax")}["host-python"]
    assert advice in found.fix
    assert found.where[0].function == place
    assert found.speedup.mid > 5


BATCH = "[[64,3,160,160],[]]"


def left_of(dtypes: str) -> list[float]:
    """Steps of 10 ms, of which the host picks a batch for 2 ms and converts it for 3 ms: what stays of these, at worst and at best."""
    rows = [
        f"main  100  2000  aten::index_select  op  -  {BATCH}  {dtypes}",
        f"main  2200  3000  aten::to  op  -  {BATCH}  unsigned char,Scalar",
        f"main  2250  2900  aten::copy_  op  -  {BATCH}  float,unsigned char",
        f"main  7100  200  aten::to  op  -  {BATCH}  float,Scalar",
        "main  7150  50  cudaLaunchKernel  runtime  gemm  -  -",
        "stream 7  7300  2000  gemm  kernel  -  -  -",
    ]
    lines = ["track  start  dur  name  kind  launches  shapes  dtypes"]
    for number in range(3):
        lines.append(f"main  {10000 * number}  10000  ProfilerStep#{number}  annotation  -  -  -")
        for row in rows:
            track, start, rest = row.split("  ", 2)
            lines.append(f"{track}  {10000 * number + int(start)}  {rest}")
    case = case_of(compute_trace("\n".join(lines)))
    assert find(case) is not None
    change, is_python = case.changes[RULE.code], pl.col("cause") == "python"
    before, *after = (
        int(plan.host.filter(is_python)["ns"].sum()) for plan in (case.plan, change.smallest, change.largest)
    )
    return [each / before for each in after]


def test_bytes_are_picked_as_before_at_worst() -> None:
    """Converting them goes; where floats are picked, that goes as well."""
    picked, floats = left_of("unsigned char,Scalar,long int"), left_of("float,Scalar,long int")
    assert picked[0] > floats[0] + 0.2 and picked[1] == pytest.approx(floats[1])
