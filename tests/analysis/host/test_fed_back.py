"""Loops whose turns are given what the one before has chosen are none to be batched."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stepscope.analysis.host.loops import Loops, find_loops
from tests.builders.gpu_trace import gpu_trace
from tests.builders.jobs.bodies import BODIES, body

TURNS, EVERY = 10, 100
Turn = Callable[[int], list[tuple[str, str]]]
HEAD = {
    "rows": [
        "host | 0 | 2000 | annotation | ProfilerStep#1",
        "host | 1 | 1900 | python | writer.py(8): write",
    ]
}


@pytest.fixture(params=BODIES, autouse=True)
def _body(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in all forms: with the loop in a function, in the step itself, and in an annotation."""
    monkeypatch.setitem(HEAD, "rows", body(request.param, *HEAD["rows"]))


def looped(turn: Turn) -> Loops:
    """A function on a CPU that loops over such turns."""
    rows = list(HEAD["rows"])
    ops: dict[int, dict[str, object]] = {}
    for number in range(TURNS):
        for at, (name, shapes) in enumerate(turn(number)):
            rows.append(f"host | {10 + EVERY * number + 12 * at} | 10 | op | aten::{name}")
            ops[len(rows) - 1] = {"shapes": shapes}
    return find_loops(gpu_trace("\n".join(rows), ops=ops), on_host=True)


def whole_text(number: int) -> list[tuple[str, str]]:
    text = f"[2,{20 + number}]"
    return [
        ("embedding", f"[[500,64],{text}]"),
        ("linear", f"[[2,{20 + number},64],[500,64]]"),
        ("argmax", "[[2,500],[],[]]"),
        ("cat", f"[[{text},[2,1]],[]]"),
    ]


def keys(number: int) -> list[tuple[str, str]]:
    kept = f"[2,4,{20 + number},16]"
    return [
        ("select", "[[10,2],[],[]]"),
        ("linear", "[[2,1,64],[64,64]]"),
        ("cat", f"[[{kept},[2,4,1,16]],[]]"),
        ("scaled_dot_product_attention", f"[[2,4,1,16],[2,4,{21 + number},16],[2,4,{21 + number},16]]"),
    ]


def text_in_python(number: int) -> list[tuple[str, str]]:
    return [
        ("lift_fresh", "[[1,5]]"),
        ("embedding", f"[[500,64],[1,{20 + number}]]"),
        ("softmax", "[[1,500]]"),
    ]


def chosen(number: int) -> list[tuple[str, str]]:
    return [
        ("embedding", "[[500,64],[2,1]]"),
        ("linear", "[[2,1,64],[500,64]]"),
        ("argmax", "[[2,500],[],[]]"),
        ("unsqueeze", "[[2],[]]"),
    ]


def collected(number: int) -> list[tuple[str, str]]:
    return [
        ("select", "[[10,2,64],[],[]]"),
        ("linear", "[[2,64],[5,64]]"),
        ("cat", f"[[[{2 * number + 2},5],[2,5]],[]]"),
    ]


def users(number: int) -> list[tuple[str, str]]:
    return [("select", "[[10],[],[]]"), ("embedding", "[[500,64],[1]]"), ("argmax", "[[1,500],[],[]]")]


def texts_of_other_lengths(number: int) -> list[tuple[str, str]]:
    return [("embedding", f"[[500,64],[1,{20 + number * number % 7}]]"), ("softmax", "[[1,500]]")]


def farthest(number: int) -> list[tuple[str, str]]:
    """As recorded: an index has no shape."""
    return [
        ("index", "[[8,256,3],[]]"),
        ("view", "[[8,3],[]]"),
        ("sub", "[[8,256,3],[8,1,3],[]]"),
        ("minimum", "[[8,256],[8,256]]"),
        ("max", "[[8,256],[],[]]"),
        ("select", "[[8,32],[],[]]"),
        ("copy_", "[[8],[8],[]]"),
    ]


def gathered(number: int) -> list[tuple[str, str]]:
    return [("gather", "[[8,256,3],[],[8,1,3],[]]"), *farthest(0)[2:4], ("argmax", "[[8,256],[],[]]")]


def chosen_and_picked(number: int) -> list[tuple[str, str]]:
    return [("argmax", "[[8,256],[],[]]"), ("index", "[[8,256,3],[]]"), ("sum", "[[8,3],[]]")]


def picked_from_a_list(number: int) -> list[tuple[str, str]]:
    """Other rows than the turn before has chosen: there are more of them."""
    return [("index", "[[8,256,3],[]]"), ("sub", "[[40,3],[3],[]]"), ("max", "[[2,40],[],[]]")]


@pytest.mark.parametrize("turn", [whole_text, keys, text_in_python, chosen, farthest, gathered])
def test_text_that_is_written_token_by_token_is_no_loop_to_batch(turn: Turn) -> None:
    loops = looped(turn)
    assert loops.found.is_empty() and loops.loop_of.is_null().all()


@pytest.mark.parametrize(
    "turn", [collected, users, texts_of_other_lengths, chosen_and_picked, picked_from_a_list]
)
def test_turns_that_may_run_at_once_are_a_loop(turn: Turn) -> None:
    assert len(looped(turn).found) == 1
