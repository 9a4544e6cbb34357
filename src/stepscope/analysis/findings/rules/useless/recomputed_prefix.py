"""Generation that computes all tokens again for each new one, without a cache of keys and values."""

from __future__ import annotations

import math

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.loops.function_loops import PREFIX_CODE, PREFIX_FIX, PREFIX_TITLE
from stepscope.analysis.findings.programs.prefixes import programs_over_prefixes
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.repeated_work import (
    GROWING_CALLS_LEAST,
    GROWING_PREFIXES,
    PREFIX_LEAST,
    TOKEN_KERNEL_LEAST_NS,
    TOKEN_KERNEL_MOST_NS,
    TOKEN_OF_BOUND_LEAST,
    TOKEN_OF_BOUND_MOST,
)
from stepscope.trace.frames import take_mean

_LINEAR = ("aten::linear", "aten::mm", "aten::addmm")


def find(case: Case) -> Finding | None:
    """The same weights are multiplied by one more row per sequence, call by call."""
    if not case.peaks or not case.peaks.bytes_per_s:
        return None
    if case.trace.info.framework == "jax":
        return _in_programs(case, case.peaks.bytes_per_s)
    if case.workload != INFERENCE or case.trace.info.framework != "pytorch":
        return None
    tokens = _tokens(case)
    if tokens is None:
        return None
    why = f"computes all of about {tokens:,.0f} tokens again to get one more."
    return of_kernels(case, RULE, _chosen(case, tokens), why, evidence={"tokens": round(tokens)})


def _in_programs(case: Case, bytes_per_s: float) -> Finding | None:
    """Programs that are given all tokens of a text, padded to one length, and the kernels over all positions in them."""
    found = [_of_text(each, bytes_per_s) for each in programs_over_prefixes(case)]
    if not found:
        return None
    tokens = max(int(rows["length"].max()) for rows in found)  # type: ignore[arg-type]
    why = f"computes all of {tokens:,} positions again to get one more token."
    chosen = pl.concat(found).select("event", "least", "most")
    return of_kernels(case, RULE, chosen, why, evidence={"tokens": tokens})


def _of_text(rows: pl.DataFrame, bytes_per_s: float) -> pl.DataFrame:
    """The rows with least and most: the work of one position, and in one call that of the prompt.

    Each call writes a token, so that the prompt has the positions that no call writes; at worst, that call takes as long as before.
    """
    kept = pl.col("kept_bytes") / bytes_per_s * 1e9
    least, most = _of_token(1 / pl.col("length"), kept, pl.col("dur_ns").clip(lower_bound=1))
    prompt = (1 - pl.col("calls") / pl.col("length")).clip(lower_bound=0.0)
    return rows.with_columns(
        least=(least + prompt / pl.col("calls")).clip(upper_bound=1.0),
        most=(most + 1 / pl.col("calls")).clip(upper_bound=1.0),
    )


def _of_token(share: pl.Expr, read_ns: pl.Expr, taken: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Least and most of the time `taken` that the work of one token takes: what it reads, but no less than a small kernel does."""
    return (
        pl.max_horizontal(share, TOKEN_KERNEL_LEAST_NS / taken, read_ns / TOKEN_OF_BOUND_MOST / taken),
        pl.max_horizontal(2 * share, TOKEN_KERNEL_MOST_NS / taken, read_ns / TOKEN_OF_BOUND_LEAST / taken),
    )


def _chosen(case: Case, tokens: float) -> pl.DataFrame:
    """event, least, most: each kernel does the work of one token, but no faster than its weights are read or it starts."""
    kernels = case.compute.kernels.filter(pl.col("time_ns") > 0)
    weights = pl.col("weight_bytes").fill_null(0) / case.peaks.bytes_per_s * 1e9  # type: ignore[union-attr]
    least, most = _of_token(pl.lit(1 / tokens), weights, pl.col("time_ns"))
    rows = kernels.join(_weights(case), on="event", how="left", maintain_order="left")
    return rows.select(
        "event",
        least=least.clip(upper_bound=1.0),
        most=most.clip(upper_bound=1.0),
    )


def _calls(case: Case) -> pl.DataFrame:
    """event, start_ns, weight, rows, weight_bytes of the products with a weight, in the order in which they are called."""
    ops = case.ops.filter(pl.col("name").cast(pl.String).is_in(_LINEAR), pl.col("step").is_not_null())
    calls = ops.select("event", name=pl.col("name").cast(pl.String), shapes=pl.col("shapes").cast(pl.String))
    distinct = calls.select("name", "shapes").drop_nulls().unique(maintain_order=True)
    sides = [_sides(*each) for each in distinct.iter_rows()]
    table = distinct.with_columns(
        weight=pl.Series(
            [
                f"{name} {found[1:]}" if found else None
                for name, found in zip(distinct["name"], sides, strict=True)
            ],
            dtype=pl.String,
        ),
        rows=pl.Series([found[0] if found else None for found in sides], dtype=pl.Int64),
        weight_bytes=pl.Series(
            [2 * found[1] * found[2] if found else None for found in sides], dtype=pl.Int64
        ),
    )
    found = calls.join(table, on=["name", "shapes"]).drop_nulls("rows")
    return found.with_columns(start_ns=case.trace.events["start_ns"].gather(found["event"])).sort("start_ns")


def _sides(name: str, text: str) -> tuple[int, int, int] | None:
    """Rows of the input, and the sides of the weight."""
    try:
        shapes = msgspec.json.decode(text, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return None
    given = shapes[1:] if name == "aten::addmm" else shapes
    if len(given) < 2 or len(given[0]) < 2 or len(given[1]) != 2 or min(given[0] + given[1]) <= 0:
        return None
    return math.prod(given[0][:-1]), given[1][0], given[1][1]


def _tokens(case: Case) -> float | None:
    """How many tokens a sequence has, if it grows by one from call to call; None if it does not."""
    calls = _calls(case)
    lengths = calls.group_by("weight").agg(
        times=pl.col("rows").n_unique(), rows=pl.col("rows").unique().mean(), first=pl.col("rows").first()
    )
    growing = lengths.join(_growth(calls), on="weight").filter(
        pl.col("times") >= GROWING_PREFIXES,
        pl.col("first") % pl.col("grown") == 0,
        pl.col("first") >= PREFIX_LEAST * pl.col("grown"),
    )
    mine = calls["weight"].is_in(growing["weight"].implode())
    if growing.is_empty() or int(mine.sum()) <= MAJORITY * len(calls):
        return None
    return take_mean(growing["rows"] / growing["grown"])


def _growth(calls: pl.DataFrame) -> pl.DataFrame:
    """weight, grown: by how many rows its products grow in nearly all calls that differ from the one before.

    The others begin the next request, whose prompt has a length of its own.
    """
    grown = calls.select("weight", grown=pl.col("rows").diff().over("weight")).filter(pl.col("grown") != 0)
    usual = grown.group_by("weight", "grown").len().with_columns(of=pl.col("len").sum().over("weight"))
    return usual.filter(pl.col("grown") > 0, pl.col("len") >= GROWING_CALLS_LEAST * pl.col("of")).select(
        "weight", "grown"
    )


def _weights(case: Case) -> pl.DataFrame:
    """event, weight_bytes of the kernels of such products."""
    calls = _calls(case).select("weight_bytes", op="event")
    return (
        case.trace.kernels.select("event", "op")
        .join(calls, on="op")
        .select("event", "weight_bytes")
        .unique("event")
    )


RULE: Rule[Case] = Rule(
    code=PREFIX_CODE,
    title=PREFIX_TITLE,
    turn=179,
    page="ops",
    owns="all kernels of a generation loop in which the products gain one row per sequence from call to call; on a CPU, the runs of a TensorFlow function that execute more ops each time, mostly the same number. In JAX, kernels over all positions in a program that is given whole numbers of a fixed length, attends causally over them, and is called again once one of them is written in each row (by itself, in a loop inside, or by another program)",
    change="each kernel takes its time divided by the number of tokens, but no less than a kernel of one token does (2 to 4 µs), or than reading its weights at 40 to 80 % of memory bandwidth; in JAX products also read the keys and values, and of one call the share of the prompt remains, at worst all of it. Of the TensorFlow function, one run per step remains, and for each other two to eight times the share of one item",
    fix=PREFIX_FIX,
    find=find,
    needs_device=True,
)
