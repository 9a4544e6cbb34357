"""Passes of one model for many inputs: which of them could be one call."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.host.loops import Loops, find_loops
from stepscope.trace.trace import Trace
from tests.builders.gpu_trace import gpu_trace
from tests.builders.jobs.bodies import BODIES, body

TURNS = 10
EVERY = 100
HEAD = {
    "rows": ["host | 0 | 2000 | annotation | ProfilerStep#1", "host | 1 | 1900 | python | play.py(8): act"]
}


@pytest.fixture(params=BODIES, autouse=True)
def _body(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in all forms: with the loop in a function, in the step itself, and in an annotation."""
    monkeypatch.setitem(HEAD, "rows", body(request.param, *HEAD["rows"]))


def looped(
    *,
    sent: int = 192,
    back: int | None = None,
    first: str = "aten::linear",
    shape: str = "[[1, 48], [64, 48]]",
    beside: str | None = None,
    copied: bool = True,
) -> tuple[Trace, Loops]:
    """A function that copies an input, calls a model and perhaps reads its result, turn by turn."""
    rows, ops, copies = list(HEAD["rows"]), {}, {}

    def add(row: str) -> int:
        rows.append(row)
        return len(rows) - 1

    def copy(at: int, direction: str, size: int) -> None:
        call = add(f"host | {at} | 4 | runtime | cudaMemcpyAsync -> {len(rows) + 1}")
        copies[call + 1] = {"direction": direction, "bytes": size}
        add(f"stream7 | {at + 6} | 1 | copy | Memcpy {direction}")

    for at in range(10, 10 + EVERY * TURNS, EVERY):
        if copied:
            copy(at, "HtoD", sent)
        add(f"host | {at + 10} | 40 | python | nn.Module: Policy_0")
        add(f"host | {at + 12} | 36 | python | play.py(3): forward")
        add(f"host | {at + 14} | 20 | python | nn.Module: Linear_0")
        ops[add(f"host | {at + 16} | 10 | op | {first}")] = {"shapes": shape}
        add(f"host | {at + 18} | 4 | runtime | cudaLaunchKernel -> {len(rows) + 1}")
        add(f"stream7 | {at + 24} | 2 | kernel | gemm")
        if back is not None:
            copy(at + 60, "DtoH", back)
        if beside:
            add(f"host | {at + 75} | 10 | python | {beside}")
    trace = gpu_trace("\n".join(rows), ops=ops, copies=copies)
    return trace, find_loops(trace)


def has_passes(loops: Loops) -> bool:
    """Whether a loop of passes was found."""
    return bool(loops.found["passes"].any())


@pytest.mark.parametrize(
    "turn",
    [
        {},
        {"back": 8},
        {"beside": "play.py(30): load"},
        {"first": "aten::embedding"},
        {"back": 8, "beside": "play.py(30): load_image"},
        {"back": 8, "beside": "torchvision/transforms/transforms.py(95): __call__"},
        {"back": 8, "beside": "PIL/Image.py(3400): open"},
    ],
    ids=[
        "nothing is read",
        "an action is read",
        "the next input is loaded",
        "texts are embedded",
        "classes of pictures are read",
        "pictures are transformed",
        "pictures are opened",
    ],
)
def test_passes_for_one_input_after_the_other_are_a_loop(turn: dict[str, int | str]) -> None:
    trace, loops = looped(**turn)  # type: ignore[arg-type]
    assert has_passes(loops)
    assert loops.found["iterations"].to_list() == [float(TURNS)]
    linear = trace.events["id"].filter(trace.events["name"].cast(pl.String) == "nn.Module: Linear_0")
    assert loops.loop_of.gather(linear).is_not_null().all()


@pytest.mark.parametrize(
    "turn",
    [
        {"copied": False},
        {"shape": "[[32, 48], [64, 48]]"},
        {"back": 192},
        {"back": 8, "beside": "play.py(30): step"},
        {"back": 8, "beside": "play.py(30): next_frame"},
        {"back": 8, "beside": "gymnasium/wrappers/common.py(90): step"},
        {"back": 8, "first": "aten::embedding"},
        {"beside": "<built-in method run_backward of Engine>"},
    ],
    ids=[
        "from the device",
        "a batch",
        "it may come back",
        "one environment",
        "one video",
        "a library's environment",
        "a token",
        "training",
    ],
)
def test_passes_that_may_need_the_one_before_are_none(turn: dict[str, int | str]) -> None:
    """So are those of whole batches, which fill a device, and those that add up gradients."""
    assert not has_passes(looped(**turn)[1])  # type: ignore[arg-type]
