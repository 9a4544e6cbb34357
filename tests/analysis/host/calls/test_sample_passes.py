"""Passes of one model for the samples of a list, each as a batch of one: which of them could be one padded batch."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.host.loops import Loops, find_loops
from tests.builders.gpu_trace import gpu_trace
from tests.builders.jobs.bodies import BODIES, body

EVERY = 100
LENGTHS = (40, 52, 38, 64, 41, 57, 60, 44, 63, 39)  # of texts in no order
ALIKE = (64,) * len(LENGTHS)
WRITTEN = tuple(range(40, 50))
HEAD = {
    "rows": ["host | 0 | 2000 | annotation | ProfilerStep#1", "host | 1 | 1900 | python | embed.py(8): step"]
}


@pytest.fixture(params=BODIES, autouse=True)
def _body(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in all forms: with the loop in a function, in the step itself, and in an annotation."""
    monkeypatch.setitem(HEAD, "rows", body(request.param, *HEAD["rows"]))


class _Table:
    def __init__(self) -> None:
        self.rows, self.ops, self.copies = list(HEAD["rows"]), dict[int, Any](), dict[int, Any]()

    def add(self, row: str) -> int:
        self.rows.append(row)
        return len(self.rows) - 1

    def op(self, at: int, length: int, name: str, shapes: str) -> None:
        self.ops[self.add(f"host | {at} | {length} | op | {name}")] = {"shapes": shapes}

    def copy(self, at: int, direction: str, size: int) -> None:
        call = self.add(f"host | {at} | 2 | runtime | cudaMemcpyAsync -> {len(self.rows) + 1}")
        self.copies[call + 1] = {"direction": direction, "bytes": size}
        self.add(f"stream7 | {at + 3} | 1 | copy | Memcpy {direction}")

    def loops(self) -> Loops:
        return find_loops(gpu_trace("\n".join(self.rows), ops=self.ops, copies=self.copies))


def looped(
    lengths: tuple[int, ...] = LENGTHS,
    *,
    made: str | None = "aten::unsqueeze",
    sample: str = "[{length}]",
    first: str = "aten::embedding",
    given: str = "[[500, 32], [1, {length}]]",
    inner: tuple[str, ...] = ("aten::linear",),
    late: str | None = None,
    beside: tuple[tuple[str, str], ...] = (),
    calls: str | None = None,
    sent: bool = False,
    back: bool = False,
    helper: str | None = None,
    other: bool = False,
    behind: str | None = None,
) -> Loops:
    """A function that calls a model with one sample of each length; `late`: an op in all passes but the first."""
    table = _Table()
    for turn, length in enumerate(lengths):
        at = 10 + EVERY * turn
        if sent:
            table.copy(at, "HtoD", 8 * length)
        if helper:
            table.add(f"host | {at + 4} | 58 | python | {helper}")
        if made:
            table.op(at + 5, 2, made, f"[{sample.format(length=length)}, []]")
        table.add(f"host | {at + 10} | 40 | python | nn.Module: Encoder_{turn if other else 0}")
        table.add(f"host | {at + 11} | 38 | python | embed.py(3): forward")
        table.op(at + 12, 12, first, given.format(length=length))
        table.add(f"host | {at + 14} | 4 | runtime | cudaLaunchKernel -> {len(table.rows) + 1}")
        table.add(f"stream7 | {at + 24} | 2 | kernel | gemm")
        for number, name in enumerate((*inner, *((late,) if late and turn else ()))):
            table.op(at + 26 + 3 * number, 2, name, f"[[1, {length}, 32], [32, 32]]")
        for number, (name, shapes) in enumerate(beside):
            table.op(at + 52 + 3 * number, 2, name, shapes.format(length=length))
        if back:
            table.copy(at + 70, "DtoH", 128)
        if calls:
            table.add(f"host | {at + 80} | 10 | python | {calls}")
    if behind:
        table.add(f"host | {20 + EVERY * len(lengths)} | 20 | {behind}")
    return table.loops()


def has_passes(loops: Loops) -> bool:
    """Whether a loop of passes was found."""
    return bool(loops.found["passes"].any())


IMAGES = {
    "sample": "[3, 64, {length}]",
    "first": "aten::conv2d",
    "given": "[[1, 3, 64, {length}], [8, 3, 3, 3]]",
}
BACKWARD = "python | <built-in method run_backward of Engine>"
POOLED = (("aten::mean", "[[1, {length}, 32], [], []]"), ("aten::select", "[[1, 32], [], []]"))
HELPER = "embed.py(20): encode_one"


@pytest.mark.parametrize(
    "turn",
    [
        {},
        {"made": None},
        {"lengths": tuple(sorted(LENGTHS))},
        {"lengths": ALIKE},
        {"lengths": ALIKE, "made": "aten::view"},
        {"beside": POOLED},
        {"lengths": ALIKE, "beside": POOLED},
        {"lengths": ALIKE, "back": True},
        {"made": None, "sent": True, "back": True},
        {"calls": "embed.py(30): pool"},
        {"lengths": ALIKE, **IMAGES},
        IMAGES,
        {"helper": HELPER},
        {"lengths": ALIKE, "helper": HELPER},
        {"beside": (("aten::cross_entropy_loss", "[[1, 9], [1], [], [], [], []]"),)},
        {"behind": BACKWARD},
        {"behind": "op | aten::cat"},
    ],
    ids=[
        "texts",
        "texts that are batches of one",
        "texts by length",
        "alike",
        "as a view",
        "pooled",
        "alike and pooled",
        "read",
        "sent and read",
        "pooled by a function",
        "images",
        "images of several sizes",
        "helper",
        "helper with alike texts",
        "a loss of each",
        "one backward pass behind all",
        "results are joined",
    ],
)
def test_passes_for_the_samples_of_a_list_are_a_loop(turn: dict[str, Any]) -> None:
    loops = looped(**turn)
    assert has_passes(loops)
    assert loops.found.filter("passes")["iterations"].to_list() == [float(len(LENGTHS))]


CHOSEN = (("aten::argmax", "[[1, {length}, 500], [], []]"),)
JOINED = (("aten::cat", "[[[1, {length}], [1, 1]], []]"),)
SQUEEZED = (("aten::squeeze", "[[1, 3, 64, {length}], []]"),)


@pytest.mark.parametrize(
    "turn",
    [
        {"lengths": WRITTEN, "made": None},
        {"lengths": (50, *range(40, 46), 30, 31, 32), "made": None},
        {"lengths": (1,) * 10},
        {"beside": CHOSEN},
        {"beside": JOINED},
        {"lengths": ALIKE, "made": None},
        {"lengths": (64, 32, 16, 8, 4, 8, 16, 32, 64, 80), "made": None},
        {"lengths": ALIKE, **IMAGES, "beside": SQUEEZED},
        {
            "lengths": ALIKE,
            **IMAGES,
            "beside": (("aten::sub", "[[3, 64, {length}], [3, 64, {length}], []]"),),
        },
        {"lengths": ALIKE, "calls": "play.py(30): simulate"},
        {"lengths": ALIKE, "sent": True, "back": True},
        {"sent": True, "back": True, "calls": "play.py(30): search"},
        {"inner": ("aten::_cudnn_rnn",)},
        {"inner": ("aten::sigmoid", "aten::tanh")},
        {"late": "aten::add"},
        {"first": "aten::linear", "given": "[[1, 32], [32, 32]]", "sample": "[32]", "lengths": ALIKE},
        {"given": "[[500, 32], [2, {length}]]"},
        {"other": True},
        {"calls": "<built-in method run_backward of Engine>"},
        {"calls": "Optimizer.step#AdamW.step"},
        {"lengths": LENGTHS[:7]},
    ],
    ids=[
        "a text that is written",
        "texts that are written",
        "token by token",
        "a token is chosen",
        "a token is joined",
        "what returns may be given",
        "levels of a pyramid",
        "a sampler",
        "an update of the sample",
        "a simulator",
        "sent and read, alike",
        "a search",
        "a recurrent network",
        "a cell by hand",
        "a state that begins with none",
        "time steps",
        "batches",
        "other modules",
        "micro-batches",
        "updates",
        "few",
    ],
)
def test_passes_that_may_need_the_one_before_are_none(turn: dict[str, Any]) -> None:
    assert not has_passes(looped(**turn))
