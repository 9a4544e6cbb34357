"""Problems of the capture that only the finished trace shows; the report adds them to those of the readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from stepscope.analysis.capture_quality.defects import capture_checks
from stepscope.analysis.capture_quality.light import light_problems
from stepscope.analysis.context import RankContext
from stepscope.analysis.findings.faults import wants_tracebacks
from stepscope.analysis.options import Options
from stepscope.errors import first_line, is_fault
from stepscope.reports.sections.section import Section
from stepscope.trace.problems import Problem, Problems, problem


def of_rank(context: RankContext) -> pl.DataFrame:
    """The rank's problems, as rows of the table `problems` with the rank."""
    found = Problems()
    asked = (*capture_checks(context.whole_trace, context.all_steps), lambda: light_problems(context.light))
    for check in asked:
        for each in _found_by(check):
            found.add(each)
    return found.frame().with_columns(rank=pl.lit(context.rank, dtype=pl.Int32))


def _found_by(check: Callable[[], Iterable[Problem]]) -> list[Problem]:
    """What a check finds; one that raises is a problem of its own, and costs no other."""
    try:
        return list(check())
    except BaseException as error:
        if not is_fault(error) or wants_tracebacks():
            raise
        return [problem("analysis-failed", first_line(error), sections="problems")]


def joined(ranks: Sequence[pl.DataFrame], options: Options) -> Mapping[str, Any]:
    """All rows; they become problems together with those of the profile."""
    return {"problems": ranks}


SECTION = Section("problems", of_rank, joined)
