"""One run as the diff wants it: what each of its steps cost on each rank, and its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.collectives.calls import collective_calls
from stepscope.analysis.context import WHOLE, RankContext
from stepscope.analysis.kernels.names.dtypes import of_op
from stepscope.analysis.memory import DeviceMemory
from stepscope.analysis.ops.calls import launched_work
from stepscope.analysis.options import Options
from stepscope.diffs.data.match import LINE_OF_FUNCTION
from stepscope.diffs.data.samples import Samples, Side, in_form, together
from stepscope.profiles.cache import background as later
from stepscope.profiles.profile import Profile
from stepscope.reports.build import build
from stepscope.reports.columns import without_address

# Of the account, by rank: what is left out is far too small to explain anything.
NAMES_PER_PART = 100
# Their time is the device's own, and is told by op or by collective.
# Ops whose number format decides how fast they are.
_PRODUCT = r"(?i)mm\b|matmul|linear|conv(?:[^e]|$)|\bdot|attention"
_HOST_LINK = ("HtoD", "DtoH")
_WAITS, _WAIT = ("runtime", "sync"), "(?i)synchronize"
# PyTorch's frames of modules: one more gives all later ones another number.
_NUMBER_OF_MODULE = r"^(nn\.Module: .+)_\d+$"
_NOT_BY_NAME = ("compute", "host_compute", "collective")


def side_of(profile: Profile, options: Options, ranks: Sequence[int] | None = None) -> Side:
    """The run, each rank looked at once."""
    found: list[Samples] = []
    outside: list[float] = []

    def look(context: RankContext) -> None:
        found.append(samples_of(context))
        outside.append(outside_steps(context))

    with later.postponed():
        told = build(profile, options, ranks, also=look)
    report: dict[str, Any] = msgspec.to_builtins(told)
    return Side(together(found), report, max(outside, default=0.0))


def outside_steps(context: RankContext) -> float:
    """The share of op time that lies in no step, where the host computes and steps are told."""
    calls = context.op_calls
    if calls["device_self_ns"].sum() or not len(context.windows.windows):
        return 0.0
    total, outside = (
        float(rows["host_self_ns"].sum()) for rows in (calls, calls.filter(pl.col("step").is_null()))
    )
    return outside / total if total else 0.0


def samples_of(context: RankContext) -> Samples:
    """A rank's steps on its critical device, partial ones aside; the whole recording where it has none."""
    windows = context.windows.windows.filter(pl.col("device").eq_missing(context.critical_device))
    whole = windows.filter(~pl.col("partial"))
    windows = whole if len(whole) else windows
    rank = pl.lit(context.rank, dtype=pl.Int32).alias("rank")
    first = pl.lit(0, dtype=pl.Int32).alias("recording")
    cells = windows.select(rank, "step", ns=pl.col("end_ns") - pl.col("start_ns"))
    tables = {
        "cells": cells,
        "parts": _parts(context),
        "names": _names(context),
        "ops": _ops(context),
        "kernels": _kernels(context),
        "products": _products(context),
        "collectives": _collectives(context),
        "memory": _memory(context.memory),
        "waits": _waits(context),
        "functions": _functions(context),
    }
    counted = cells["step"].implode()
    found = {}
    for name, frame in tables.items():
        kept = frame.filter(pl.col("step").is_in(counted)) if "step" in frame.columns else frame
        found[name] = in_form(name, kept.with_columns(first, rank))
    return Samples(**found)


def _slices(context: RankContext) -> pl.DataFrame:
    slices = context.account.slices.filter(pl.col("device").eq_missing(context.critical_device))
    return slices.with_columns(ns=pl.col("end_ns") - pl.col("start_ns"))


def _parts(context: RankContext) -> pl.DataFrame:
    parts = context.parts.filter(pl.col("device").eq_missing(context.critical_device))
    return parts.select("step", "part", "ns")


def _names(context: RankContext) -> pl.DataFrame:
    """What the parts of a step went to, by the event that the account names."""
    slices = _slices(context).filter(~pl.col("part").is_in(_NOT_BY_NAME))
    names = context.trace.events["name"]
    rows = (
        slices.select("step", "part", "ns", name=names.gather(slices["named_by"]))
        .group_by("step", "part", "name", maintain_order=True)
        .agg(pl.col("ns").sum())
        .with_columns(without_address("name").fill_null("(nothing by name)"))
    )
    sums = rows.group_by("part", "name", maintain_order=True).agg(pl.col("ns").sum())
    longest = sums.filter(pl.col("ns").rank("ordinal", descending=True).over("part") <= NAMES_PER_PART)
    return rows.join(longest.select("part", "name"), on=["part", "name"], how="semi")


def _inside(calls: pl.DataFrame) -> pl.DataFrame:
    """In steps; everything, as one step, where there are none."""
    if calls["step"].count():
        return calls.filter(pl.col("step").is_not_null())
    return calls.with_columns(step=pl.lit(WHOLE, dtype=pl.Int32))


def _ops(context: RankContext) -> pl.DataFrame:
    calls = _inside(context.op_calls).join(
        _over_the_link(context), on="event", how="left", maintain_order="left"
    )
    return calls.group_by("step", pl.col("name", "scope", "shapes").cast(pl.String), maintain_order=True).agg(
        host_ns=pl.col("host_self_ns").sum(),
        device_ns=pl.col("device_self_ns").sum(),
        calls=(~pl.col("repeated")).sum().cast(pl.Int64),
        link_ns=pl.col("link_ns").sum(),
        link_bytes=pl.col("link_bytes").sum(),
    )


def _over_the_link(context: RankContext) -> pl.DataFrame:
    """event, link_ns, link_bytes: what the copies between host and device took that an op launched."""
    between = context.trace.copies.filter(pl.col("direction").cast(pl.String).is_in(_HOST_LINK))
    work = launched_work(context.trace).join(between.select("event", "bytes"), on="event")
    return work.group_by(event="op").agg(link_ns=pl.col("ns").sum(), link_bytes=pl.col("bytes").sum())


def _kernels(context: RankContext) -> pl.DataFrame:
    calls = _launched(context, _inside(context.kernel_calls))
    launch = pl.col("grid").arr.to_list().list.eval(pl.element().cast(pl.String)).list.join("x")
    return calls.group_by(
        "step",
        pl.col("name", "op").cast(pl.String),
        "precision",
        launch=launch,
        maintain_order=True,
    ).agg(ns=pl.col("dur_ns").sum(), calls=pl.len().cast(pl.Int64))


def _products(context: RankContext) -> pl.DataFrame:
    """Matrix products by number format: of the device's kernels, or of the host's ops where it has none."""
    calls = _launched(context, _inside(context.kernel_calls))
    if len(calls):
        found = calls.filter(pl.col("eligible").fill_null(False)).select("step", "precision", ns="dur_ns")
    else:
        ops = _inside(context.op_calls).select("step", "name", "dtypes", ns="host_self_ns")
        ops = ops.filter(pl.col("name").cast(pl.String).str.contains(_PRODUCT), pl.col("ns") > 0)
        types = {text: of_op(text) for text in ops["dtypes"].cast(pl.String).unique()}
        precision = pl.Series("precision", [types[text] for text in ops["dtypes"].cast(pl.String)], pl.String)
        found = ops.with_columns(precision.fill_null("unknown")).drop("name", "dtypes")
    return found.group_by("step", "precision", maintain_order=True).agg(pl.col("ns").sum())


def _launched(context: RankContext, calls: pl.DataFrame) -> pl.DataFrame:
    """Without the work from before the recording that ran on into its first step, where launches tell."""
    launches = context.trace.links.filter(pl.col("why") == "launch")["to"]
    known = calls.filter(pl.col("event").is_in(launches.implode()))
    return known if 2 * len(known) > len(calls) else calls


def _collectives(context: RankContext) -> pl.DataFrame:
    calls = _inside(collective_calls(context.trace, context.account))
    return calls.group_by("step", "name", "dtype", maintain_order=True).agg(
        pl.col("bytes", "exposed_ns").sum(), ns=pl.col("dur_ns").sum(), calls=pl.len().cast(pl.Int64)
    )


def _waits(context: RankContext) -> pl.DataFrame:
    """The host's calls that wait for the device, by name."""
    events = context.trace.events.filter(pl.col("kind").is_in(_WAITS)).with_columns(
        pl.col("name").cast(pl.String)
    )
    calls = _inside(events.filter(pl.col("name").str.contains(_WAIT)))
    return calls.group_by("step", "name", maintain_order=True).agg(
        ns=pl.col("dur_ns").sum(), calls=pl.len().cast(pl.Int64)
    )


def _functions(context: RankContext) -> pl.DataFrame:
    """Python's functions by what called them; an edit above one moves its line, and it is the same."""
    events = context.trace.events
    frames = _inside(events.filter(pl.col("kind") == "python").select("step", "name", "parent", "dur_ns"))
    frames = frames.with_columns(inside=events["name"].gather(frames["parent"]))
    sums = frames.group_by("step", "name", "inside", maintain_order=True).agg(
        ns=pl.col("dur_ns").sum().cast(pl.Int64), calls=pl.len().cast(pl.Int64)
    )
    return sums.with_columns(
        without_address(name).str.replace(LINE_OF_FUNCTION, "$1").str.replace(_NUMBER_OF_MODULE, "$1")
        for name in ("name", "inside")
    )


def _memory(devices: Sequence[DeviceMemory]) -> pl.DataFrame:
    rows = [
        {"name": memory_name(each.device_kind, each.device, each.source), "peak_bytes": each.peak_bytes, "reserved_bytes": each.reserved_peak}
        for each in devices
    ]  # fmt: skip
    schema = {"name": pl.String, "peak_bytes": pl.Int64, "reserved_bytes": pl.Int64}
    return pl.DataFrame(rows, schema=schema)


def memory_name(kind: str, device: int | None, source: str) -> str:
    """What a memory is called; the same in runs on other machines."""
    name = "host" if kind == "cpu" else kind if device is None else f"{kind} {device}"
    return name + (" program" if source == "hlo" else "")
