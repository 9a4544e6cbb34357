"""Texts that PyTorch computes again on a CPU for each new token."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.useless import recomputed_prefix
from stepscope.analysis.serving.workload import INFERENCE, TRAINING
from tests.analysis.findings.rules.host_training import Call, case_of_calls

PROMPT, TURNS, BATCH = 40, 8, 2


def turn(tokens: int, name: str = "aten::linear") -> list[Call]:
    text = f"[{BATCH},{tokens},64]"
    weights = "[[64,64],[64,64],[64],[64]]"
    shapes = f"[{text},[[1,{BATCH},64]],{weights},[],[]]" if name == "aten::gru" else f"[{text},[64,64],[64]]"
    return [Call(name, 100, shapes), Call("aten::argmax", 5, f"[[{BATCH},64],[],[]]")]


def texts(lengths: list[int], workload: str = INFERENCE, name: str = "aten::linear") -> Case:
    calls = [call for tokens in lengths for call in turn(tokens, name)]
    return replace(case_of_calls(*calls), workload=workload)


GROWING = [PROMPT + place for place in range(TURNS)]


@pytest.mark.parametrize("name", ["aten::linear", "aten::gru"])
def test_turns_but_those_over_a_prompt_are_over_the_new_token(name: str) -> None:
    found = recomputed_prefix.find(texts(GROWING, name=name))
    assert found is not None
    assert found.evidence["tokens"] == pytest.approx(PROMPT + TURNS / 2, abs=1)
    # Seven turns of eight nearly go: 700 of 1000 µs, at worst 30 µs of each stay, and a third of a recurrent layer.
    assert 1.5 < found.speedup.low < 1 / (0.3 + 0.7 * 0.3) < found.speedup.mid < 1 / 0.3
    assert found.share == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize(
    ("lengths", "workload"),
    [
        ([PROMPT, *[1] * 7], INFERENCE),
        ([PROMPT] * 8, INFERENCE),
        ([40, 12, 90, 33, 64, 20, 71, 55], INFERENCE),
        ([1, 2, 3, 4, 5, 6, 7, 8], INFERENCE),
        (GROWING, TRAINING),
    ],
    ids=["a cache", "one length", "other texts", "few tokens", "training"],
)
def test_other_loops_compute_no_prefix_again(lengths: list[int], workload: str) -> None:
    assert recomputed_prefix.find(texts(lengths, workload)) is None


def test_what_a_turn_does_beside_all_tokens_stays() -> None:
    """Most of the time of products is in those of one token."""
    calls = [
        call
        for tokens in GROWING
        for call in (*turn(tokens), Call("aten::linear", 120, "[[2,1,64],[9000,64]]"))
    ]
    assert recomputed_prefix.find(replace(case_of_calls(*calls[:12]), workload=INFERENCE)) is None


def padded(places: list[int], axis: int = 1) -> Case:
    """Turns over all positions, of which one is read."""
    products = Call("aten::linear", 110, "[[2,64,32],[500,32],[500]]")
    calls = [
        call
        for place in places
        for call in (products, Call("aten::select", 2, "[[2,64,500],[],[]]", f'["","{axis}","{place}"]'))
    ]
    return replace(case_of_calls(*calls), workload=INFERENCE)


def test_a_text_that_is_padded_to_one_length() -> None:
    found = recomputed_prefix.find(padded(list(range(30, 38))))
    assert found is not None
    assert found.evidence["tokens"] == 64
    assert found.share == pytest.approx(0.77, abs=0.01)
    assert recomputed_prefix.find(padded([63] * 8)) is None
    assert recomputed_prefix.find(padded([3, 9, 1, 30, 5, 22, 4, 11])) is None
    assert recomputed_prefix.find(padded(list(range(30, 38)), axis=2)) is None
