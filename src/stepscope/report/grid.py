"""Cells as aligned lines: figures keep their width, and texts share what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

GAP = 2
INDENT = 2
NARROWEST = 8


def lines(
    rows: Sequence[Sequence[Text]], right: Sequence[bool], flexible: Sequence[bool], width: int
) -> Iterator[Text]:
    """The rows; `right` says which columns stand to the right, `flexible` which may be clipped to fit the width."""
    if not rows:
        return
    widths = [max(row[i].cell_len for row in rows) for i in range(len(right))]
    widths = _fitted(widths, flexible, width - INDENT - GAP * (len(widths) - 1))
    for row in rows:
        line = Text(" " * INDENT)
        for cell, space, to_right in zip(row, widths, right, strict=True):
            line.append_text(_padded(cell, space, to_right)).append(" " * GAP)
        line.rstrip()
        yield line


def _padded(cell: Text, width: int, to_right: bool) -> Text:
    padded = cell.copy()
    padded.truncate(width, overflow="ellipsis")
    space = width - padded.cell_len
    if to_right:
        padded.pad_left(space)
    else:
        padded.pad_right(space)
    return padded


def _fitted(widths: list[int], flexible: Sequence[bool], room: int) -> list[int]:
    """Takes the excess from the widest of the flexible columns, down to a width that can still be read."""
    widths = list(widths)
    able = [i for i, is_flexible in enumerate(flexible) if is_flexible]
    while sum(widths) > room:
        wide = [i for i in able if widths[i] > NARROWEST]
        if not wide:
            break
        widths[max(wide, key=lambda i: widths[i])] -= 1
    return widths
