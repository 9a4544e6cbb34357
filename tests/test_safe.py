"""What a terminal would obey is shown instead."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.cli.table import cell_width, text_table
from stepscope.safe import FORMULA_STARTS, readable, safe, safe_cell, safe_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("aten::mm", "aten::mm"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b1m", "\\x9b1m"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("héllo 日本 🚀", "héllo 日本 🚀"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_safe(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    assert not any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in safe(text))
    assert not any(unicodedata.category(sign) == "Cc" and sign not in "\n\t" for sign in safe_lines(text))


def test_a_table() -> None:
    lines = list(text_table(["name", "n"], [("a", 1), ("日本", 22), (None, None)], [False, True]))
    assert lines == ["name     n", "────  ────", "a        1", "日本    22", "null  null"]


@given(st.lists(st.tuples(st.text(max_size=60), st.integers(0, 10**9)), max_size=5), st.integers(20, 100))
def test_a_table_fits_the_window(rows: list[tuple[str, int]], width: int) -> None:
    lines = list(text_table(["some name", "n"], rows, [False, True], width))
    assert all(cell_width(line) <= width for line in lines)
    assert len({line.count("\n") for line in lines}) == 1


def test_names_of_files_that_are_no_utf_8() -> None:
    name = b"caf\xe9 \xf0\x9f\x94\xa5".decode("utf-8", "surrogateescape")
    assert readable(name) == safe(name) == "caf\\xe9 🔥"
    readable(name).encode()


@given(st.text())
def test_no_cell_is_a_formula(text: str) -> None:
    cell = safe_cell(text)
    assert not cell.startswith(tuple(FORMULA_STARTS))
    assert cell in (text, f"'{text}")
