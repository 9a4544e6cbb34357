"""A section of the report: what is taken from each rank, and how the ranks are put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass


@dataclass(frozen=True)
class Section:
    """`of_rank` gives something small, since hundreds of ranks may be held at once; `joined` gives fields of the Report."""

    name: str
    of_rank: Callable[[RankContext], Any]
    joined: Callable[[Sequence[Any], Options], Mapping[str, Any]]
