"""Loops that count classes: each turn reads the same tensors, and one histogram reads them once."""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.host import unbatched_loop
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes  inputs"
COMPARE = "void at::native::vectorized_elementwise_kernel<4,CompareEqFunctor>"
TURNS = 16


def counting(numbers: list[int]) -> Case:
    """Steps of 1000 µs in which a loop compares 17 million labels with these numbers, 40 µs of the device each."""
    lines = [HEAD]
    for step in range(3):
        begin = 1000 * step
        lines += [f"main  {begin}  1000  ProfilerStep#{step}  annotation  -  -  -  -"]
        lines += [f"main  {begin + 2}  990  metric.py(7): update  python  -  -  -  -"]
        for turn, number in enumerate(numbers):
            at = begin + 5 + 60 * turn
            lines += [f'main  {at}  16  aten::eq  op  -  [[64,512,512],[]]  long,Scalar  ["","{number}"]']
            lines += [f"main  {at + 2}  10  cudaLaunchKernel  runtime  {COMPARE}  -  -  -"]
            lines += [f"stream 7  {at + 13}  40  {COMPARE}  kernel  -  -  -  -"]
    return case_of(compute_trace("\n".join(lines)))


def found(numbers: list[int]) -> Finding:
    one = unbatched_loop.find(counting(numbers))
    assert one is not None
    return one


def test_one_pass_over_what_all_turns_read_is_left_at_most() -> None:
    classes, samples = found(list(range(TURNS))), found([3] * TURNS)
    assert classes.evidence["iterations"] == samples.evidence["iterations"] == TURNS
    assert classes.speedup.high > samples.speedup.high
    assert classes.speedup.mid > 2 > samples.speedup.mid
