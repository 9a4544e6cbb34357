"""Passes of one model for the rows of one tensor, or parts of it: which of them could be one call."""

from __future__ import annotations

import pytest

from stepscope.analysis.host.loops import Loops, find_loops
from tests.builders.gpu_trace import gpu_trace
from tests.builders.jobs.bodies import BODIES, body

TURNS = 10
EVERY = 100
BACKWARD = "python | <built-in method run_backward of Engine>"
UPDATE = "annotation | Optimizer.step#AdamW.step"
HEAD = {
    "rows": ["host | 0 | 2000 | annotation | ProfilerStep#1", "host | 1 | 1900 | python | fit.py(8): step"]
}


@pytest.fixture(params=BODIES, autouse=True)
def _body(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in all forms: with the loop in a function, in the step itself, and in an annotation."""
    monkeypatch.setitem(HEAD, "rows", body(request.param, *HEAD["rows"]))


def looped(
    *,
    cut: str = "aten::select",
    whole: str = "[[10, 64, 48]]",
    at_once: bool = False,
    first: str = "aten::linear",
    given: str = "[[1, 64, 48], [32, 48]]",
    inner: str = "aten::relu",
    beside: str | None = None,
) -> Loops:
    """A function that cuts a tensor, and calls a model with each piece."""
    rows, ops = list(HEAD["rows"]), {}

    def op(at: int, length: int, name: str, shapes: str) -> None:
        rows.append(f"host | {at} | {length} | op | {name}")
        ops[len(rows) - 1] = {"shapes": shapes}

    if at_once:
        op(3, 4, cut, whole)
    for at in range(10, 10 + EVERY * TURNS, EVERY):
        if not at_once:
            op(at, 4, cut, whole)
        rows.append(f"host | {at + 10} | 40 | python | nn.Module: Net_0")
        rows.append(f"host | {at + 12} | 36 | python | net.py(3): forward")
        rows.append(f"host | {at + 14} | 20 | python | nn.Module: Linear_0")
        op(at + 16, 10, first, given)
        rows.append(f"host | {at + 18} | 4 | runtime | cudaLaunchKernel -> {len(rows) + 1}")
        rows.append(f"stream7 | {at + 24} | 2 | kernel | gemm")
        op(at + 36, 2, inner, "[[1, 64, 48]]")
        if beside:
            rows.append(f"host | {at + 70} | 20 | {beside}")
    return find_loops(gpu_trace("\n".join(rows), ops=ops))


def has_passes(loops: Loops) -> bool:
    """Whether a loop of passes was found."""
    return bool(loops.found["passes"].any())


SPLIT = {"cut": "aten::split", "at_once": True, "whole": "[[40, 64, 48]]", "given": "[[4, 64, 48], [32, 48]]"}


@pytest.mark.parametrize(
    "turn",
    [
        {},
        {"cut": "aten::unbind", "at_once": True},
        SPLIT,
        {**SPLIT, "whole": "[[39, 64, 48]]"},
        {**SPLIT, "cut": "aten::slice", "at_once": False},
        {"first": "aten::embedding", "given": "[[5000, 32], [1, 64]]", "whole": "[[10, 64]]"},
        {"beside": BACKWARD},
    ],
    ids=["rows", "for row in", "parts", "a smaller last part", "slices", "texts", "gradients that add up"],
)
def test_passes_for_the_pieces_of_a_tensor_are_a_loop(turn: dict[str, object]) -> None:
    loops = looped(**turn)  # type: ignore[arg-type]
    assert has_passes(loops)
    assert loops.found["iterations"].to_list() == [float(TURNS)]


@pytest.mark.parametrize(
    "turn",
    [
        {"beside": UPDATE},
        {"inner": "aten::_cudnn_rnn"},
        {"inner": "aten::gru_cell"},
        {"cut": "aten::add"},
        {"whole": "[[9, 64, 48]]"},
        {"whole": "[[1, 10, 64, 48]]"},
        {"whole": "[[1000]]", "given": "[[1, 64, 48], [32, 48]]"},
        {"whole": "[[10, 32, 48]]", "given": "[[32, 48], [32, 48]]"},
        {
            "cut": "aten::split",
            "at_once": True,
            "whole": "[[10, 64, 48]]",
            "given": "[[4, 64, 48], [32, 48]]",
        },
    ],
    ids=[
        "updates",
        "a state",
        "a cell",
        "nothing is cut",
        "too few",
        "another side",
        "times",
        "time steps",
        "too large",
    ],
)
def test_passes_that_may_need_the_one_before_or_take_other_things_are_none(turn: dict[str, object]) -> None:
    assert not has_passes(looped(**turn))  # type: ignore[arg-type]
