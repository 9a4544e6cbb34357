"""Loops over slices of one tensor: what batches them takes no slices, and so makes no gradients of whole tensors."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.host import unbatched_loop
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes  inputs  sequence"
ENGINE = "autograd::engine::evaluate_function:"
TURNS, WHOLE = 16, "[64,16,4096]"
LONG_US = 60  # an op of a CPU that computes


def op(track: str, at: int, length: int, name: str, shapes: str, sequence: object = "-") -> list[str]:
    return [f"{track}  {at}  {length}  {name}  op  -  {shapes}  float  -  {sequence}"]


def launch(track: str, at: int, kernel: str, begin: int) -> list[str]:
    return [
        f"{track}  {at}  4  cudaLaunchKernel  runtime  {kernel}  -  -  -  -",
        f"stream 7  {begin}  20  {kernel}  kernel  -  -  -  -  -",
    ]


def node(track: str, at: int, turn: int, place: int, us: int) -> list[str]:
    """The gradient of one slice, which fills a whole tensor and adds it; each takes so long."""
    inputs = f'["","{WHOLE}","1","{place}"]'
    found = op(track, at, 2 * us + 8, f"{ENGINE} SelectBackward0", "[[64,4096]]", turn)
    found += [f"{track}  {at + 1}  {us + 4}  aten::select_backward  op  -  [[64,4096]]  float  {inputs}  -"]
    found += op(track, at + 2, us, "aten::zero_", f"[{WHOLE}]")
    if turn < TURNS:
        found += op(track, at + us + 6, us, "aten::add_", f"[{WHOLE},{WHOLE},[]]")
    return found


def looped(places: list[int], on_device: bool) -> Case:
    """Steps with a loop over slices, and its backward pass, which is on the same thread on a CPU."""
    lines = [HEAD]
    us = 30 if on_device else LONG_US
    length = 850 + TURNS * (2 * us + 10)
    for step in range(3):
        begin = length * step
        lines += [f"main  {begin}  {length}  ProfilerStep#{step}  annotation  -  -  -  -  -"]
        lines += [f"main  {begin + 2}  800  net.py(7): forward  python  -  -  -  -  -"]
        for turn in range(1, TURNS + 1):
            at = begin + 5 + 48 * turn - 48
            lines += op("main", at, 40, "aten::mul", "[[64,4096],[64,4096]]", turn)
            lines += launch("main", at + 2, "mul", at + 8) if on_device else []
            track = "autograd" if on_device else "main"
            back = begin + 850 + (2 * us + 10) * (TURNS - turn)
            lines += node(track, back, turn, places[turn - 1], us)
            if on_device:
                lines += launch(track, back + 3, "Fill", back + 20)
                lines += launch(track, back + us + 7, "Add", back + us + 15) if turn < TURNS else []
    return case_of(compute_trace("\n".join(lines), device=None if on_device else {}))


@pytest.mark.parametrize("on_device", [True, False])
def test_gradients_of_slices_go_with_the_loop(on_device: bool) -> None:
    slices, others = (
        unbatched_loop.find(looped(places, on_device)) for places in (list(range(TURNS)), [0] * TURNS)
    )
    assert slices is not None
    assert others is not None
    assert slices.evidence["iterations"] == TURNS
    assert slices.speedup.low > 1.2 * others.speedup.low
