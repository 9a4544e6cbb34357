"""Bytes as text: one that is none costs itself."""

from __future__ import annotations

import polars as pl

from stepscope.trace.safe_texts import _PIECE, as_text


def test_good_bytes_are_text() -> None:
    found, broken = as_text(pl.Series("t", [b"a", None, "é".encode()], dtype=pl.Binary))
    assert (found.to_list(), broken) == (["a", None, "é"], 0)


def test_a_bad_byte_costs_itself() -> None:
    raw = [b"x"] * (2 * _PIECE) + [b"a\xffb", None, b"c"]
    found, broken = as_text(pl.Series("t", raw, dtype=pl.Binary))
    assert (found.name, len(found), broken) == ("t", len(raw), 1)
    assert found[-3:].to_list() == ["a\ufffdb", None, "c"]
    assert found[:5].to_list() == ["x"] * 5
