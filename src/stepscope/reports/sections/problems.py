"""Problems of the capture that only the finished trace shows; the report adds them to those of the readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from stepscope.analysis.capture_quality.defects import capture_problems
from stepscope.analysis.capture_quality.light import light_problems
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.reports.sections.section import Section
from stepscope.trace.problems import Problems


def of_rank(context: RankContext) -> pl.DataFrame:
    """The rank's problems, as rows of the table `problems` with the rank."""
    found = Problems()
    for problem in capture_problems(context.whole_trace, context.all_steps):
        found.add(problem)
    for problem in light_problems(context.light):
        found.add(problem)
    return found.frame().with_columns(rank=pl.lit(context.rank, dtype=pl.Int32))


def joined(ranks: Sequence[pl.DataFrame], options: Options) -> Mapping[str, Any]:
    """All rows; they become problems together with those of the profile."""
    return {"problems": ranks}


SECTION = Section("problems", of_rank, joined)
