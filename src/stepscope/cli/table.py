"""Rows as aligned text: as wide as the data in a pipe, no wider than the window in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import IO

from stepscope.safe import safe

GAP = "  "
NARROWEST = 6
NULL = "null"


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[object]], numeric: Sequence[bool], width: int | None = None
) -> Iterator[str]:
    """The lines of the table: names, a rule, rows. Numbers are right-aligned; `width` clips long texts with …"""
    cells = [[NULL if value is None else safe(value) for value in row] for row in rows]
    names = [safe(name) for name in header]
    widths = [max(cell_width(row[i]) for row in [names, *cells]) for i in range(len(names))]
    if width is not None:
        widths = _fitted(widths, numeric, width)
    yield _line(names, widths, numeric)
    yield GAP.join("─" * each for each in widths)
    for row in cells:
        yield _line(row, widths, numeric)


def cell_width(text: str) -> int:
    """The number of terminal columns that the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def terminal_width(stream: IO[str] | None = None) -> int | None:
    """The width of the window; None if the output is not a terminal."""
    import shutil

    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else None


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = [_padded(cell, width, right) for cell, width, right in zip(cells, widths, numeric, strict=True)]
    return GAP.join(parts).rstrip()


def _padded(cell: str, width: int, right: bool) -> str:
    if cell_width(cell) > width:
        cell = _clipped(cell, width)
    space = " " * (width - cell_width(cell))
    return space + cell if right else cell + space


def _clipped(cell: str, width: int) -> str:
    while cell and cell_width(cell) > width - 1:
        cell = cell[: width - 1] if cell.isascii() else cell[:-1]
    return cell + "…"


def _fitted(widths: list[int], numeric: Sequence[bool], width: int) -> list[int]:
    """Take the excess from the widest text columns, little by little; numbers are never clipped."""
    widths = list(widths)
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while excess > 0:
        candidates = [i for i in range(len(widths)) if not numeric[i] and widths[i] > NARROWEST]
        if not candidates:
            break
        widest = max(candidates, key=lambda i: widths[i])
        widths[widest] -= 1
        excess -= 1
    return widths
