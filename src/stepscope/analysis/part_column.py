"""The parts of a step's account as a column of a table."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.parts import PARTS

Part = pl.Enum(PARTS)


def part(name: str) -> pl.Expr:
    """One of the parts as a literal."""
    return pl.lit(name, dtype=Part)
