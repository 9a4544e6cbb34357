"""Passes of a compiled model that one pass over all of their inputs would replace.

Either a program runs several times in a row, and another one takes all results; or the program itself multiplies its weights several
times. One pass reads the weights once and launches as much as one of them does: it gains until its sums take as long as reading.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import polars as pl

from stepscope.analysis.compute.classes import PRODUCTS
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.device_work import LAUNCHING, free_of_work
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.kernels.device_peaks import Peaks
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.serving.workload import TRAINING
from stepscope.analysis.xla.hlo_module import Module, Shape, read_module
from stepscope.analysis.xla.loops import root_of
from stepscope.analysis.xla.ops import events_of_programs, programs_that_ran
from stepscope.analysis.xla.shared_weights import SharedWeights, shared_weights
from stepscope.lazy import dataclass
from stepscope.registers.policy.compute import BATCHED_PASSES_MOST, SMALL_KERNEL_NS
from stepscope.registers.policy.findings import (
    BATCHED_EFFICIENCY_LEAST,
    BATCHED_EFFICIENCY_MOST,
    LOOP_LEAST,
    MAJORITY,
)
from stepscope.registers.policy.repeated_work import PASSES_LEFT_MOST, SHARED_WEIGHTS_LEAST, UNSURE_PASSES

_TITLE = "The model runs once for each input, where one batch would do"
_PRODUCTS = {
    "op": pl.String,
    "shapes": pl.String,
    "flops_": pl.Float64,
    "weight": pl.Float64,
    "rest": pl.Float64,
    "format": pl.String,
    "sum": pl.Boolean,
}


_FORMATS = {"8": "fp8", "16": "bf16", "32": "tf32", "64": "fp64"}  # by bits
TRAINS = (b"transpose(jvp", b"gradient_tape")


@dataclass(frozen=True)
class Passes:
    """`work`: event, sure (one pass surely has it once), again (it is of another pass than the first). `times`: how many passes.

    `known`: the products of the program. `certainty`: how sure it is that they are passes with the same weights.
    """

    work: pl.DataFrame
    times: int
    known: SharedWeights
    detail: str
    certainty: float = 1.0


def find_passes(case: Case, rule: Rule[Case]) -> Finding | None:
    """A finding about the passes that take most of the step."""
    if case.workload == TRAINING or case.is_tpu or not case.peaks or case.kernels.is_empty():
        return None
    codes = _codes(case)
    rows = _rows(case) if codes else pl.DataFrame()
    if rows.is_empty():
        return None
    found = _several_runs(case, rows, codes) or _several_uses(case, rows, codes)
    if found is None:
        return None
    chosen = chosen_of(case, found)
    again = found.work.filter("again")["event"]
    owned = free_of_work(case, again)
    ns = case.per_step(owned)
    if ns < LOOP_LEAST * case.step_ns or left_of(chosen) > PASSES_LEFT_MOST:
        return None
    change = Change(
        _joined(case, chosen, "most", min(1.0, BATCHED_PASSES_MOST / found.times)),
        _joined(case, chosen, "least", 1 / found.times),
    )
    made = timed(
        case, rule, owned, change, f"{case.of_step(ns)} {found.detail}", {"passes": found.times}, title=_TITLE
    )
    made.certainty *= found.certainty
    return made


def _codes(case: Case) -> dict[str, Module]:
    """The programs that ran, by name; of a name that several have none, and none at all where one computes gradients."""
    found: dict[str, set[bytes]] = {}
    for name, _, hlo in programs_that_ran(case.trace):
        found.setdefault(name, set()).add(hlo)
    if any(sign in hlo for codes in found.values() for hlo in codes for sign in TRAINS):
        return {}
    return {name: read_module(next(iter(codes))) for name, codes in found.items() if len(codes) == 1}


def _rows(case: Case) -> pl.DataFrame:
    """event, module, run, start_ns, step of the device's work in steps, in order."""
    rows = events_of_programs(case.trace).filter(pl.col("device") == case.device)
    rows = rows.select("event", "module", "run", "start_ns").with_columns(
        step=case.trace.events["step"].gather(rows["event"])
    )
    return rows.drop_nulls(["run", "step"]).sort("start_ns")


def _several_runs(case: Case, rows: pl.DataFrame, codes: dict[str, Module]) -> Passes | None:
    """A program that runs as many times in a row again and again, whose results the next program takes together."""
    runs = rows.group_by("run", maintain_order=True).agg(pl.col("module", "step").first())
    new = (pl.col("module") != pl.col("module").shift()) | (pl.col("step") != pl.col("step").shift())
    runs = runs.with_columns(stretch=new.fill_null(True).cum_sum())
    runs = runs.with_columns(place=pl.int_range(pl.len()).over("stretch"), times=pl.len().over("stretch"))
    stretches = runs.unique("stretch", keep="first", maintain_order=True).with_columns(
        following=pl.when(pl.col("step") == pl.col("step").shift(-1)).then(pl.col("module").shift(-1))
    )
    longest = _longest_program(case, rows)
    mine = stretches.filter(pl.col("module") == longest)
    usual = mine.group_by("times", "following").len().sort("len", "times", descending=True)
    if longest not in codes or usual.is_empty():
        return None
    times, following, count = usual.row(0)
    # A recording cuts the run during which a step begins in two.
    regular = times > 1 and count > MAJORITY * len(mine)
    if not regular or following not in codes or not _takes_all(codes[longest], codes[following], times):
        return None
    known = shared_weights(codes[longest])
    if known.weights < SHARED_WEIGHTS_LEAST:  # an op that is called on its own, with other weights each time
        return None
    chosen = runs.filter((pl.col("module") == longest) & (pl.col("times") == times))
    work = rows.join(chosen.select("run", "place"), on="run", maintain_order="left")
    work = work.select("event", sure=pl.lit(True), again=pl.col("place") > 0)
    detail = (
        f"is spent in further runs of {longest}: it runs {times} times in a row, none of which needs another, and {following}"
        " takes the results together."
    )
    return Passes(work, times, known, detail, UNSURE_PASSES)


def _longest_program(case: Case, rows: pl.DataFrame) -> str:
    """The program that takes most of the device's time."""
    length = rows.select("module", ns=case.trace.events["dur_ns"].gather(rows["event"]))
    ranked = length.group_by("module").agg(pl.col("ns").sum()).sort("ns", "module", descending=True)
    return str(ranked["module"][0])


def _takes_all(program: Module, following: Module, times: int) -> bool:
    """Whether the next program is given as many arrays as these runs return, beside the one that all of them were given.

    Where a run could be given what the run before it returned, the next program would need the last result alone; it takes the first
    input as well where the runs do not depend on one another.
    """
    results = results_of(program)
    if len(results) != 1:
        return False
    result = results[0]
    could_be_given = any(shape == result for shape in given_to(program))
    taken = sum(shape == result for shape in given_to(following))
    return taken >= times + could_be_given


def results_of(module: Module) -> list[Shape]:
    """The arrays that a program returns."""
    root = root_of(module.instructions(module.entry))
    return list(root.shape.arrays()) if root is not None else []


def given_to(module: Module) -> list[Shape]:
    """The arrays that a program is given."""
    return [
        shape
        for one in module.instructions(module.entry)
        if one.opcode == "parameter"
        for shape in one.shape.arrays()
    ]


def _several_uses(case: Case, rows: pl.DataFrame, codes: dict[str, Module]) -> Passes | None:
    """A program that multiplies most of its weights several times."""
    longest = _longest_program(case, rows)
    if longest not in codes:
        return None
    known = shared_weights(codes[longest])
    if known.times == 1:
        return None
    work = rows.filter(pl.col("module") == longest).join(
        _named(case), on="event", how="left", maintain_order="left"
    )
    work = _with_mark(work, known.kernels, "sure")
    place = pl.int_range(pl.len()).over("run", "op", "shapes")
    work = work.select("event", "sure", again=pl.col("sure") & (place % known.times > 0))
    detail = (
        f"is spent in further uses of the same weights: {longest} multiplies them {known.times} times, with inputs of the same shape"
        " that do not depend on one another."
    )
    return Passes(work, known.times, known, detail)


def _named(case: Case) -> pl.DataFrame:
    """event, op, shapes of the device's work."""
    return case.ops.select(
        "event", pl.col("name").cast(pl.String).alias("op"), pl.col("shapes").cast(pl.String)
    ).unique("event")


def _with_mark(rows: pl.DataFrame, kernels: Collection[tuple[str, str | None]], name: str) -> pl.DataFrame:
    """With a column that says whether op and shapes of a row are among these."""
    known = pl.DataFrame(list(kernels), schema={"op": pl.String, "shapes": pl.String}, orient="row")
    known = known.with_columns(pl.lit(True).alias(name))
    joined = rows.join(known, on=["op", "shapes"], how="left", maintain_order="left", nulls_equal=True)
    return joined.with_columns(pl.col(name).fill_null(False))


def chosen_of(case: Case, found: Passes) -> pl.DataFrame:
    """event, time_ns, least, most: what one pass for all inputs leaves of the time of each kernel."""
    products = [
        (op, shapes, one.flops, one.weight_bytes, one.other_bytes, _FORMATS.get(f"{one.bits}"), one.is_sum)
        for (op, shapes), one in found.known.products.items()
    ]
    facts = case.compute.kernels.select("event", "class", "precision", "least_ns", "time_ns")
    rows = found.work.join(facts, on="event", maintain_order="left").filter(pl.col("time_ns") > 0)
    rows = rows.join(_named(case), on="event", how="left", maintain_order="left").join(
        pl.DataFrame(products, schema=_PRODUCTS, orient="row"),
        on=["op", "shapes"],
        how="left",
        maintain_order="left",
        nulls_equal=True,
    )
    rows = _with_mark(rows, found.known.loads, "load")
    rate = case.peaks.bytes_per_s / 1e9 if case.peaks else 1.0
    reading = (pl.col("weight") / found.times + pl.col("rest")) / rate
    joined = pl.max_horizontal(pl.col("flops_") / _flops_per_ns(case, rows), reading)
    long = pl.when(pl.col("time_ns") < SMALL_KERNEL_NS).then(0.0).otherwise(pl.col("time_ns"))
    product = (pl.col("class").is_in(PRODUCTS) | pl.col("sum")) & pl.col("weight").is_not_null()
    # More than it took is of a whole array of which the kernel reads or writes a part.
    own = pl.when(pl.col("least_ns") <= pl.col("time_ns")).then("least_ns")
    needed = pl.when(product).then(joined).otherwise(pl.coalesce(own, long)) / pl.col("time_ns")

    def share(least: float, efficiency: float) -> pl.Expr:
        return pl.max_horizontal(pl.lit(least), needed / efficiency).clip(upper_bound=1.0)

    # A kernel far from its bound may still keep all of the device busy: at worst one for all takes the geometric mean of one and all.
    worst = share(1 / math.sqrt(found.times), BATCHED_EFFICIENCY_LEAST)
    # What only takes weights, as the copy of a layer's out of those of all layers, is the same in each pass.
    once = pl.col("sure") & pl.col("load")
    return rows.select(
        "event",
        "time_ns",
        least=pl.when(once).then(1 / found.times).otherwise(share(1 / found.times, BATCHED_EFFICIENCY_MOST)),
        most=pl.when(once).then(1 / found.times).when("sure").then(worst).otherwise(1.0),
    )


def _flops_per_ns(case: Case, rows: pl.DataFrame) -> pl.Expr:
    """The peak of each kernel's number format; where that is not known, of what is multiplied."""
    formats = pl.concat([rows["precision"], rows["format"]]).unique().drop_nulls().to_list()
    peaks = case.peaks or Peaks("", 1.0)
    known = {name: peaks.own_flops_per_s(name) for name in formats}
    known["tf32"] = known.get("tf32") or peaks.flops_per_s("fp32")  # some devices have no units for it
    rates = {name: rate / 1e9 for name, rate in known.items() if rate}

    def rate(column: str) -> pl.Expr:
        found: pl.Expr = pl.col(column).replace_strict(rates, default=None, return_dtype=pl.Float64)
        return found

    return pl.coalesce(rate("precision"), rate("format"))


def left_of(chosen: pl.DataFrame) -> float:
    """What one pass takes of the time of all passes, in the middle of best and worst."""
    time = pl.col("time_ns")
    left = (time * (pl.col("least") * pl.col("most")).sqrt()).sum() / time.sum().clip(lower_bound=1)
    return float(chosen.select(left).item()) if len(chosen) else 1.0


def _joined(case: Case, chosen: pl.DataFrame, left: str, launches: float) -> Plan:
    """The steps in which kernels take so much of their time, and so much is launched."""
    items = case.plan.items.join(chosen.select("event", left), on="event", how="left", maintain_order="left")
    mine = items[left].is_not_null().gather(case.plan.host["item"])
    plan = case.plan.with_device(pl.lit(True), pl.lit(items[left].fill_null(1.0)))
    return plan.with_host(pl.lit(mine) & pl.col("cause").is_in(LAUNCHING), launches)
