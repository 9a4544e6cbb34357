"""Why the device idled: each gap is charged to what the host did that kept the device empty, by name.

A gap before a kernel belongs to the thread that launched the kernel: until the launch returned, to what that thread
was doing (charge.py); after that the work was queued, and the rest of the gap is the device's. In a gap that
began while the host waited for the device, dispatch and short Python are the wait's fault: the queue had run dry
because of it. Long user code, input and the like stay what they are.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import polars as pl

from stepscope.analysis.account.charge import COLUMNS, Charger
from stepscope.analysis.account.host_timeline import Timeline, cut_by
from stepscope.analysis.account.queued import queued
from stepscope.analysis.account.unrecorded_waits import unrecorded_waits
from stepscope.analysis.host.causes import host_causes
from stepscope.analysis.part_column import part
from stepscope.analysis.steps.find import Steps
from stepscope.native.spans import segments as native
from stepscope.registers.calibration.launches import EAGER_PAUSE_NS, LATEST_LAUNCH_NS
from stepscope.trace.columns import buffer, repeated, series
from stepscope.trace.frames import take, take_smallest
from stepscope.trace.trace import Trace

_LAUNCH = r"(?i)^(cuda|cu|hip)(Ext)?(Module)?(Graph)?Launch(Cooperative)?(Kernel)?"


def explain(trace: Trace, steps: Steps, work: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """The gaps in slices with part, named_by, detail and thread. `work` is in time order, `gaps` lie between it."""
    charger = Charger(trace, steps, host_only=work.is_empty())
    main = charger.main
    with ThreadPoolExecutor(1, thread_name_prefix="stepscope-account") as pool:
        waits = pool.submit(unrecorded_waits, trace, steps)  # they do not depend on each other
        led = _with_launch(trace, work, gaps, main)
        host, device = _split(led)
        pieces = charger.charge(host)
    charged = _charged_to_waits(trace, waits.result(), pieces, led, main)
    charged = _profiler_overhead(trace, charged)
    both = pl.concat([charged.select(COLUMNS), queued(trace, device).select(COLUMNS)])
    return _unrecorded(trace, work, both)


def _with_launch(trace: Trace, work: pl.DataFrame, gaps: pl.DataFrame, main: int) -> pl.DataFrame:
    """Each gap with the device event that ends it, and the call that launched that."""
    place = work["start_ns"].search_sorted(gaps["end_ns"], side="left")
    ended = place < len(work)
    follower = take(work["id"], pl.select(pl.when(ended).then(place).otherwise(None)).to_series())
    launches = trace.links.filter(pl.col("why") == "launch").select(
        pl.col("from").alias("launch"), follower="to"
    )
    launches = launches.unique("follower", keep="first")
    led = (
        gaps.with_row_index("gap")
        .with_columns(follower=follower)
        .join(launches, on="follower", how="left", maintain_order="left")
    )
    events = trace.events
    return led.with_columns(
        launch_end=take(events["start_ns"] + events["dur_ns"], led["launch"]),
        track=take(events["track"], led["launch"]).fill_null(main),
        follower_track=take(events["track"], led["follower"]),
        in_program=_in_program(trace, work, gaps) & led["launch"].is_null(),
    )


def _in_program(trace: Trace, work: pl.DataFrame, gaps: pl.DataFrame) -> pl.Series:
    """Gaps inside a compiled program that the device runs by itself."""
    if not (trace.events["kind"] == "module").any():
        return repeated(False, len(gaps), pl.Boolean)
    tracks = trace.tracks.sort("id")
    mine = tracks.filter(pl.col("device").is_in(take(tracks["device"], work["track"].unique()).implode()))[
        "id"
    ]
    programs = trace.events.filter(pl.col("kind") == "module", pl.col("track").is_in(mine.implode()))
    programs = programs.select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")).sort("start_ns")
    if programs.is_empty():
        return pl.repeat(False, len(gaps), eager=True)
    last_end = programs["end_ns"].cum_max()
    place = programs["start_ns"].search_sorted(gaps["start_ns"], side="right").cast(pl.Int64) - 1
    inside: pl.Series = (place >= 0) & (last_end.gather(place.clip(lower_bound=0)) >= gaps["end_ns"])
    return inside


def _split(led: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The host's share of each gap, up to the end of the launch, and the device's share after it."""
    returned = pl.when("in_program").then("start_ns").otherwise(pl.coalesce("launch_end", "end_ns"))
    led = led.with_columns(edge=returned.clip(pl.col("start_ns"), pl.col("end_ns")))
    host = led.filter(pl.col("start_ns") < pl.col("edge")).select("gap", "start_ns", "track", end_ns="edge")
    device = led.filter(pl.col("edge") < pl.col("end_ns")).select(
        "gap", "end_ns", "follower", "follower_track", "track", start_ns="edge"
    )
    return host, device


def _blame_of_silence(silent: pl.DataFrame, begins: pl.DataFrame) -> pl.DataFrame:
    """Gaps that began in a wait which left no event of its own: gap, blamed, call_site, wait_track."""
    owners = silent.with_row_index("id").select("start_ns", "end_ns", "id")
    probes = begins.select("start_ns", end_ns=pl.col("start_ns") + 1)
    found = cut_by(probes, owners).drop_nulls("owner")
    return silent[found["owner"]].select(
        begins["gap"].gather(found["row"]),
        blamed="named_by",
        call_site=pl.lit(None, dtype=pl.UInt32),
        wait_track="track",
        wait_ns="start_ns",
        woken_ns="end_ns",
    )


def _charged_to_waits(
    trace: Trace, silent: pl.DataFrame, pieces: pl.DataFrame, led: pl.DataFrame, main: int
) -> pl.DataFrame:
    """In a gap that began while the host waited for the device, the time until more work came is the wait's.

    Of what the host did after waits, that is no more than it had waited for the device in all of them: so much earlier would it have
    come to it. A host that was hardly ahead of the device launches as late without the waits.
    """
    causes = host_causes(trace)
    if pieces.is_empty() or not (causes["waits"].any() or len(silent)):
        return pieces
    begins = led.select("gap", "start_ns", "track")
    probes = pl.concat([begins, begins.with_columns(track=pl.lit(main, dtype=pl.UInt32))]).unique(
        ["gap", "track"], maintain_order=True
    )
    waiting = Timeline(trace, causes["waits"]).cut(probes.with_columns(end_ns=pl.col("start_ns") + 1))
    found = waiting.drop_nulls("event").unique("gap", keep="first", maintain_order=True)
    blame = found.select(
        "gap",
        blamed=causes["named_by"].gather(found["event"]),
        call_site=causes["detail"].gather(found["event"]),
        wait_track="track",
        wait_ns=trace.events["start_ns"].gather(found["event"]),
        woken_ns=(trace.events["start_ns"] + trace.events["dur_ns"]).gather(found["event"]),
    )
    blame = pl.concat([blame, _blame_of_silence(silent, begins)]).unique(
        "gap", keep="first", maintain_order=True
    )
    in_blamed = pieces["gap"].is_in(blame["gap"].implode())
    joined = pieces.filter(in_blamed).join(blame, on="gap", how="left", maintain_order="left")
    joined = joined.join(begins.select("gap", dry_ns="start_ns"), on="gap", how="left", maintain_order="left")
    spent = (pl.col("end_ns") - pl.col("start_ns")).sum().over("gap", "part", "named_by")
    # An op or a function that takes long on the host would take it without the wait, too.
    brief = pl.col("part").is_in(["python", "dispatch"]) & (spent <= EAGER_PAUSE_NS)
    joined = _with_time_held(joined.with_columns(after_ns=pl.when(_AFTER).then(_NS).otherwise(0)))
    charged = pl.col("part").is_in(["unexplained", "sync"]) | (brief & _held_up())
    blamed = joined.with_columns(
        part=pl.when(charged).then(part("sync")).otherwise("part"),
        named_by=pl.when(charged).then("blamed").otherwise("named_by"),
        detail=pl.when(charged).then("call_site").otherwise("detail"),
        thread=pl.when(charged).then("wait_track").otherwise("thread"),
    )
    return pl.concat([pieces.filter(~in_blamed), blamed.select(pieces.columns)])


_NS = pl.col("end_ns") - pl.col("start_ns")
_AFTER = pl.col("start_ns") >= pl.col("woken_ns")


def _with_time_held(pieces: pl.DataFrame) -> pl.DataFrame:
    """held_ns of each gap: for how long after its wait the host is late by the waits so far, beyond what earlier gaps took of that."""
    gaps = pieces.group_by("gap", maintain_order=True).agg(
        pl.col("wait_track", "wait_ns", "dry_ns").first(), pl.col("after_ns").sum()
    )
    gaps = gaps.sort("wait_track", "dry_ns")
    # A wait may last beyond several gaps: each time counts once.
    since = pl.max_horizontal("wait_ns", pl.col("dry_ns").shift(1).over("wait_track"))
    gaps = gaps.with_columns(
        late=(pl.col("dry_ns") - since).clip(0).cum_sum().over("wait_track"),
        asked=pl.col("after_ns").cum_sum().over("wait_track"),
    )
    lacking = (pl.col("late") - pl.col("asked")).cum_min().over("wait_track").clip(upper_bound=0)
    taken = pl.col("asked") + lacking
    gaps = gaps.with_columns(taken=taken)
    held = pl.col("taken") - pl.col("taken").shift(1, fill_value=0).over("wait_track")
    return pieces.join(gaps.select("gap", held_ns=held), on="gap", how="left", maintain_order="left")


def _held_up() -> pl.Expr:
    """Whether the host would have come to a piece before the device was done, had it not waited; pieces of a gap, in any order."""
    middle = pl.col("after_ns").cum_sum().over("gap", order_by="start_ns") - pl.col("after_ns") / 2
    return middle <= pl.col("held_ns")


def _profiler_overhead(trace: Trace, pieces: pl.DataFrame) -> pl.DataFrame:
    """Time in which the profiler says that it held up the process, on a track of its own."""
    host = trace.tracks.filter(pl.col("what") == "host", pl.col("thread").is_not_null())["id"]
    spans = trace.events.filter(
        pl.col("kind") == "overhead", pl.col("dur_ns") > 0, ~pl.col("track").is_in(host.implode())
    ).sort("start_ns")
    if spans.is_empty() or pieces.is_empty():
        return pieces
    start, end, row = native.segments(
        buffer(repeated(0, len(spans), pl.UInt32)), buffer(spans["start_ns"]), buffer(spans["dur_ns"]),
        buffer(repeated(1, len(spans), pl.UInt8)),
    )  # fmt: skip
    rows = series("row", row, pl.UInt32)
    owners = pl.DataFrame(
        {
            "start_ns": series("start_ns", start, pl.Int64),
            "end_ns": series("end_ns", end, pl.Int64),
            "id": spans["id"].gather(rows),
        }
    )
    vague = pl.col("part").is_in(["dispatch", "unexplained"])
    cut = cut_by(pieces.filter(vague), owners)
    event = cut["owner"]
    overlaid = pieces.filter(vague)[cut["row"]].with_columns(
        cut["start_ns"],
        cut["end_ns"],
        part=pl.coalesce(host_causes(trace)["cause"].gather(event), "part"),
        named_by=pl.coalesce(event, "named_by"),
        thread=pl.coalesce(trace.events["track"].gather(event), "thread"),
    )
    return pl.concat([pieces.filter(~vague), overlaid])


def _unrecorded(trace: Trace, work: pl.DataFrame, pieces: pl.DataFrame) -> pl.DataFrame:
    """Before the first record of the device, work was launched: the device ran it, and nobody wrote it down."""
    if work.is_empty() or pieces.is_empty():
        return pieces
    first, begin = work.row(0, named=True), work["start_ns"][0]
    launched = _first_launch_end(trace, first["id"])
    if launched is None or begin - launched <= LATEST_LAUNCH_NS:
        return pieces
    edge = pl.lit(launched, dtype=pl.Int64)
    early = pieces.filter(pl.col("start_ns") < begin, pl.col("end_ns") > launched)
    known = early.filter(pl.col("start_ns") < launched).with_columns(end_ns=edge)
    unknown = early.with_columns(
        start_ns=pl.max_horizontal("start_ns", edge),
        part=part("unrecorded"),
        named_by=pl.lit(first["id"], dtype=pl.UInt32),
        detail=pl.lit(None, dtype=pl.UInt32),
        thread=pl.lit(first["track"], dtype=pl.UInt32),
    )
    later = pieces.filter((pl.col("start_ns") >= begin) | (pl.col("end_ns") <= launched))
    return pl.concat([later, known, unknown])


def _first_launch_end(trace: Trace, first: int) -> int | None:
    """When the first kernel of the recording had been launched: that of the first record, or one that has no record."""
    links = trace.links.filter(pl.col("why") == "launch")
    events = trace.events
    ends = events["start_ns"] + events["dur_ns"]
    own = links.filter(pl.col("to") == first)["from"]
    if own.is_empty():
        return None
    calls = events.select("id", "name").filter(events["kind"] == "runtime", ends <= int(ends[own[0]]))
    lost = calls.filter(
        pl.col("name").cast(pl.String).str.contains(_LAUNCH), ~pl.col("id").is_in(links["from"].implode())
    )
    return take_smallest(take(ends, pl.concat([own, lost["id"]])))
