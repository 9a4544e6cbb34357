"""A recorded job as a graph of our engine, and the questions that the published answers are about."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path

import polars as pl

from benchmarks.ranks.hybrid.schedule import COMMUNICATION, OVER_REPLICAS, Op, schedule_of
from stepscope.ranks.job.graph import JobGraph

_SLOWEST = 0.03  # of the workers
_IMPOSSIBLE = -10_000_000  # ns: transfers that end this much before the last member came have another clock
_PLACE = ("dp_rank", "step")
_OP = ("stage", "optype", "seq_id")


@dataclass(frozen=True)
class Answer:
    """Mean step times in seconds, as recorded and without stragglers; what the slowest workers and the last stage explain of the difference."""

    tori: float
    tideal: float
    Mw: float
    Ms: float


def answer(path: Path) -> Answer:
    """What the published analysis of the file says, by our replay."""
    graph = graph_of(_read(path))
    ideal = _ideal(graph.nodes)
    original, best = graph.step_ns(), graph.step_ns(ideal)

    def explains(chosen: pl.Series) -> float:
        left = graph.step_ns(_mixed(graph, chosen, ideal))
        return (original - left) / (original - best) if original != best else 0.0

    last = graph.nodes["stage"] == graph.nodes["stage"].max()
    return Answer(original / 1e9, best / 1e9, explains(_slowest(graph, ideal)), explains(last))


def graph_of(rows: pl.DataFrame) -> JobGraph:
    """Every operation of every replica and step, with the schedule of the first."""
    nodes = rows.sort("step", "dp_rank", "stage", "start").with_row_index("node")
    first = nodes.filter(pl.col("step") == pl.col("step").min())
    schedule = schedule_of(first.filter(pl.col("dp_rank") == pl.col("dp_rank").min()))
    nodes = nodes.join(_meetings(nodes, schedule.meetings), on="node", how="left", maintain_order="left")
    return JobGraph(_timed(nodes), _edges(nodes, schedule.edges))


def _read(path: Path) -> pl.DataFrame:
    rows = pl.read_parquet(path).with_columns(pl.col("optype").cast(pl.String), start=pl.col("start_ts"))
    rows = rows.with_columns(pl.col("stage", "seq_id", "dp_rank", "gmc", "mc").cast(pl.Int64))
    return rows.with_columns(end=pl.col("start") + pl.col("duration"))


def _edges(nodes: pl.DataFrame, edges: list[tuple[Op, Op]]) -> pl.DataFrame:
    """before, after: the edges of the schedule in every replica and step."""
    before = pl.DataFrame([op for op, _ in edges], schema=_schema(), orient="row").with_row_index("edge")
    after = pl.DataFrame([op for _, op in edges], schema=_schema(), orient="row").with_row_index("edge")
    known = nodes.select("node", *_PLACE, *_OP)
    from_nodes = before.join(known, on=_OP).select("edge", *_PLACE, before="node")
    to_nodes = after.join(known, on=_OP).select("edge", *_PLACE, after="node")
    return from_nodes.join(to_nodes, on=["edge", *_PLACE]).select("before", "after")


def _meetings(nodes: pl.DataFrame, meetings: list[list[Op]]) -> pl.DataFrame:
    """node, meeting. Reductions over replicas meet with the same operation of all of them."""
    members = [(*op, number) for number, ops in enumerate(meetings) for op in ops]
    told = pl.DataFrame(members, schema={**_schema(), "told": pl.Int64}, orient="row").unique(_OP)
    rows = nodes.join(told, on=_OP, how="left", maintain_order="left")
    over = pl.col("optype").is_in(OVER_REPLICAS)
    own = pl.when(pl.col("told").is_null()).then(pl.struct(*_OP).rank("dense").cast(pl.Int64))
    place = pl.struct(
        "step", "told", own.alias("own"), replica=pl.when(~over).then("dp_rank").otherwise(-1)
    ).rank("dense")
    met = rows.filter(pl.col("told").is_not_null() | over)
    return met.select("node", meeting=place)


def _schema() -> dict[str, type[pl.DataType]]:
    return {"stage": pl.Int64, "optype": pl.String, "seq_id": pl.Int64}


def _timed(nodes: pl.DataFrame) -> pl.DataFrame:
    """With `ns`: of a meeting what its transfer takes from the arrival of the last member on."""
    seconds = (
        pl.when(pl.col("meeting").is_null())
        .then("duration")
        .otherwise(pl.col("end") - pl.col("start").max().over("meeting"))
    )
    ns = (seconds.cast(pl.Float64) * 1e9).round().cast(pl.Int64)
    return nodes.with_columns(ns=ns).with_columns(
        ns=pl.when(pl.col("meeting").is_not_null() & (pl.col("ns") <= _IMPOSSIBLE)).then(0).otherwise("ns")
    )


def _ideal(nodes: pl.DataFrame) -> pl.Series:
    """Every computation takes the mean of its kind, every communication the median."""
    mean, median = pl.col("ns").mean().over("optype"), pl.col("ns").median().over("optype")
    ideal = pl.when(pl.col("optype").is_in(COMMUNICATION)).then(median).otherwise(mean)
    return nodes.select(ideal.round().cast(pl.Int64).alias("ns")).to_series()


def _mixed(graph: JobGraph, chosen: pl.Series, ideal: pl.Series) -> pl.Series:
    """The ideal durations for the chosen nodes, those of the recording for the rest."""
    mixed: pl.Series = ideal.zip_with(chosen, graph.nodes["ns"])
    return mixed


def _slowest(graph: JobGraph, ideal: pl.Series) -> pl.Series:
    """The nodes of the slowest workers: the smaller of two slow-downs, with their replica or their stage alone as recorded."""
    slowed = {
        name: {
            value: graph.step_ns(_mixed(graph, graph.nodes[name] != value, ideal))
            for value in graph.nodes[name].unique().sort()
        }
        for name in ("dp_rank", "stage")
    }
    workers = graph.nodes.select("rank", "dp_rank", "stage").unique().sort("rank").to_dicts()
    scores = {
        each["rank"]: min(slowed["dp_rank"][each["dp_rank"]], slowed["stage"][each["stage"]])
        for each in workers
    }
    count = ceil(round(_SLOWEST * len(scores), 9))
    slow = sorted(scores, key=lambda rank: (-scores[rank], rank))[:count]
    return graph.nodes["rank"].is_in(slow)
