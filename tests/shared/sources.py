"""The sources as trees: several tests look at all of them, and parsing them takes seconds."""

from __future__ import annotations

import ast
from functools import cache


@cache
def parsed(source: str) -> ast.Module:
    """The tree of a module, which nobody may change."""
    return ast.parse(source)
