"""Loops whose turns need the one before are none to be batched."""

from __future__ import annotations

import pytest

from stepscope.analysis.host.loops import Loops, find_loops
from tests.builders.gpu_trace import gpu_trace
from tests.builders.jobs.bodies import BODIES, body

TURNS = 10
EVERY = 100
BATCH, INPUT, STATE = 64, 32, 128
Ops = list[tuple[str, str] | tuple[str, str, str]]
HEAD = {
    "rows": ["host | 0 | 2000 | annotation | ProfilerStep#1", "host | 1 | 1900 | python | net.py(8): forward"]
}


@pytest.fixture(params=BODIES, autouse=True)
def _body(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in all forms: with the loop in a function, in the step itself, and in an annotation."""
    monkeypatch.setitem(HEAD, "rows", body(request.param, *HEAD["rows"]))


PICK = ("aten::select", f"[[{BATCH},{TURNS},{INPUT}],[],[]]")
OF_INPUT = ("aten::mm", f"[[{BATCH},{INPUT}],[{INPUT},{STATE}]]")
OF_STATE = ("aten::mm", f"[[{BATCH},{STATE}],[{STATE},{STATE}]]")
JOINT = ("aten::cat", f"[[[{BATCH},{INPUT}],[{BATCH},{STATE}]],[]]")
OF_BOTH = ("aten::addmm", f"[[{STATE}],[{BATCH},{INPUT + STATE}],[{INPUT + STATE},{STATE}],[],[]]")
CELL: Ops = [PICK, OF_INPUT, OF_STATE, ("aten::tanh", f"[[{BATCH},{STATE}]]")]
FILLED = f"[[{BATCH},{STATE}]]"


def looped(
    turn: Ops,
    filled: str | None = FILLED,
    *,
    late: bool = False,
    module: bool = False,
    inner: str = "",
    inside: tuple[str, str] | None = None,
) -> Loops:
    """A function that fills a tensor with zeros, before or after a loop of such turns. `inside`: an op that the last one of a turn calls."""
    rows = list(HEAD["rows"])
    ops: dict[int, dict[str, object]] = {}

    def op(at: int, length: int, name: str, shapes: str, inputs: str = "[]") -> None:
        rows.append(f"host | {at} | {length} | op | {name}")
        ops[len(rows) - 1] = {"shapes": shapes, "concrete_inputs": inputs}

    def fill(at: int) -> None:
        if filled:
            op(at, 6, "aten::zeros", "[[],[],[],[],[]]")
            op(at + 2, 2, "aten::zero_", filled)

    if not late:
        fill(2)
    if inner:
        rows.append(inner)
    for begin in range(10, 10 + EVERY * TURNS, EVERY):
        for at, (name, *given) in enumerate(turn):
            if module and at == 1:
                rows.append(f"host | {begin + 18} | 70 | python | nn.Module: Cell_0")
                rows.append(f"host | {begin + 19} | 68 | python | cell.py(3): forward")
            op(begin + 5 + 15 * at, 10, name, *given)
            rows.append(f"host | {begin + 7 + 15 * at} | 4 | runtime | cudaLaunchKernel -> {len(rows) + 1}")
            rows.append(f"stream7 | {begin + 12 + 15 * at} | 2 | kernel | k")
        if inside is not None:
            op(begin + 6 + 15 * at, 1, *inside)
    if late:
        fill(1500)
    return find_loops(gpu_trace("\n".join(rows), ops=ops))


@pytest.mark.parametrize(
    ("turn", "filled"),
    [(CELL, FILLED), (CELL, f"[[2,{BATCH},{STATE}]]"), ([PICK, JOINT, OF_BOTH], FILLED)],
    ids=["two products", "a state for each layer", "one product"],
)
def test_a_cell_that_is_written_by_hand_is_no_loop_to_batch(turn: Ops, filled: str) -> None:
    loops = looped(turn, filled)
    assert loops.found.is_empty() and loops.loop_of.is_null().all()
    assert len(looped(turn, None).found) == 1


@pytest.mark.parametrize(
    ("turn", "filled", "late"),
    [
        (CELL, f"[[{TURNS},5]]", False),
        (CELL, FILLED, True),
        ([*CELL, ("aten::index_add_", f"[[{BATCH},{STATE}],[],[3],[3,{STATE}]]")], FILLED, False),
        ([("aten::select", f"[[{TURNS},{STATE},{STATE}],[],[]]"), OF_STATE], FILLED, False),
        ([*CELL, ("aten::lstm_cell", "[]")], FILLED, False),
        ([PICK, OF_INPUT, ("aten::add", f"[[{BATCH},{STATE}],[{BATCH},{STATE}]]")], FILLED, False),
    ],
    ids=["results", "filled later", "collected", "weights of their own", "a cell of PyTorch", "added up"],
)
def test_turns_that_may_run_at_once_are_a_loop(turn: Ops, filled: str, late: bool) -> None:
    assert len(looped(turn, filled, late=late).found) == 1


@pytest.mark.parametrize(("side", "count"), [("0", 1), ("1", 0), ("-2", 0)])
def test_weights_are_picked_on_their_first_side(side: str, count: int) -> None:
    """A batch of as many sequences as the state is wide has steps as large as the weights."""
    sizes = f"[[{TURNS},{STATE},{STATE}]" if side == "0" else f"[[{STATE},{TURNS},{STATE}]"
    step = ("aten::select", f"{sizes},[],[]]", f'["","{side}","3"]')
    assert len(looped([step, OF_STATE]).found) == count


def test_a_product_that_copies_its_bias_collects_nothing() -> None:
    """As addmm does on a CPU, where the result is as large as the state."""
    copied = ("aten::copy_", f"[[{BATCH},{STATE}],[{BATCH},{STATE}],[]]")
    assert looped([PICK, OF_STATE], inside=copied).found.is_empty()
    assert len(looped([PICK, OF_STATE, copied]).found) == 1


def test_one_sequence_row_by_row_is_no_set_of_samples() -> None:
    slices = ("aten::slice", f"[[{TURNS},{INPUT}],[],[],[],[]]")
    turn: Ops = [(name, given[0].replace(f"[{BATCH},", "[1,")) for name, *given in (slices, *CELL[1:])]
    assert looped(turn, f"[[{TURNS},{STATE}]]", module=True).found["passes"].to_list() == [True]
    assert looped(turn, f"[[1,{STATE}]]", module=True).found.is_empty()


def test_an_annotation_around_the_loop_alone_hides_no_state() -> None:
    """The function fills the state, and opens an annotation for the loop."""
    loops = looped(CELL, inner="host | 9 | 1800 | annotation | decode")
    assert loops.found.is_empty()
    assert looped(CELL, None, inner="host | 9 | 1800 | annotation | decode").found.height == 1
