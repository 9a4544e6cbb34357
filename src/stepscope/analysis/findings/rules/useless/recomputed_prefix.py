"""Generation that computes all tokens again for each new one, without a cache of keys and values."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.loops.function_loops import PREFIX_CODE, PREFIX_FIX, PREFIX_TITLE
from stepscope.analysis.findings.loops.growing_products import linear_calls, tokens_in
from stepscope.analysis.findings.loops.growing_texts import find_growing_text
from stepscope.analysis.findings.programs.prefixes import programs_over_prefixes
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.registers.policy.repeated_work import (
    TOKEN_KERNEL_LEAST_NS,
    TOKEN_KERNEL_MOST_NS,
    TOKEN_OF_BOUND_LEAST,
    TOKEN_OF_BOUND_MOST,
)


def find(case: Case) -> Finding | None:
    """The same weights are multiplied by one more row per sequence, call by call."""
    if case.device is None:
        return _on_host(case)
    if not case.peaks or not case.peaks.bytes_per_s:
        return None
    if case.trace.info.framework == "jax":
        return _in_programs(case, case.peaks.bytes_per_s)
    if case.workload != INFERENCE or case.trace.info.framework != "pytorch":
        return None
    tokens = tokens_in(linear_calls(case))
    if tokens is None:
        return None
    why = f"computes all of about {tokens:,.0f} tokens again to get one more."
    return of_kernels(case, RULE, _chosen(case, tokens), why, evidence={"tokens": round(tokens)})


def _on_host(case: Case) -> Finding | None:
    """Where a CPU computes the ops; functions of TensorFlow are found with other loops."""
    if case.workload != INFERENCE or case.trace.info.framework != "pytorch":
        return None
    return find_growing_text(case, RULE)


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
    """The rows with least and most: the work of one position, and in one call for each new text that of the prompt.

    Each call writes a token, so that the prompt has the positions that no call writes; at worst, that call takes as long as before.
    """
    kept = pl.col("kept_bytes") / bytes_per_s * 1e9
    least, most = _of_token(1 / pl.col("length"), kept, pl.col("dur_ns").clip(lower_bound=1))
    prompt = (1 - pl.col("calls") / pl.col("length")).clip(lower_bound=0.0)
    first = pl.col("texts") / pl.col("calls")
    return rows.with_columns(
        least=(least + prompt * first).clip(upper_bound=1.0),
        most=(most + first).clip(upper_bound=1.0),
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


def _weights(case: Case) -> pl.DataFrame:
    """event, weight_bytes of the kernels of such products."""
    calls = linear_calls(case).select(op="event", weight_bytes=2 * pl.col("weight_numbers"))
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
    turn_without_device=83,
    page="ops",
    owns="all kernels of a generation loop in which the products gain one row per sequence from call to call; on a CPU, ops of PyTorch that are given all tokens, in all turns of such a loop but those over a prompt (recurrent layers, too; or products over a text of a fixed length, of which each turn picks the position behind that of the turn before), and the runs of a TensorFlow function that execute more ops each time, mostly the same number. In JAX, kernels over all positions in a program that is given whole numbers of a fixed length, attends causally over them, and is called again once one of them is written in each row (by itself, in a loop inside, or by another program)",
    change="each kernel takes its time divided by the number of tokens, but no less than a kernel of one token does (2 to 4 µs), or than reading its weights at 40 to 80 % of memory bandwidth; in JAX products also read the keys and values, and of one call the share of the prompt remains, at worst all of it (nothing of it where each step is one token more of texts that go on from step to step). On a CPU, an op of PyTorch takes once to twice its share of one token, but no less than 4 to 30 µs, than reading its weights at 3 to 12 GB/s, or, of a recurrent layer at worst, a third of its time. Of the TensorFlow function, one run per step remains, and for each other two to eight times the share of one item",
    fix=PREFIX_FIX,
    find=find,
)
