"""Samples of several lengths in one batch: what padding adds to their work."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.loops.padding import padding_of
from stepscope.analysis.findings.rules.host import unbatched_loop
from stepscope.analysis.host.loops import Loops
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes  inputs"
GEMM = "void gemm_bf16"
LENGTHS = (400, 300, 380, 310, 390, 320, 400, 300)
ALIKE = (350,) * len(LENGTHS)


def encoded(lengths: tuple[int, ...]) -> Case:
    """Steps of 1000 µs in which a function encodes one text of each length after the other, 30 µs of the device each."""
    lines = [HEAD]
    for step in range(3):
        begin = 1000 * step
        lines += [f"main  {begin}  1000  ProfilerStep#{step}  annotation  -  -  -  -"]
        lines += [f"main  {begin + 2}  990  embed.py(7): encode  python  -  -  -  -"]
        for turn, length in enumerate(lengths):
            at = begin + 5 + 120 * turn
            lines += [f'main  {at}  4  aten::unsqueeze  op  -  [[{length},4096],[]]  float,Scalar  ["","0"]']
            lines += [f"main  {at + 6}  100  nn.Module: Encoder_0  python  -  -  -  -"]
            lines += [f"main  {at + 7}  98  embed.py(3): forward  python  -  -  -  -"]
            shapes = f"[[1,{length},4096],[4096,4096]]"
            lines += [f'main  {at + 8}  20  aten::linear  op  -  {shapes}  float,float  ["",""]']
            lines += [f"main  {at + 12}  10  cudaLaunchKernel  runtime  {GEMM}  -  -  -"]
            lines += [f"stream 7  {at + 40}  30  {GEMM}  kernel  -  -  -  -"]
    return case_of(compute_trace("\n".join(lines)))


@pytest.mark.parametrize(
    ("lengths", "share"),
    [(LENGTHS, 400 * len(LENGTHS) / sum(LENGTHS)), (ALIKE, 1.0)],
    ids=["several lengths", "alike"],
)
def test_a_batch_is_as_long_as_its_longest_sample(lengths: tuple[int, ...], share: float) -> None:
    case = encoded(lengths)
    loops = case.loops
    assert loops.found["passes"].to_list() == [True] * 3
    padded = padding_of(case.trace, loops)
    inside = loops.loop_of.is_not_null()
    assert padded.filter(inside).unique().to_list() == pytest.approx([share])
    assert padded.filter(~inside).unique().to_list() == [1.0]


def test_loops_of_other_work_are_not_padded() -> None:
    case = encoded(LENGTHS)
    none = Loops(case.loops.found.with_columns(passes=False), case.loops.loop_of)
    assert set(padding_of(case.trace, none)) == {1.0}


def test_padding_takes_of_the_promise() -> None:
    padded, alike = (unbatched_loop.find(encoded(lengths)) for lengths in (LENGTHS, ALIKE))
    assert padded is not None and alike is not None
    assert padded.evidence["iterations"] == alike.evidence["iterations"] == len(LENGTHS)
    assert padded.speedup.low < alike.speedup.low
    assert padded.speedup.high <= alike.speedup.high
