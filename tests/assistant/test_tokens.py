"""Text within a budget."""

from __future__ import annotations

from stepscope.assistant.tokens import Block, count_tokens, fit_blocks


def test_a_token_is_four_bytes() -> None:
    assert [count_tokens(text) for text in ("", "a", "four", "fives", "µµ")] == [0, 1, 1, 2, 1]


def test_what_matters_most_of_each_block_comes_before_the_rest_of_any() -> None:
    blocks = [Block("first", ["a" * 40] * 10, 1), Block("second", ["b" * 40] * 10, 1)]
    text = fit_blocks(blocks, 60)
    assert count_tokens(text) <= 60
    assert text.count("b" * 40) == 1
    assert text.count("a" * 40) > 1


def test_each_list_ends_with_the_count_of_what_is_left() -> None:
    assert fit_blocks([Block("list", ["one", "two"], 1, left=3)], 100) == "list\none\ntwo\n… 3 more\n"
    assert fit_blocks([Block("list", ["one", "x" * 400], 1, left=3)], 20) == "list\none\n… 4 more\n"


def test_an_empty_block_is_not_there() -> None:
    assert fit_blocks([Block("none", []), Block("", ["here"])], 100) == "here\n"


def test_lists_of_which_nothing_fits_are_counted() -> None:
    blocks = [
        Block("", ["verdict"]),
        Block("ops, over all steps", ["x" * 400] * 2, left=5),
        Block("steps", ["7"]),
    ]
    assert fit_blocks(blocks, 30) == "verdict\nsteps\n7\n… left out: ops (7)\n"
    full = fit_blocks([Block("", ["a" * 60]), Block("long", ["b" * 52], 1), Block("ops", ["c" * 80])], 34)
    assert count_tokens(full) <= 34
    assert full.endswith("… left out: long (1), ops (1)\n")
