"""Bytes of a file as a column of text. Whatever is not UTF-8 costs the bytes in question and nothing else."""

from __future__ import annotations

import polars as pl

# Polars refuses a whole column for one bad byte: only pieces that it refuses are looked at row by row.
_PIECE = 4096


def as_text(raw: pl.Series) -> tuple[pl.Series, int]:
    """The column of byte strings as text, bad bytes as �; and how many of the strings had any."""
    try:
        return raw.cast(pl.String), 0
    except pl.exceptions.PolarsError:
        pass
    pieces, broken = [], 0
    for start in range(0, len(raw), _PIECE):
        piece, bad = _piece_as_text(raw[start : start + _PIECE])
        pieces.append(piece)
        broken += bad
    return pl.concat(pieces), broken


def _piece_as_text(raw: pl.Series) -> tuple[pl.Series, int]:
    try:
        return raw.cast(pl.String), 0
    except pl.exceptions.PolarsError:
        pass
    texts = [None if text is None else text.decode(errors="replace") for text in raw]
    broken = sum(text is not None and text.encode() != each for text, each in zip(texts, raw, strict=True))
    return pl.Series(raw.name, texts, dtype=pl.String), broken
