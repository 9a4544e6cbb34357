"""Bars and curves out of characters."""

from __future__ import annotations

from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


def bar(share: float, width: int) -> str:
    """A bar of so many columns at most; what is there is never drawn as nothing."""
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
