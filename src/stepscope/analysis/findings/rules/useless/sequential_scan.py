"""A loop of a compiled program computes a linear recurrence turn by turn, which a parallel scan computes at once."""

from __future__ import annotations

import math

import polars as pl

from stepscope.analysis.compute.classes import PRODUCTS
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.device_work import free_of_work, launched_less
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import shorten_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.xla.hlo_module import as_kernel, read_module
from stepscope.analysis.xla.ops import events_of_programs, programs_that_ran
from stepscope.analysis.xla.recurrences import Recurrence, recurrences_of
from stepscope.registers.policy.compute import SMALL_KERNEL_NS
from stepscope.registers.policy.device_findings import TURNS_OF_LOOP
from stepscope.registers.policy.findings import LOOP_LEAST, MAJORITY
from stepscope.registers.policy.repeated_work import (
    OUTSIDE_EFFICIENCY_LEAST,
    OUTSIDE_EFFICIENCY_MOST,
    OUTSIDE_LEAST,
    OUTSIDE_MOST,
)
from stepscope.registers.policy.useless_work import (
    CONVOLUTION_PASSES,
    SCAN_KERNEL_MOST_NS,
    SCAN_LEFT_MOST,
    SCAN_PASSES_LEAST,
    SCAN_PASSES_PER_LEVEL,
)

_COPIES = r"^memcpy\d*(_\w+)?$"
_WHILE = b"while"
_LEFT = ("event", "least", "most", "fewest", "launched")  # shares of the time, and of the launches


def find(case: Case) -> Finding | None:
    """Loops whose state is only multiplied and added to, if they take a good part of the step."""
    if not case.runs_programs or case.is_tpu or not case.peaks or not _repeats(case):
        return None
    loops = _recurrences(case)
    if not loops:
        return None
    mine = _chosen(case, list(loops.values()), _events_of(case, loops))
    whole = pl.concat([mine.select(*_LEFT), _held(case, loops, mine)])
    owned = free_of_work(case, whole["event"])
    ns = case.per_step(owned)
    if mine.is_empty() or ns < LOOP_LEAST * case.step_ns:
        return None
    steps = max(1, len(case.lengths))
    count = round(len(mine) / steps)
    turns = max(
        one.trips or _turns(mine, place) // steps
        for place, one in enumerate(loops.values())
        if place in mine["loop"]
    )
    detail = (
        f"{case.of_step(ns)} is spent in a loop of {turns:,} turns inside the program, whose state is only multiplied and added to:"
        f" its {count:,} kernels run one after the other, though a scan over all turns in parallel gives the same."
    )
    if any(one.held for place, one in enumerate(loops.values()) if place in mine["loop"]):
        detail += (
            " All turns have the same factor: a convolution needs no states, nor the memory that keeps them."
        )
    evidence = {"turns": turns, "kernels_per_step": count}
    return timed(case, RULE, owned, _scanned(case, whole), detail, evidence)


def _repeats(case: Case) -> bool:
    """Whether kernels that run again and again take enough of the step: else no code has to be read."""
    steps = max(1, len(case.lengths))
    often = case.kernels.drop_nulls("step").filter(pl.len().over("name") >= TURNS_OF_LOOP * steps)
    return len(often) >= TURNS_OF_LOOP


def _recurrences(case: Case) -> dict[tuple[str, int], Recurrence]:
    """The linear recurrences of the programs that ran, by program and number."""
    codes = {hlo: name for name, _, hlo in programs_that_ran(case.trace) if _WHILE in hlo}
    return {
        (name, number): one
        for hlo, name in codes.items()
        for number, one in enumerate(recurrences_of(read_module(hlo)))
        if one.trips is None or one.trips >= TURNS_OF_LOOP
    }


def _events_of(case: Case, loops: dict[tuple[str, int], Recurrence]) -> pl.DataFrame:
    """event, loop, state, dur_ns of the work of these loops in steps, with the copies between two of its kernels."""
    names = [
        (module, name, place, as_kernel(name) in one.state)
        for place, ((module, _), one) in enumerate(loops.items())
        for name in sorted(one.names | one.instructions)
    ]
    schema = {"module": pl.String, "key": pl.String, "loop": pl.UInt32, "state": pl.Boolean}
    known = pl.DataFrame(names, schema=schema, orient="row").unique(["module", "key"], keep="first")
    rows = events_of_programs(case.trace).filter(pl.col("device") == case.device)
    for key in ("name", "instruction"):
        rows = rows.join(
            known.rename({"key": key, "loop": f"loop_{key}", "state": f"state_{key}"}),
            on=["module", key],
            how="left",
            maintain_order="left",
        )
    rows = rows.select(
        "event",
        "run",
        "start_ns",
        copies=(pl.col("kind") == "copy") | pl.col("name").str.contains(_COPIES),
        loop=pl.coalesce("loop_name", "loop_instruction"),
        state=pl.coalesce("state_name", "state_instruction").fill_null(False),
    ).sort("start_ns")
    before, after = (getattr(pl.col("loop"), way)().over("run") for way in ("forward_fill", "backward_fill"))
    between = pl.when(pl.col("copies") & (before == after)).then(before)
    rows = rows.with_columns(loop=pl.coalesce("loop", between)).drop_nulls("loop")
    events = case.trace.events
    return rows.select(
        "event",
        "loop",
        "state",
        dur_ns=events["dur_ns"].gather(rows["event"]),
        step=events["step"].gather(rows["event"]),
    ).drop_nulls("step")


def _held(case: Case, loops: dict[tuple[str, int], Recurrence], mine: pl.DataFrame) -> pl.DataFrame:
    """event, least, most of what only keeps the states of all turns: a convolution needs none of it, a scan may need all."""
    chosen = {place for place in mine["loop"].unique().to_list() if place is not None}
    names = {
        (module, key)
        for place, ((module, _), one) in enumerate(loops.items())
        if place in chosen
        for name in one.held
        for key in (name, as_kernel(name))
    }
    known = pl.DataFrame(sorted(names), schema={"module": pl.String, "key": pl.String}, orient="row")
    rows = events_of_programs(case.trace).filter(pl.col("device") == case.device)
    found = pl.concat(
        rows.join(known, left_on=["module", column], right_on=["module", "key"], how="semi").select("event")
        for column in ("name", "instruction")
    ).unique(maintain_order=True)
    steps = case.trace.events["step"].gather(found["event"])
    found = found.filter(steps.is_not_null(), ~pl.col("event").is_in(mine["event"].implode()))
    none, all_ = pl.lit(0.0), pl.lit(1.0)
    return found.select("event", least=none, most=all_, fewest=none, launched=all_)


def _turns(mine: pl.DataFrame, loop: int) -> int:
    """Turns of a loop in all steps: the calls of the kernel of its state that is called most."""
    return int(mine.filter(pl.col("loop") == loop, pl.col("state"))["calls"].max() or 0)  # type: ignore[arg-type]


def _chosen(case: Case, loops: list[Recurrence], work: pl.DataFrame) -> pl.DataFrame:
    """event, loop, state, calls, least, most, fewest, launched: what a parallel scan leaves of each kernel of the loops that gain by it.

    `least` and `most` of its time, `fewest` and `launched` of its launches.
    """
    names = case.trace.events["name"].gather(work["event"])
    work = work.with_columns(name=names).with_columns(calls=pl.len().over("loop", "name"))
    found = [pl.DataFrame(schema={**work.schema, **dict.fromkeys(_LEFT[1:], pl.Float64)})]
    for place, one in enumerate(loops):
        mine = work.filter(pl.col("loop") == place)
        state = mine.filter("state")
        took = int(state["dur_ns"].sum())
        turns = _turns(mine, place)
        if turns < TURNS_OF_LOOP * max(1, len(case.lengths)) or not took:
            continue
        fewest, most = _scan_ns(case, one, turns)
        whole = int(mine["dur_ns"].sum()) + _gaps(case, mine["event"])
        if math.sqrt(fewest * most) > SCAN_LEFT_MOST * whole or _fills_device(case, mine):
            continue
        share = {"least": min(1.0, fewest / took), "most": min(1.0, most / took)}
        state = state.with_columns(pl.lit(value).alias(name) for name, value in share.items())
        outside = _outside(case, one, turns, mine.filter(~pl.col("state")))
        found += [_with_launches(each, _length(case, one, turns)) for each in (state, outside)]
    return pl.concat(found)


def _fills_device(case: Case, mine: pl.DataFrame) -> bool:
    """Whether the turns do much else beside their state, as those that add up the gradients of parts of a batch."""
    is_product = pl.col("class").is_in(PRODUCTS)
    products = case.compute.kernels.filter(is_product, pl.col("event").is_in(mine["event"].implode()))
    total = int(mine["dur_ns"].sum())
    return total > SCAN_KERNEL_MOST_NS * len(mine) or int(products["time_ns"].sum()) > MAJORITY * total


def _gaps(case: Case, events: pl.Series) -> int:
    """Time of the device before these kernels in which it does nothing."""
    items = case.plan.items.filter(pl.col("event").is_in(events.implode()))
    return int(items["gap_ns"].sum())


def _length(case: Case, one: Recurrence, turns: int) -> int:
    """Turns of one run of the loop."""
    return max(1, min(turns, one.trips or turns // max(1, len(case.lengths))))


def _with_launches(kernels: pl.DataFrame, length: int) -> pl.DataFrame:
    """`fewest` and `launched`: a kernel for each pass of the scan in place of one for each turn, and one for what is outside of it."""
    passes = (SCAN_PASSES_LEAST, SCAN_PASSES_PER_LEVEL * math.log2(max(2, length)))
    fewest, launched = (
        pl.when("state").then(min(1.0, each / length)).otherwise(1 / length) for each in passes
    )
    return kernels.with_columns(fewest=fewest, launched=launched)


def _scan_ns(case: Case, one: Recurrence, turns: int) -> tuple[float, float]:
    """What a parallel scan over the states of these turns takes at least and at most."""
    rate = case.peaks.bytes_per_s / 1e9 if case.peaks else 1.0
    length = _length(case, one, turns)
    started = SMALL_KERNEL_NS * turns / length
    states, written = (max(turns * size / rate, started) for size in (one.bytes, one.convolved or one.bytes))
    fewest = min(SCAN_PASSES_LEAST * states, CONVOLUTION_PASSES * written)
    return fewest, SCAN_PASSES_PER_LEVEL * math.log2(max(2, length)) * states


def _outside(case: Case, one: Recurrence, turns: int, rest: pl.DataFrame) -> pl.DataFrame:
    """With what the other work of the loop takes when it is done for all turns at once, before or after the scan.

    Most of it only counts, or picks and writes rows: the scan reads and writes these anyway. A long kernel may do more.
    """
    known = case.compute.kernels.select("event", "class", "time_ns", "least_ns")
    rows = rest.join(known, on="event", how="left", maintain_order="left")
    # A kernel that writes one row of an array counts as if it wrote all of it: nothing is known of its work.
    ratio = pl.col("least_ns") / pl.col("time_ns").clip(lower_bound=1)
    bound = pl.when(ratio <= 1).then(ratio).otherwise(0.0)
    product = pl.col("class").is_in(PRODUCTS).fill_null(False)
    long = (pl.col("dur_ns") >= SMALL_KERNEL_NS) & ~product
    fast, slow = (
        pl.when(product).then(bound / efficiency).otherwise(bound)
        for efficiency in (OUTSIDE_EFFICIENCY_MOST, OUTSIDE_EFFICIENCY_LEAST)
    )
    once, passes = _moving_shares(case, one, turns)
    unknown_fast, unknown_slow = (
        pl.max_horizontal(pl.lit(share), bound)
        for share, bound in ((OUTSIDE_LEAST, fast), (OUTSIDE_MOST, slow))
    )
    return rows.with_columns(
        least=pl.coalesce(once, unknown_fast).clip(upper_bound=1.0),
        most=pl.when(long).then(1.0).otherwise(pl.coalesce(passes, unknown_slow).clip(upper_bound=1.0)),
    ).select(*rest.columns, "least", "most")


def _moving_shares(case: Case, one: Recurrence, turns: int) -> tuple[pl.Expr, pl.Expr]:
    """What moving the bytes of all turns takes of kernels that only do so, once and in as many passes as a scan has; null of others.

    What CUDA copies inside a graph is a row of what goes into the state.
    """
    rate = case.peaks.bytes_per_s / 1e9 if case.peaks else 1.0
    name = pl.col("name").cast(pl.String)
    known = name.replace_strict(dict(one.moved), default=None, return_dtype=pl.Int64)
    moved = pl.when(name.str.contains(_COPIES)).then(2 * one.bytes).otherwise(known)
    taken = pl.col("dur_ns").clip(lower_bound=1)
    once = moved / rate / taken
    return once, SCAN_PASSES_LEAST * once + SMALL_KERNEL_NS / _length(case, one, turns) / taken


def _scanned(case: Case, chosen: pl.DataFrame) -> Change:
    """A few large kernels do the work, and only these are launched."""
    change = shorten_kernels(case, chosen.select("event", "least", "most"))
    return Change(
        launched_less(change.smallest, chosen, "launched"), launched_less(change.largest, chosen, "fewest")
    )


RULE: Rule[Case] = Rule(
    code="sequential-scan",
    title="A loop computes turn by turn what a parallel scan computes at once",
    turn=142,
    page="kernels",
    owns="kernels, copies and gaps of a loop of 64 turns or more in a compiled program, and of what keeps its states, if the state is a linear recurrence: each element of it is multiplied by what does not depend on it, and such things are added (running means, discounted sums, diagonal state-space models, cumulative sums). From a tenth of the step on, where a scan takes half of the loop's time at most, and the loop's kernels are mostly short and no products",
    change="the state takes 3 passes over the states of all turns at least (where all turns have the same factor, 12 over what they write out, and nothing outside of the loop that keeps the states of all turns) and twice the logarithm of their number at most, at the bandwidth of the memory; small kernels of the loop that only count, or read and write rows, take one to three passes over what they move, others 5 to 40 % of their time, long ones at most all of it, and none is launched turn by turn",
    fix={
        "jax": "Compute the recurrence h = a·h + b for all steps in parallel instead of lax.scan: jax.lax.associative_scan over the pairs (a, b) with (a1, b1), (a2, b2) → (a1·a2, a2·b1 + b2), jnp.cumsum or jnp.cumprod where there is only a sum or a product, or a convolution (by FFT if long) where a does not change. Very long sequences: in chunks, with lax.scan over the chunks.",
        "tensorflow": "Compute the recurrence h = a·h + b for all steps in parallel instead of a tf.while_loop or tf.scan: tfp.math.scan_associative over the pairs (a, b), tf.cumsum or tf.math.cumprod, or a convolution where a does not change.",
        ANY: "Compute the recurrence for all steps in parallel: an associative scan, a cumulative sum, or a convolution.",
    },
    find=find,
    needs_device=True,
)
