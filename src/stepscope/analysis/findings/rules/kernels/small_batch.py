"""Each step does too little for what it costs anyway: to update the weights, and to read them.

A product in which the batch is much smaller than the weights takes as long as it takes to read the weights, or to launch
it; the optimizer takes as long for one sample as for many. More samples in the same step cost next to nothing there. That
is throughput: the step itself does not become shorter, so that nothing is promised for it.
"""

from __future__ import annotations

import json

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import saving
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.optimizer_loop import in_optimizer
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.registers.calibration.kernels import (
    LARGE_PRODUCTS_OF_PEAK,
)
from stepscope.registers.policy.device_findings import (
    BATCH_TIMES,
    SMALL_BATCH_ROWS,
    SMALL_PRODUCTS_SHARE,
    SMALL_PRODUCTS_WORK,
    UPDATE_WORK,
    WEIGHTS_OVER_BATCH,
)
from stepscope.trace.frames import take_median
from stepscope.trace.lookup import are_named
from stepscope.trace.schema import Text

_MULTIPLIES = r"^aten::(addmm|mm|_scaled_mm)$|^dot_general$"


def find(case: Case) -> Finding | None:
    """Most of the device's work does not depend on the batch: the optimizer, and products with few rows."""
    # Work from before the recording belongs to no op, and cannot be told apart.
    known = _kernels_of_ops(case)["event"].implode()
    length = case.kernels.select("event", "dur_ns", waves="waves_per_sm").filter(pl.col("event").is_in(known))
    busy = int(length["dur_ns"].sum())
    if not busy or not case.peaks:
        return None
    products = _products(case)
    small = products.filter(pl.col("small"))
    mine = _launched_by(case, small)
    updates = _optimizer_kernels(case)
    small_ns = int(length.filter(pl.col("event").is_in(mine.implode()))["dur_ns"].sum())
    update_ns = int(length.filter(pl.col("event").is_in(updates.implode()))["dur_ns"].sum())
    mostly_small = small_ns >= SMALL_PRODUCTS_WORK * busy and len(small) >= SMALL_PRODUCTS_SHARE * len(
        products
    )
    if not mostly_small and update_ns < UPDATE_WORK * busy:
        return None
    fixed = pl.concat([mine, updates]) if mostly_small else updates
    owned = case.free(
        pl.col("part").is_in(["dispatch", "device_gap"]) | pl.col("named_by").is_in(fixed.implode())
    )
    owned = owned.filter(pl.col("part").is_in(["dispatch", "device_gap", "compute"]))
    if case.per_step(owned) < SMALL_PRODUCTS_WORK * case.step_ns:
        return None
    others = length.filter(
        ~pl.col("event").is_in(pl.concat([updates, _launched_by(case, products)]).implode())
    )
    # A kernel that does not fill the device has room for more blocks.
    times = (BATCH_TIMES * pl.col("waves").clip(upper_bound=1.0).fill_null(1.0) - 1).clip(lower_bound=0.0)
    grown = _grown_ns(case, products) + float(others.select((pl.col("dur_ns") * times).sum()).item())
    return _describe(case, owned, small if mostly_small else products, grown / max(1, len(case.lengths)))


def _describe(case: Case, owned: pl.DataFrame, products: pl.DataFrame, grown: float) -> Finding:
    owned_ns = case.per_step(owned)
    case.claim(owned)
    length = case.basis_ns
    throughput = round(max(1.0, BATCH_TIMES * length / (length + grown)), 2)
    size = int(take_median(products["batch"]))
    what, one = (
        ("updating the weights, and products", "sample")
        if case.workload != INFERENCE
        else ("products", "request")
    )
    detail = (
        f"{case.of_step(owned_ns)} takes as long for one {one} as for many: {what} with few rows, which wait for the weights"
        f" to be read. {BATCH_TIMES} times the batch gives about {throughput:.1f} times the {one}s per second."
    )
    evidence = {"rows": size, "times": BATCH_TIMES, "throughput": throughput, "names": case.top_names(owned)}
    return saving(case, RULE, owned_ns, Interval(), detail, evidence)


def _launched_by(case: Case, ops: pl.DataFrame) -> pl.Series:
    return _kernels_of_ops(case).filter(pl.col("op").is_in(ops["event"].implode()))["event"]


def _kernels_of_ops(case: Case) -> pl.DataFrame:
    """event, op: a kernel of a compiled program is the op itself."""
    own = pl.when(pl.col("event").is_in(case.ops["event"].implode())).then("event")
    return case.trace.kernels.select("event", op=pl.coalesce(pl.col("op"), own)).drop_nulls("op")


def _optimizer_kernels(case: Case) -> pl.Series:
    inside = in_optimizer(case.trace.events)
    links = case.trace.links.filter(pl.col("why") == "launch")
    return links.filter(inside.gather(links["from"]))["to"]


def _products(case: Case) -> pl.DataFrame:
    """event, flops, batch and whether that is small, of the ops that multiply matrices on the device."""
    ops = case.ops.filter(
        are_named(case.ops["name"].cast(Text), lambda names: names.str.contains(_MULTIPLIES)),
        pl.col("shapes").is_not_null(),
        pl.col("device_total_ns") > 0,
    ).select("event", "flops", "device_total_ns", shapes=pl.col("shapes").cast(pl.String))
    sides = {text: _sides(text) for text in ops["shapes"].unique()}
    known = pl.DataFrame(
        {
            "shapes": list(sides),
            "batch": [side[0] if side else None for side in sides.values()],
            "others": [side[1] if side else None for side in sides.values()],
        },
        schema={"shapes": pl.String, "batch": pl.Int64, "others": pl.Int64},
    )
    small = (pl.col("batch") <= SMALL_BATCH_ROWS) & (pl.col("others") >= WEIGHTS_OVER_BATCH * pl.col("batch"))
    return ops.join(known, on="shapes", maintain_order="left").drop_nulls("batch").with_columns(small=small)


def _sides(text: str) -> tuple[int, int] | None:
    """The smallest of a product's three sides, and the next one."""
    try:
        shapes = [shape for shape in json.loads(text) if isinstance(shape, list) and len(shape) == 2]
    except (ValueError, TypeError):
        return None
    if len(shapes) < 2 or not all(isinstance(n, int) and n > 0 for shape in shapes[-2:] for n in shape):
        return None
    (rows, inner), (_, columns) = shapes[-2:]
    least, middle, _ = sorted((rows, inner, columns))
    return least, middle


def _grown_ns(case: Case, small: pl.DataFrame) -> float:
    """How much longer the products take with more samples: nothing until their sums cost more than their reading."""
    peak = case.peaks.flops_per_s("bf16") or case.peaks.flops_per_s("fp32") if case.peaks else None
    if not peak:
        return 0.0
    ideal = small["flops"].fill_null(0) * BATCH_TIMES / (LARGE_PRODUCTS_OF_PEAK * peak) * 1e9
    return float((ideal - small["device_total_ns"]).clip(lower_bound=0).sum())


RULE: Rule[Case] = Rule(
    code="small-batch",
    title="The batch is too small for the device",
    turn=215,
    class_="advice",
    page="ops",
    owns="`dispatch`, and work that does not depend on the batch size: products with at most 32 rows and weights 16 times as large (from 30 % of the work), the optimizer (from 60 %)",
    change="eight times the batch; products take longer only if their arithmetic costs more than reading the weights, other kernels only as far as they fill the device. This is throughput: no promise for the step",
    fix={
        ANY: "Raise the batch size, several times if memory allows, and the learning rate with it; or accumulate several requests into one step. The device does more samples in the same time.",
    },
    find=find,
    needs_device=True,
)
