"""Number formats of device compute, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.kernels.precision import precision_shares, precision_times
from stepscope.analysis.options import Options
from stepscope.reports.model.report import Precision
from stepscope.reports.sections.section import Section


def of_rank(context: RankContext) -> pl.DataFrame:
    """The rank's compute time by precision."""
    return precision_times(context.kernel_calls)


def joined(ranks: Sequence[pl.DataFrame], options: Options) -> Mapping[str, Any]:
    """Shares of the compute time of all ranks."""
    if not ranks:
        return {"precision": Precision()}
    return {"precision": Precision(**asdict(precision_shares(pl.concat(ranks))))}


SECTION = Section("precision", of_rank, joined)
