"""Launches that return only when their kernel is done, as all do with CUDA_LAUNCH_BLOCKING=1."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.debug_settings import noted_settings
from stepscope.registers.policy.findings import BLOCKING_LAUNCHES_LEAST, MAJORITY, NEARLY_ALL
from stepscope.trace.frames import take
from stepscope.trace.kept import kept_with_trace
from stepscope.trace.lookup import is_named
from stepscope.trace.trace import Trace

SETTING = "CUDA_LAUNCH_BLOCKING=1"
_NONE = pl.Series([], dtype=pl.UInt32)
_LAUNCH = r"^cu(da)?LaunchKernel(Ex|ExC)?(_v\d+|_ptsz)?$"


@kept_with_trace
def blocking_launches(trace: Trace) -> pl.Series:
    """The launches of kernels that waited for them; none unless nearly all did, or most in a job with the setting.

    Set when the device is in use already, it does nothing. Other launches return before their kernel ends, nearly always before it begins.
    """
    events = trace.events
    calls = is_named(events, _LAUNCH)
    if not calls.any():
        return _NONE
    links = trace.links.filter(pl.col("why") == "launch").select("from", "to")
    kernels = links.filter(take(calls, links["from"]) & (take(events["kind"], links["to"]) == "kernel"))
    if len(kernels) < BLOCKING_LAUNCHES_LEAST:
        return _NONE
    spans = events.select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    call, work = (spans[kernels[end]] for end in ("from", "to"))
    # A clock that is off moves all kernels to before their launch.
    waited = (call["start_ns"] <= work["start_ns"]) & (work["end_ns"] <= call["end_ns"])
    share = NEARLY_ALL if SETTING not in noted_settings(trace) else MAJORITY
    if int(waited.sum()) <= share * len(kernels):
        return _NONE
    found: pl.Series = kernels["from"].filter(waited).unique()
    return found
