"""Findings about data that moves: copies that nothing hides, detours over the host, communication."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.finding import Case, Finding, of_part, timed
from stepscope.analysis.replay.plan import Plan
from stepscope.native.host import replay as native
from stepscope.registers.calibration.launches import HOST_OP_NS, LARGE_COPY_BYTES, PINNED_BYTES_PER_NS
from stepscope.registers.policy.findings import DETOUR_BYTES, WORTH_A_FINDING, WORTH_SHOWING
from stepscope.trace.scopes import ancestors

_LIBRARY_OP = r"^[A-Za-z_]\w*::\w"
_NO_COMPUTATION = r"^autograd::|::(item|_local_scalar_dense|empty\w*|resize_?|set_|pin_memory|_pin_memory|is_nonzero|c10d\w*)$"


def detours(case: Case) -> list[Finding]:
    """Data that goes to the host and comes back, and ops that the host computes while the device waits."""
    if case.device is None:
        return []  # the host is meant to compute
    found = [_round_trips(case), _cpu_ops(case)]
    return [one for one in found if one is not None]


def _copy_items(case: Case) -> pl.DataFrame:
    """The plan's items that are device work, in order, with bytes and direction where they are copies."""
    copies = case.trace.copies.select("event", "bytes", direction=pl.col("direction").cast(pl.String))
    work = case.plan.items.filter(pl.col("kind") == native.WORK, pl.col("event").is_not_null())
    return work.join(copies, on="event", how="left", maintain_order="left")


def _round_trips(case: Case) -> Finding | None:
    """A copy to the host, and then a copy back before anything else is launched."""
    work = _copy_items(case).with_columns(back=pl.col("direction").shift(-1), until=pl.col("item").shift(-1))
    pairs = work.filter(
        pl.col("direction") == "DtoH",
        pl.col("back") == "HtoD",
        pl.col("bytes") >= DETOUR_BYTES,
    )
    if pairs.is_empty():
        return None
    away, back = pairs["item"], pairs["until"]
    inside = within(case.plan.items["item"], away, back)
    copies = case.plan.items.filter(inside, pl.col("event").is_not_null())["event"]
    owned = _slices_between(case, pairs)
    if case.per_step(owned) < WORTH_SHOWING * case.step_ns:
        return None
    on_host = case.plan.host.filter(pl.col("item").is_in(case.plan.items["item"].filter(inside).implode()))
    host_ns = int(on_host.filter(pl.col("cause") != "sync")["ns"].sum())
    copy_ns = int(owned.filter(pl.col("part") == "copy")["ns"].sum())
    after = case.plan.items["item"].filter(within(case.plan.items["item"], away + 1, back)).implode()
    # What the host held for the trip is freed after it, which takes long and leaves no event.
    next_items = pl.concat([back + 1, back + 2]).implode()
    freed = pl.col("item").is_in(next_items) & (pl.col("cause") == "unexplained")
    changed = (
        case.plan.with_host(pl.col("item").is_in(after) | freed)
        .with_device(pl.lit(inside) & pl.col("event").is_in(copies.implode()))
        .without_waits(pl.lit(within(case.plan.items["item"], away, back + 1)))
    )
    if host_ns > copy_ns:
        return _fallback(case, owned, changed)
    moved = int(case.trace.copies.filter(pl.col("event").is_in(copies.implode()))["bytes"].sum())
    detail = (
        f"{case.of_step(case.per_step(owned))} passes while data goes to the host and comes straight back."
    )
    evidence = {
        "bytes_per_step": moved // max(1, len(case.lengths)),
        "trips_per_step": round(len(pairs) / max(1, len(case.lengths)), 2),
    }
    return timed(case, "round-trip-copy", owned, changed, "Data goes to the host and back", detail, evidence)


def _slices_between(case: Case, pairs: pl.DataFrame) -> pl.DataFrame:
    """The slices from the beginning of a copy away to the end of the copy back, and what waits for them."""
    events = case.trace.events
    back = case.plan.items["event"].gather(pairs["until"])
    start = events["start_ns"].gather(pairs["event"])
    end = events["start_ns"].gather(back) + events["dur_ns"].gather(back)
    free = case.free(
        pl.col("part").is_in(["copy", "sync", "dispatch", "unexplained", "python", "device_gap"])
    )
    order = start.arg_sort()
    inside = within(free["start_ns"], start.gather(order), end.gather(order) - 1)
    return free.filter(inside)


def _fallback(case: Case, owned: pl.DataFrame, changed: Plan) -> Finding:
    names = [name for name in case.top_names(owned.filter(pl.col("part") == "dispatch"), 1) if name["name"]]
    what = names[0]["name"] if names else "an op"
    detail = f"{case.of_step(case.per_step(owned))} passes while the host computes {what} for the device."
    return timed(case, "cpu-fallback", owned, changed, "Ops run on the host while the device waits", detail)


def _cpu_ops(case: Case) -> Finding | None:
    """Long ops that launch nothing: the host computes them."""
    events = case.trace.events
    links = case.trace.links.filter(pl.col("why") == "launch")
    launches = pl.repeat(False, len(events), eager=True).scatter(links["from"].unique(), True)
    is_op = events["kind"] == "op"
    launching = _with_outer(ancestors(events, is_op), launches)
    dispatch = case.free(pl.col("part") == "dispatch")
    named = dispatch["named_by"]
    long = (is_op & (events["dur_ns"] >= HOST_OP_NS)).gather(named).fill_null(False)
    owned = dispatch.filter(long)
    owned = owned.filter(~pl.col("named_by").is_in(launching.implode()))
    name = pl.col("name").cast(pl.String)
    owned = owned.filter(name.str.contains(_LIBRARY_OP) & ~name.str.contains(_NO_COMPUTATION))
    if case.per_step(owned) < WORTH_SHOWING * case.step_ns:
        return None
    ops = owned["named_by"].unique()
    changed = case.plan.with_host(pl.col("named_by").is_in(ops.implode())).without_waits()
    return _fallback(case, owned, changed)


def _with_outer(outer: pl.Series, launches: pl.Series) -> pl.Series:
    """The ops in which something is launched, however deep; `outer` is the op around each event."""
    found: pl.Series = outer.filter(launches).drop_nulls().unique()
    nearest = found
    while len(nearest):
        nearest = outer.gather(nearest).drop_nulls().unique()
        nearest = nearest.filter(~nearest.is_in(found.implode()))
        found = pl.concat([found, nearest])
    return found


def exposed_copy(case: Case) -> Finding | None:
    """Copies that nothing hides."""
    moving = _copy_items(case).filter(pl.col("direction").is_in(["HtoD", "DtoH"]))
    over_bus = case.trace.copies.filter(pl.col("direction").cast(pl.String).is_in(["HtoD", "DtoH"]))["event"]
    owned = case.free(pl.col("part") == "copy", pl.col("named_by").is_in(over_bus.implode()))
    if case.per_step(owned) < WORTH_SHOWING * case.step_ns:
        return None
    faster = moving.join(_pinned_ns(case), on="event", maintain_order="left")
    items = case.plan.items.join(faster, on="event", how="left", maintain_order="left")
    factor = (items["pinned_ns"] / items["device_ns"]).fill_null(1.0).fill_nan(1.0).clip(0.0, 1.0)
    # A copy from pageable memory makes the host wait until it is done.
    blocking = within(case.plan.items["item"], moving["item"], moving["item"] + 2)
    changed = (
        case.plan.with_device(pl.lit(True), pl.lit(factor))
        .without_waits(pl.lit(blocking))
        .on_own_stream(pl.col("event").is_in(over_bus.implode()))
    )
    return of_part(case, "exposed-copy", owned, "The device waits for copies", lambda: changed)


def _pinned_ns(case: Case) -> pl.DataFrame:
    """event, pinned_ns: how long each copy from or to pageable memory would take from pinned memory."""
    copies = case.trace.copies.with_columns(
        dur=case.trace.events["dur_ns"].gather(case.trace.copies["event"]),
        pageable=pl.concat_str(pl.col("source", "target").cast(pl.String).fill_null("")).str.contains(
            "(?i)pageable"
        ),
        between=pl.col("direction").cast(pl.String).is_in(["HtoD", "DtoH"]),
    )
    pinned = copies.filter(
        "between", ~pl.col("pageable"), pl.col("bytes") > LARGE_COPY_BYTES, pl.col("dur") > 0
    )
    best = (pinned["bytes"] / pinned["dur"]).max()
    rate = best if isinstance(best, float) else PINNED_BYTES_PER_NS
    return copies.filter("pageable").select("event", pinned_ns=(pl.col("bytes") / rate).cast(pl.Int64))


def exposed_collective(case: Case) -> Finding | None:
    """Communication that nothing hides."""
    owned = case.free(pl.col("part").is_in(["collective", "host_collective"]))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    work = case.trace.events.filter(pl.col("role") == "collective")["id"].implode()
    changed = case.plan.with_device(pl.col("event").is_in(work)).with_host(
        pl.col("cause") == "host_collective"
    )
    detail = f"{case.of_step(ns)} is communication with no computation beside it."
    return timed(case, "exposed-collective", owned, changed, "The device waits for communication", detail)
