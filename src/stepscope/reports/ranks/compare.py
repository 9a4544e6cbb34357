"""The report's words for what shows only when ranks are held against each other: waits, clocks, the worst collectives, late ranks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import polars as pl

from stepscope.analysis.collectives.summary import bus_factor
from stepscope.analysis.options import Options
from stepscope.ranks.calls.matching import KEY
from stepscope.ranks.compare import HISTOGRAM, Compared, bin_of
from stepscope.ranks.meetings import OPERATION
from stepscope.reports.columns import capped
from stepscope.reports.model import report as model

MOST_ARRIVALS = 256  # of one collective: those that came last


def between_ranks(told: model.Collectives, found: Compared, world: int, options: Options) -> None:
    """Put everything that was compared into the section; `world` is the number of ranks of the job, 0 if unknown."""
    told.matched = found.met.count
    told.straggler = straggler_told(found)
    told.clocks = [_clock(found, rank) for rank in sorted(found.clocks)]
    told.waits = _waits(found, options)
    late = found.late.filter(pl.col("late_ns") > 0).sort(
        "late_ns", "rank", "step", descending=[True, False, False]
    )
    told.late = [
        model.LateStep(rank=rank, step=step, late_ns=ns)
        for rank, step, ns in capped(late, options.limit).select("rank", "step", "late_ns").iter_rows()
    ]
    told.worst = _worst(found, world)


def rank_figures(found: Compared) -> dict[int, dict[str, Any]]:
    """By rank: how many of its calls met others, how often it came last and how late, how long it waited and for which rank most."""
    rows = {}
    for rank in found.ranks:
        longest = rank.waits.group_by("last_rank").agg(pl.col("wait_ns").sum())
        longest = longest.sort("wait_ns", "last_rank", descending=[True, False])
        met = rank.matched > 0
        rows[rank.rank] = {
            "matched": rank.matched,
            "last": rank.last,
            "late_ns": rank.late_ns if met else None,
            "wait_ns": rank.wait_ns if met else None,
            "waits_for": longest["last_rank"][0] if len(longest) else None,
        }
    return rows


def _sized(meetings: pl.DataFrame, world: int) -> pl.DataFrame:
    """With `members`: the size of the group, also where it is not recorded but every rank of the job took part."""
    everyone = pl.when(pl.col("ranks") == world).then("ranks")
    return meetings.with_columns(members=pl.coalesce("group_size", everyone))


def transfers(found: Compared, world: int) -> pl.DataFrame:
    """By name, group, group_size and dtype: how long ranks waited in all, and how fast the transfers were without that."""
    everyone = pl.when((pl.col("fewest") == world) & (pl.col("most") == world)).then(pl.lit(world, pl.Int32))
    rows = found.met.operations.select(
        *OPERATION,
        "wait_ns",
        "transfer_ns",
        members=pl.coalesce("group_size", everyone),
        transfer_gb_per_s=pl.col("sized_bytes") / pl.col("sized_ns"),
    )
    known = pl.when(pl.col("transfer_gb_per_s").is_finite() & (pl.col("transfer_gb_per_s") > 0))
    rows = rows.with_columns(transfer_gb_per_s=known.then("transfer_gb_per_s"))
    bus = pl.col("transfer_gb_per_s") * bus_factor("members")
    rows = rows.with_columns(transfer_bus_gb_per_s=bus).drop("members")
    return rows.join(_histograms(found), on=OPERATION, how="left", nulls_equal=True, maintain_order="left")


def _histograms(found: Compared) -> pl.DataFrame:
    """By operation the arrivals of all ranks by how long they waited, as a list without zeros at its end."""
    every = pl.concat([pl.DataFrame(schema=HISTOGRAM), *(rank.histogram for rank in found.ranks)])
    sums = every.group_by(*OPERATION, "bin").agg(pl.col("arrivals").sum())
    told = [
        (key, _counted(dict(rows.select("bin", "arrivals").iter_rows())))
        for key, rows in sums.group_by(*OPERATION)
    ]
    schema = {name: HISTOGRAM[name] for name in OPERATION} | {"wait_histogram": pl.List(pl.Int64)}
    return pl.DataFrame([(*key, counts) for key, counts in told], schema=schema, orient="row")


def _counted(counts: dict[int, int]) -> list[int]:
    return [counts.get(at, 0) for at in range(max(counts, default=-1) + 1)]


def straggler_told(found: Compared) -> model.Straggler | None:
    """The straggler with how often it came last, and to what."""
    late = found.straggler
    if late is None:
        return None
    mine = next(rank for rank in found.ranks if rank.rank == late.rank)
    last = found.met.last.filter(pl.col("last_rank") == late.rank)
    names = last.sort("late_ns", "name", descending=[True, False])
    facts = asdict(late)
    kernels = facts.pop("kernels")
    ratios = {
        "work_ratio": late.work_ratio,
        "blocks_per_launch_ratio": kernels["blocks"],
        "launches_ratio": kernels["launches"],
    }
    return model.Straggler(
        **{
            **facts,
            "ranks": list(late.ranks),
            "late_in": list(late.late_in),
            "parts": dict(late.parts),
            "share": round(late.share, 6),
        }
        | {name: None if ratio is None else round(ratio, 3) for name, ratio in ratios.items()},
        last=mine.last,
        matched=mine.matched,
        always=late.always,
        names=names["name"].head(3).to_list(),
    )


def _clock(found: Compared, rank: int) -> model.RankClock:
    clock = found.clocks[rank]
    return model.RankClock(
        rank=rank,
        aligned=clock.aligned,
        offset_ns=clock.offset_ns,
        drift_ppm=round(clock.drift * 1e6, 3),
        residual_ns=clock.residual_ns,
        error_ns=clock.error_ns,
        anchors=clock.anchors,
    )


def _waits(found: Compared, options: Options) -> list[model.RankWait]:
    rows = pl.concat([rank.waits for rank in found.ranks]).group_by("rank", "last_rank")
    summed = rows.agg(pl.col("wait_ns", "calls").sum()).filter(pl.col("wait_ns") > 0)
    ordered = summed.sort("wait_ns", "rank", "last_rank", descending=[True, False, False])
    return [
        model.RankWait(
            rank=row["rank"], for_rank=row["last_rank"], wait_ns=row["wait_ns"], calls=row["calls"]
        )
        for row in capped(ordered, options.limit).iter_rows(named=True)
    ]


def _worst(found: Compared, world: int) -> list[model.Meeting]:
    seen = pl.concat([rank.arrivals for rank in found.ranks]).sort("arrival_ns", "rank")
    by_key = dict(seen.group_by(*KEY))
    rows = _sized(found.met.worst, world).with_columns(factor=bus_factor("members"))
    return [_meeting(row, by_key) for row in rows.iter_rows(named=True)]


def _spread(arrivals: pl.DataFrame, first_ns: int) -> list[int]:
    after = arrivals.select(after_ns=pl.col("arrival_ns") - first_ns).select(bin=bin_of("after_ns"))["bin"]
    return _counted(dict(after.value_counts().iter_rows()))


def _meeting(row: dict[str, Any], seen: dict[tuple[Any, ...], pl.DataFrame]) -> model.Meeting:
    arrivals = seen[tuple(row[name] for name in KEY)]
    transfer, size, factor = row["transfer_ns"], row["bytes"], row["factor"]
    rate = size / transfer if size and transfer else None
    return model.Meeting(
        **{
            name: row[name]
            for name in ("name", "group", "group_size", "step", "ranks", "bytes", "first_rank", "last_rank")
        },
        **{name: row[name] for name in ("late_ns", "skew_ns", "transfer_ns")},
        sequence=row["number"] if row["place"] < 0 else None,
        wait_ns=row["mean_wait_ns"],
        exposed_share=round(row["exposed_ns"] / row["total_ns"], 6) if row["total_ns"] else None,
        algorithm_gb_per_s=rate,
        bus_gb_per_s=rate * factor if rate is not None and factor is not None else None,
        spread_histogram=_spread(arrivals, row["first_ns"]),
        arrivals=[
            model.Arrival(rank=rank, after_ns=at - row["first_ns"], dur_ns=dur)
            for rank, at, dur in arrivals.select("rank", "arrival_ns", "dur_ns")
            .tail(MOST_ARRIVALS)
            .iter_rows()
        ],
    )
