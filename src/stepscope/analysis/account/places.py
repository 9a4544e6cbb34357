"""Where time without a cause is: what it is named by did not spend it.

`before`: before the event that it is named by, which is what came next. `end`: nothing more of the step was recorded, and
the name, if there is one, is that of its marker. `during`: the device had not begun what was queued for it while the host was in
the call that it is named by.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.parts import DURING
from stepscope.trace.frames import take
from stepscope.trace.trace import Trace

BEFORE, END = "before", "end"
UNEXPLAINED = "unexplained"
_NAMED_BY_NEXT = (UNEXPLAINED, "unrecorded")


def places(trace: Trace, slices: pl.DataFrame) -> pl.Series:
    """For slices of an account `before`, `end` or `during`; null where the event that one is named by spent it."""
    begins = take(trace.events["start_ns"], slices["named_by"])
    is_before = pl.lit((begins >= slices["end_ns"]).fill_null(False))
    place = (
        pl.when(pl.col("part").is_in(_NAMED_BY_NEXT) & is_before)
        .then(pl.lit(BEFORE))
        .when(pl.col("part") == UNEXPLAINED)
        .then(pl.lit(END))
        .when((pl.col("part") == "device_gap") & pl.lit((begins < slices["end_ns"]).fill_null(False)))
        .then(pl.lit(DURING))
    )
    return slices.select(place=place)["place"]
