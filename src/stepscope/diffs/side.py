"""Reads one side of a diff: what each of its steps cost on each rank, and its report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from stepscope.analysis.account.places import END, places
from stepscope.analysis.collectives.calls import collective_calls
from stepscope.analysis.context import RankContext
from stepscope.analysis.kernels.names.dtypes import of_op
from stepscope.analysis.ops.calls import launched_work
from stepscope.analysis.options import Options
from stepscope.analysis.snapshot.explain import Explained
from stepscope.analysis.snapshot.words import call, name_file
from stepscope.analysis.steps.find import WHOLE
from stepscope.diffs.data.match import LINE_OF_FUNCTION
from stepscope.diffs.data.samples import HELD, Samples, Side, TableName, combine_ranks, conform_table
from stepscope.profiles.cache import background
from stepscope.profiles.profile import Profile
from stepscope.registers.policy.diffs import DIFF_NAMES_PER_PART
from stepscope.reports.build import build
from stepscope.reports.columns import without_address
from stepscope.trace.frames import conform

# Ops whose number format decides how fast they are.
_PRODUCT = r"(?i)mm\b|matmul|linear|conv(?:[^e]|$)|\bdot|attention"
_HOST_LINK = ("HtoD", "DtoH")
_WAITS, _WAIT = ("runtime", "sync"), "(?i)synchronize"
# PyTorch's frames of modules: one more gives all later ones another number.
_NUMBER_OF_MODULE = r"^(nn\.Module: .+)_\d+$"
# Their time is the device's own, and is compared by op or by collective.
_NOT_BY_NAME = ("compute", "host_compute", "collective")
UNNAMED = "(unnamed)"
AT_END = "the end of the step"  # of which nothing more was recorded: the names of markers have numbers
# What the copies between host and device took that an op launched.
LINK = {"event": pl.UInt32, "link_ns": pl.Int64, "link_bytes": pl.Int64}


def read_side(profile: Profile, options: Options, ranks: Sequence[int] | None = None) -> Side:
    """The run, each rank analysed once."""
    samples: list[Samples] = []
    outside: list[float] = []

    def look(context: RankContext) -> None:
        samples.append(collect_samples(context))
        outside.append(measure_outside(context))

    with background.postponed():
        report = build(profile, options, ranks, also=look)
    return Side(combine_ranks(samples), report, max(outside, default=0.0))


def measure_outside(context: RankContext) -> float:
    """The share of op time that is in no step, where the host computes and there are steps."""
    calls = context.op_calls
    if calls["device_self_ns"].sum() or not len(context.windows.windows):
        return 0.0
    total, outside = (
        float(rows["host_self_ns"].sum()) for rows in (calls, calls.filter(pl.col("step").is_null()))
    )
    return outside / total if total else 0.0


def collect_samples(context: RankContext) -> Samples:
    """A rank's steps on its critical device without partial ones; the whole recording where it has none."""
    windows = context.windows.windows.filter(pl.col("device").eq_missing(context.critical_device))
    whole = windows.filter(~pl.col("partial"))
    windows = whole if len(whole) else windows
    cells = windows.select("step", ns=pl.col("end_ns") - pl.col("start_ns"))
    steps = cells["step"].implode()
    numbers = (
        pl.lit(0, dtype=pl.Int32).alias("recording"),
        pl.lit(context.rank, dtype=pl.Int32).alias("rank"),
    )
    frames: dict[str, pl.DataFrame] = {"cells": conform_table("cells", cells.with_columns(*numbers))}
    for name, collect in _COLLECTORS.items():
        rows = collect(context)
        counted = rows.filter(pl.col("step").is_in(steps)) if "step" in rows.columns else rows
        frames[name] = conform_table(name, counted.with_columns(*numbers))
    return Samples(**frames)


def _collect_parts(context: RankContext) -> pl.DataFrame:
    parts = context.parts.filter(pl.col("device").eq_missing(context.critical_device))
    return parts.select("step", "part", "ns")


def _collect_names(context: RankContext) -> pl.DataFrame:
    """What the parts of a step went to, by the event that the account charges."""
    slices = context.account.slices.filter(
        pl.col("device").eq_missing(context.critical_device), ~pl.col("part").is_in(_NOT_BY_NAME)
    )
    names = context.trace.events["name"]
    ns = pl.col("end_ns") - pl.col("start_ns")
    is_end = (places(context.trace, slices) == END).fill_null(False)
    by_event = (
        slices.select("step", "part", ns=ns, name=names.gather(slices["named_by"]), is_end=is_end)
        .group_by("step", "part", "name", "is_end", maintain_order=True)
        .agg(pl.col("ns").sum())
    )
    name = pl.when("is_end").then(pl.lit(AT_END)).otherwise(without_address("name")).fill_null(UNNAMED)
    rows = by_event.group_by("step", "part", name.alias("name"), maintain_order=True).agg(pl.col("ns").sum())
    sums = rows.group_by("part", "name", maintain_order=True).agg(pl.col("ns").sum())
    longest = sums.filter(pl.col("ns").rank("ordinal", descending=True).over("part") <= DIFF_NAMES_PER_PART)
    return rows.join(longest.select("part", "name"), on=["part", "name"], how="semi")


def _keep_steps(calls: pl.DataFrame) -> pl.DataFrame:
    """The rows of steps; everything, as one step, where there are none."""
    if calls["step"].count():
        return calls.filter(pl.col("step").is_not_null())
    return calls.with_columns(step=pl.lit(WHOLE, dtype=pl.Int32))


def _collect_ops(context: RankContext) -> pl.DataFrame:
    calls = _keep_steps(context.op_calls).join(
        _measure_link(context), on="event", how="left", maintain_order="left"
    )
    return calls.group_by("step", pl.col("name", "scope", "shapes").cast(pl.String), maintain_order=True).agg(
        host_ns=pl.col("host_self_ns").sum(),
        device_ns=pl.col("device_self_ns").sum(),
        calls=(~pl.col("repeated")).sum().cast(pl.Int64),
        link_ns=pl.col("link_ns").sum(),
        link_bytes=pl.col("link_bytes").sum(),
    )


def _measure_link(context: RankContext) -> pl.DataFrame:
    """LINK of all ops that launched such copies."""
    between = context.trace.copies.filter(pl.col("direction").cast(pl.String).is_in(_HOST_LINK))
    work = launched_work(context.work).join(between.select("event", "bytes"), on="event")
    sums = work.group_by(event="op").agg(link_ns=pl.col("ns").sum(), link_bytes=pl.col("bytes").sum())
    return conform(sums, LINK)


def _collect_kernels(context: RankContext) -> pl.DataFrame:
    calls = _skip_earlier_work(context, _keep_steps(context.kernel_calls))
    launch = pl.col("grid").arr.to_list().list.eval(pl.element().cast(pl.String)).list.join("x")
    return calls.group_by(
        "step",
        pl.col("name", "op").cast(pl.String),
        "precision",
        launch=launch,
        maintain_order=True,
    ).agg(ns=pl.col("dur_ns").sum(), calls=pl.len().cast(pl.Int64))


def _collect_products(context: RankContext) -> pl.DataFrame:
    """Matrix products by number format: of the device's kernels, or of the host's ops where it has none."""
    calls = _skip_earlier_work(context, _keep_steps(context.kernel_calls))
    if len(calls):
        products = calls.filter(pl.col("eligible").fill_null(False)).select("step", "precision", ns="dur_ns")
    else:
        ops = _keep_steps(context.op_calls).select("step", "name", "dtypes", ns="host_self_ns")
        ops = ops.filter(pl.col("name").cast(pl.String).str.contains(_PRODUCT), pl.col("ns") > 0)
        types = {text: of_op(text) for text in ops["dtypes"].cast(pl.String).unique()}
        precision = pl.Series("precision", [types[text] for text in ops["dtypes"].cast(pl.String)], pl.String)
        products = ops.with_columns(precision.fill_null("unknown")).drop("name", "dtypes")
    return products.group_by("step", "precision", maintain_order=True).agg(pl.col("ns").sum())


def _skip_earlier_work(context: RankContext, calls: pl.DataFrame) -> pl.DataFrame:
    """The calls without those from before the recording that ran into its first step, where launches show that."""
    launches = context.trace.links.filter(pl.col("why") == "launch")["to"]
    known = calls.filter(pl.col("event").is_in(launches.implode()))
    return known if 2 * len(known) > len(calls) else calls


def _collect_collectives(context: RankContext) -> pl.DataFrame:
    calls = _keep_steps(collective_calls(context.trace, context.account))
    return calls.group_by("step", "name", "dtype", maintain_order=True).agg(
        pl.col("bytes", "exposed_ns").sum(), ns=pl.col("dur_ns").sum(), calls=pl.len().cast(pl.Int64)
    )


def _collect_waits(context: RankContext) -> pl.DataFrame:
    """Host calls that wait for the device, by name."""
    events = context.trace.events.filter(pl.col("kind").is_in(_WAITS)).with_columns(
        pl.col("name").cast(pl.String)
    )
    calls = _keep_steps(events.filter(pl.col("name").str.contains(_WAIT)))
    return calls.group_by("step", "name", maintain_order=True).agg(
        ns=pl.col("dur_ns").sum(), calls=pl.len().cast(pl.Int64)
    )


def _collect_functions(context: RankContext) -> pl.DataFrame:
    """Python functions by their callers; without lines, since an edit above a function moves it."""
    events = context.trace.events
    frames = _keep_steps(events.filter(pl.col("kind") == "python").select("step", "name", "parent", "dur_ns"))
    frames = frames.with_columns(inside=events["name"].gather(frames["parent"]))
    sums = frames.group_by("step", "name", "inside", maintain_order=True).agg(
        ns=pl.col("dur_ns").sum().cast(pl.Int64), calls=pl.len().cast(pl.Int64)
    )
    return sums.with_columns(
        without_address(name).str.replace(LINE_OF_FUNCTION, "$1").str.replace(_NUMBER_OF_MODULE, "$1")
        for name in ("name", "inside")
    )


def _collect_clip(context: RankContext) -> pl.DataFrame:
    """All kernels of the recording by name."""
    kernels = context.trace.events.filter(pl.col("kind") == "kernel")
    length = pl.col("dur_ns").cast(pl.Float64)
    return kernels.group_by(pl.col("name").cast(pl.String)).agg(
        ns=pl.col("dur_ns").sum(), calls=pl.len().cast(pl.Int64), squares=(length * length).sum()
    )


def _collect_memory(context: RankContext) -> pl.DataFrame:
    rows = [
        {"name": name_memory(each.device_kind, each.device, each.source), "peak_bytes": each.peak_bytes, "reserved_bytes": each.reserved_peak}
        for each in context.memory
    ]  # fmt: skip
    schema = {"name": pl.String, "peak_bytes": pl.Int64, "reserved_bytes": pl.Int64}
    held = [
        pl.DataFrame(list(_name_holders(each)), schema=schema, orient="row") for each in context.snapshots
    ]
    return pl.concat([pl.DataFrame(rows, schema=schema), *held])


def _name_holders(found: Explained) -> Iterator[tuple[str, int, None]]:
    """What each function of a snapshot holds, by kind. Lines are left out: they move with every edit."""
    held: dict[str, int] = {}
    for kind, file, function, size in found.by_line.select(
        "kind", "site_file", "site_function", "bytes"
    ).iter_rows():
        where = (
            f"{name_file(file)}{'' if function == '<module>' else f' in {function}'}" if file else "no line"
        )
        name = f"{call(kind)}{HELD}{where}"
        held[name] = held.get(name, 0) + size
    yield from ((name, size, None) for name, size in held.items())


def name_memory(kind: str, device: int | None, source: str) -> str:
    """The name of a memory; the same in runs on other machines."""
    name = "host" if kind == "cpu" else kind if device is None else f"{kind} {device}"
    return name + (" program" if source == "hlo" else "")


# What makes each table of the samples, without recording and rank: `conform_table` gives it its declared schema.
_COLLECTORS: dict[TableName, Callable[[RankContext], pl.DataFrame]] = {
    "parts": _collect_parts,
    "names": _collect_names,
    "ops": _collect_ops,
    "kernels": _collect_kernels,
    "products": _collect_products,
    "collectives": _collect_collectives,
    "memory": _collect_memory,
    "clip": _collect_clip,
    "waits": _collect_waits,
    "functions": _collect_functions,
}
