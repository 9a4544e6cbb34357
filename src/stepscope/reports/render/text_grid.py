"""Characters in a grid: cells as aligned lines, where texts share what figures leave, and bars and curves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.text import Text

GAP = 2
INDENT = 2
NARROWEST = 8
STILL_READ = 20  # characters of a note before names have to give way
LEAST_FOLDED = 30  # columns of a line of text
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|ns|µs|ms|s|B|[KMGT]iB)(?!\w))")
_JOINED = "\u00a0"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


def fold(text: str, width: int) -> list[str]:
    """The text in lines of words; a figure stays with its unit."""
    kept = _BEFORE_UNIT.sub(_JOINED, text)
    return [
        line.replace(_JOINED, " ") for line in wrap(kept, max(LEAST_FOLDED, width), break_on_hyphens=False)
    ]


def lines(
    rows: Sequence[Sequence[Text]],
    right: Sequence[bool],
    flexible: Sequence[bool],
    width: int,
    *,
    keep_ends: int | None = None,
    remark: int | None = None,
) -> Iterator[Text]:
    """The rows; `right` says which columns are aligned right, `flexible` which may be clipped to fit the width.

    `keep_ends`: a column that is clipped in the middle, as long names that begin alike differ at their ends.
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
    """Of a text that is too long its start and its end."""
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


def bar(share: float, width: int) -> str:
    """A bar of at most `width` columns; a share above zero is never drawn as nothing."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    eighths = max(eighths, 1) if share > 0 else 0
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def sparkline(values: Sequence[float], width: int) -> str:
    """The values from zero to the largest; more values than columns are put together by their maximum."""
    if not values:
        return ""
    top = max(values) or 1.0
    columns = min(width, len(values))
    pieces = [values[len(values) * i // columns : max(len(values) * (i + 1) // columns, len(values) * i // columns + 1)] for i in range(columns)]  # fmt: skip
    return "".join(_LEVELS[min(7, round(7 * max(piece) / top))] for piece in pieces)
