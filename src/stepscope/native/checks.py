"""What the hot loops demand of their columns before they start."""

from __future__ import annotations

ROW_LIMIT = 0xFFFFFFFF


def need_equal(*lengths: int) -> None:
    """Columns of one table are equally long, and short enough for 32-bit row numbers."""
    if len(set(lengths)) > 1:
        raise ValueError(f"the columns differ in length: {lengths}")
    if lengths[0] >= ROW_LIMIT:
        raise ValueError(f"{lengths[0]} rows are too many for 32-bit row numbers")
