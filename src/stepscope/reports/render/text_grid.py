"""Cells as aligned lines: figures keep their width, and texts share what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

GAP = 2
INDENT = 2
NARROWEST = 8
STILL_READ = 20  # so much is left of a remark before names have to give way


def lines(
    rows: Sequence[Sequence[Text]],
    right: Sequence[bool],
    flexible: Sequence[bool],
    width: int,
    *,
    keep_ends: int | None = None,
    remark: int | None = None,
) -> Iterator[Text]:
    """The rows; `right` says which columns stand to the right, `flexible` which may be clipped to fit the width.

    `keep_ends`: a column that is clipped in the middle, as long names that begin alike are told apart by their ends.
    `remark`: a flexible column that is clipped before the others are.
    """
    if not rows:
        return
    widths = [max(row[i].cell_len for row in rows) for i in range(len(right))]
    room = width - INDENT - GAP * (len(widths) - 1)
    if remark is not None:
        most = max(STILL_READ, widths[remark] + room - sum(widths))
        widths[remark] = min(widths[remark], most)
    widths = _fitted(widths, flexible, room)
    for row in rows:
        line = Text(" " * INDENT)
        for column, (cell, space, to_right) in enumerate(zip(row, widths, right, strict=True)):
            clipped = _without_middle(cell, space) if column == keep_ends else cell
            line.append_text(_padded(clipped, space, to_right)).append(" " * GAP)
        line.rstrip()
        yield line


def _without_middle(cell: Text, width: int) -> Text:
    """Of a text that is too long its begin and its end."""
    if cell.cell_len <= width or width < NARROWEST:
        return cell
    end = (width - 1) // 2
    begin = cell[: width - 1 - end]
    return Text.assemble(begin, "…", cell[len(cell) - end :])


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
