"""Attention that a compiled program runs as products and fusions: known by the shapes of its instructions."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.rules.kernels.unfused_attention import (
    _causal_sizes,
    _score_sizes,
    _stacks,
    _touching,
)
from stepscope.trace.schema import Text

SCORES = 48 * 4096 * 4096
MADE = ("dot_general", "[[48,4096,64],[48,64,4096]]")
TAKEN = ("dot_general", "[[48,64,4096],[48,4096,4096]]")


def ops(*rows: tuple[str, str]) -> pl.DataFrame:
    """Ops of a program with their shapes."""
    return pl.DataFrame(rows, schema={"name": Text, "shapes": Text}, orient="row")


@pytest.mark.parametrize("name", ["convert_element_type", "select_n", "fusion"])
def test_a_softmax_may_have_any_name(name: str) -> None:
    """XLA fuses mask, softmax and cast, and names the fusion after the last of them."""
    found = ops(MADE, (name, "[[48,4096,4096],[4096,4096]]"), TAKEN)
    assert _score_sizes(found) == {SCORES}
    assert _causal_sizes(found, {SCORES}) == {SCORES}


def test_without_a_mask_all_of_the_scores_count() -> None:
    found = ops(MADE, ("div", "[[48,4096,4096]]"), TAKEN)
    assert _score_sizes(found) == {SCORES}
    assert _causal_sizes(found, {SCORES}) == set()


@pytest.mark.parametrize(
    "rows",
    [
        # A table of neighbours is an input: no product makes it.
        [("mul", "[[48,4096,4096]]"), ("dot_general", "[[48,4096,4096],[48,4096,64]]")],
        # Two layers with an activation between them: no batch of tables.
        [("dot_general", "[[4096,64],[64,4096]]"), ("mul", "[[4096,4096]]"), ("dot_general", "[[4096,4096],[4096,64]]")],
        # Experts: a batch of products, but no squares.
        [("dot_general", "[[8,512,64],[8,64,256]]"), ("mul", "[[8,512,256]]"), ("dot_general", "[[8,512,256],[8,256,64]]")],
    ],
)  # fmt: skip
def test_what_is_no_attention(rows: list[tuple[str, str]]) -> None:
    assert _score_sizes(ops(*rows)) == set()


def test_a_loop_over_layers_keeps_their_scores_in_a_stack() -> None:
    """What reads the stack alone, for the backward pass, touches the scores as well; another square of its size does not."""
    texts = pl.Series(["[[6,48,4096,4096],[]]", "[[6,12,4096,4096],[]]", "[[48,64]]"])
    stacks = _stacks(texts, {SCORES})
    assert stacks == {6 * SCORES}
    assert _touching(texts, {SCORES} | stacks).to_list() == ["[[6,48,4096,4096],[]]"]
