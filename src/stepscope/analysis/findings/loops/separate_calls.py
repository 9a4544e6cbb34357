"""A compiled model that Python calls for one input after the other, where one call would take all: a policy for each of many robots.

That none of the calls needs another one is known by their shapes and by what the host does between them. No result has the shape of
an input, so that no call is given what another returned, and the host does nothing with what it reads: it calls no other function, and
no program but those that cut the next input out of an array.
"""

from __future__ import annotations

import math

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.loops.joined_passes import (
    TRAINS,
    Passes,
    chosen_of,
    given_to,
    left_of,
    results_of,
)
from stepscope.analysis.findings.loops.picked_rows import (
    RowPrograms,
    cuts_weights,
    inputs_of,
    row_programs,
)
from stepscope.analysis.findings.programs.program_runs import ProgramRuns, program_runs
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.host.causes import host_codes, is_wait
from stepscope.analysis.host.functions import where
from stepscope.analysis.host.program_calls import PROGRAM_CALLS, name_call
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.xla.hlo_module import Module, read_module
from stepscope.analysis.xla.repeated_calls import codes_by_name
from stepscope.analysis.xla.shared_weights import shared_weights
from stepscope.lazy import dataclass
from stepscope.native.host import replay as native
from stepscope.native.host.lineage import FRAMEWORK
from stepscope.registers.policy.findings import (
    BATCHED_EFFICIENCY_LEAST,
    BATCHED_EFFICIENCY_MOST,
    LOOP_ITERATIONS,
    LOOP_LEAST,
    MAJORITY,
    TOP_NAMES,
)
from stepscope.registers.policy.repeated_work import (
    FLOPS_OF_ONE_INPUT,
    PASSES_LEFT_MOST,
    SHARED_WEIGHTS_LEAST,
)
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, sums_below

_TITLE = "A Python loop calls the model for each input, where one batch would do"
_FIX = "Stack the inputs and call the model once for all of them, with jax.vmap(model, in_axes=(None, 0)) if it takes a single one, and fetch all results together."
_FIX_OF_ROWS = "Call the model once for the whole array that its inputs are rows of, with jax.vmap(model, in_axes=(None, 0)) if it takes a single one: each index into an array of JAX is a program of its own."
_KEEPS = r"(?i)\bappend\b|^\$builtins len$"  # what a list or a dictionary does with a result
_ITERATES = r"^\$array\.py:\d+ (__iter__|_chunk_iter|<genexpr>)$"  # over the rows of an array, most of which are cut already
_SENDS = r"BufferFromHostBuffer\(\w+\[([\d,]*)\]"
_BY_SHAPE, _BESIDE_MODEL = "by shape", "beside the model"
_IDLE = ("sync", "dispatch", "copy", "unexplained", "device_gap", "python")


@dataclass(frozen=True)
class _Calls:
    """`rows`: of each call start_ns, end_ns (where the next begins, or its result has been read), caller, place in a row, times (its length).

    `stacks`: start_ns, end_ns of what puts the results of a row together. `are_cut`: inputs are cut out of arrays on the device.
    """

    name: str
    module: Module
    rows: pl.DataFrame
    stacks: pl.DataFrame
    are_cut: bool

    @property
    def times(self) -> int:
        return int(self.rows["times"].median() or 0)  # type: ignore[arg-type]


def find_separate_calls(case: Case, rule: Rule[Case]) -> Finding | None:
    """A finding about a program that takes most of the runs of a step, called many times in a row."""
    runs = program_runs(case) if case.peaks is not None else None
    calls = _find_calls(case, runs) if runs is not None else None
    if runs is None or calls is None or calls.times < LOOP_ITERATIONS:
        return None
    again = calls.rows.filter(pl.col("place") > 0).select("start_ns", "end_ns")
    both = pl.concat([again, calls.stacks]).sort("start_ns")
    free = case.free(pl.col("part").is_in(_IDLE))
    owned = free.filter(within(free["start_ns"], both["start_ns"], both["end_ns"]))
    ns = case.per_step(owned)
    chosen = _chosen(case, runs, calls)
    if ns < LOOP_LEAST * case.step_ns or chosen is None:
        return None
    name, count = calls.name.removeprefix("jit_"), len(calls.rows) / runs.steps
    detail = (
        f"{case.of_step(ns)} passes in calls of {name} that none needs another one of: a step calls it {count:,.0f} times, "
        f"{calls.times:,.0f} times in a row, each time for another input."
    )
    change = Change(_joined(case, chosen, again, "most"), _joined(case, chosen, both, "least"))
    found = timed(case, rule, owned, change, detail, {"iterations": calls.times}, title=_TITLE)
    found.where = where(case.trace, calls.rows["caller"].unique(maintain_order=True))[:TOP_NAMES]
    found.fix = _FIX_OF_ROWS if calls.are_cut else _FIX
    return found


def _find_calls(case: Case, runs: ProgramRuns) -> _Calls | None:
    """The calls of the function that most of a step's runs are of, or, if their inputs are cut, of the one that works longest."""
    name = runs.loop or _longest(case, runs)
    codes = codes_by_name(case.trace) if name is not None else {}
    known = codes.get(name or "", set())
    if name is None or len(known) != 1:
        return None
    module = read_module(next(iter(known)))
    given = _inputs(case, name, module, next(iter(known)))
    if given is None:
        return None
    programs = row_programs(codes, module)
    calls = None if cuts_weights(programs, module) else _calls(case, runs, name, module, programs)
    # The same call again and again may be there to be timed.
    needs_cuts = runs.loop is None or given == _BESIDE_MODEL
    return calls if calls is not None and (calls.are_cut or not needs_cuts) else None


def _longest(case: Case, runs: ProgramRuns) -> str | None:
    work = runs.work.filter(pl.col("program").is_in(list(runs.repeated)))
    length = work.select("program", ns=case.trace.events["dur_ns"].gather(work["event"]))
    ranked = length.group_by("program").agg(pl.col("ns").sum()).sort("ns", "program", descending=True)
    return str(ranked["program"][0]) if len(ranked) else None


def _inputs(case: Case, name: str, module: Module, code: bytes) -> str | None:
    """How a program without gradients is known not to be given what it returns; None where it may be."""
    if any(sign in code for sign in TRAINS):
        return None
    sent, given = _sent(case, name), [shape.sizes for shape in given_to(module)]
    results = [shape.sizes for shape in results_of(module)]
    if any(sizes in sent for sizes in results):
        return None
    # The result of a last layer is as long as its bias, which is given on the device; an input comes from the host, or is beside the model.
    is_bias = len(results) == 1 and len(results[0]) == 1 and given.count(results[0]) == 1
    if (sent and is_bias) or not any(sizes in given for sizes in results):
        return _BY_SHAPE
    beside = [one.shape.sizes for one in inputs_of(module)]
    return None if any(sizes in beside for sizes in results) else _BESIDE_MODEL


def _sent(case: Case, name: str) -> set[tuple[int, ...]]:
    """The sizes of arrays that calls of a program send from the host."""
    events = case.trace.events
    inside = ancestors(events, _is_call(case, name)).is_not_null() & is_named(events, _SENDS)
    names = events["name"].filter(inside).cast(pl.String).unique()
    found = names.str.extract(_SENDS).drop_nulls()
    return {tuple(int(size) for size in text.split(",") if size) for text in found}


def _is_call(case: Case, name: str) -> pl.Series:
    call = name_call(name.removeprefix("jit_"))
    found: pl.Series = case.trace.events["name"].cast(pl.String).eq_missing(pl.Series([call]))
    return found


def _calls(case: Case, runs: ProgramRuns, name: str, module: Module, programs: RowPrograms) -> _Calls | None:
    """None where they are not as many as the runs, or not most of them are in rows of the same length."""
    events = case.trace.events
    call = _is_call(case, name)
    outer = call & ancestors(events, call).is_null() & events["step"].is_not_null()
    calls = (
        events.filter(outer)
        .sort("start_ns")
        .select("track", "start_ns", caller="parent", call_end=pl.col("start_ns") + pl.col("dur_ns"))
    )
    count = int((runs.starts["program"] == name).sum())
    if not count or len(calls) != count or calls["caller"].null_count():
        return None
    others = _other_programs(case, outer)
    cuts = _are_calls_of(others, programs.cutting)
    between = _siblings(case, calls, outer, others.filter(cuts)["id"])
    calls = calls.with_row_index("call").join(between, on="call", how="left", maintain_order="left")
    calls = _in_rows(calls.join(_follow(calls, others.filter(~cuts)), on="call", maintain_order="left"))
    usual = calls["times"].mode().max()
    if int((calls["times"] == usual).sum()) <= MAJORITY * len(calls):
        return None
    joins = others.filter(_are_calls_of(others, programs.joining))["id"]
    stacks = _frames_around(case, joins, outer | events["id"].is_in(others["id"].implode()))
    return _Calls(name, module, calls, stacks, are_cut=bool(cuts.any()))


def _in_rows(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls of one function with nothing else between them."""
    before = pl.col("others").fill_null(0) + pl.col("programs")
    new = (before.shift(fill_value=0) > 0) | (pl.col("caller") != pl.col("caller").shift(fill_value=-1))
    calls = calls.with_columns(row=new.cum_sum())
    return calls.with_columns(
        place=pl.int_range(pl.len()).over("row"),
        times=pl.len().over("row"),
        end_ns=pl.coalesce(
            pl.col("start_ns").shift(-1).over("row"), pl.max_horizontal("call_end", "read_end")
        ),
    )


def _other_programs(case: Case, mine: pl.Series) -> pl.DataFrame:
    """id, track, start_ns, name of the outermost calls of other programs."""
    events = case.trace.events
    is_call = is_named(events, PROGRAM_CALLS)
    outer = is_call & ancestors(events, is_call).is_null() & events["step"].is_not_null() & ~mine
    return events.filter(outer).select("id", "track", "start_ns", pl.col("name").cast(pl.String))


def _are_calls_of(calls: pl.DataFrame, programs: frozenset[str]) -> pl.Series:
    names = [name_call(name.removeprefix("jit_")) for name in programs]
    return calls["name"].is_in(names)


def _follow(calls: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """call, programs: how many of the other programs are called up to the next call."""
    known = calls.select("call", "track", "start_ns").sort("start_ns")
    rows = others.sort("start_ns").join_asof(known, on="start_ns", by="track", check_sortedness=False)
    counted = rows.drop_nulls("call").group_by("call").agg(programs=pl.len())
    return (
        calls.select("call")
        .join(counted, on="call", how="left")
        .with_columns(pl.col("programs").fill_null(0))
    )


def _siblings(case: Case, calls: pl.DataFrame, outer: pl.Series, cuts: pl.Series) -> pl.DataFrame:
    """call, read_end, others: of what its caller calls up to the next call, when the last read is over, and how many do not read.

    Code of JAX that runs the programs of `cuts` counts as little as what keeps a result. What else it runs counts by itself.
    """
    events = case.trace.events
    waits = sums_below(events, is_wait(case.trace)) > 0
    goes_on = sums_below(events, events["id"].is_in(cuts.implode())) > 0
    cuts_next = (host_codes(case.trace) == FRAMEWORK) & (goes_on | is_named(events, _ITERATES))
    is_frame = (events["kind"] == "python") & ~is_named(events, _KEEPS) & ~cuts_next
    mine = events.select(
        "start_ns", "track", "parent", end=pl.col("start_ns") + pl.col("dur_ns"), reads=waits
    ).filter((is_frame | waits) & ~outer, events["parent"].is_in(calls["caller"].unique().implode()))
    rows = mine.sort("start_ns").join_asof(
        calls.with_row_index("call").select("start_ns", "call", parent="caller"),
        on="start_ns",
        by="parent",
        check_sortedness=False,
    )
    return (
        rows.drop_nulls("call")
        .group_by("call")
        .agg(read_end=pl.col("end").filter("reads").max(), others=(~pl.col("reads")).sum())
    )


def _frames_around(case: Case, joins: pl.Series, programs: pl.Series) -> pl.DataFrame:
    """start_ns, end_ns of these calls with the code of JAX around them, as far as it calls no other of the programs."""
    events = case.trace.events
    is_join = events["id"].is_in(joins.implode())
    is_code = (host_codes(case.trace) == FRAMEWORK) & (events["kind"] == "python")
    is_alone = (sums_below(events, is_join) > 0) & (sums_below(events, programs & ~is_join) == 0)
    whole = is_join | (is_code & is_alone)
    found = events.filter(whole & ancestors(events, whole).is_null()).sort("start_ns")
    return found.select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))


def _chosen(case: Case, runs: ProgramRuns, calls: _Calls) -> pl.DataFrame | None:
    """What one call for a whole row leaves of the time of each kernel; None where it leaves too much, or that is not known."""
    mine, times = runs.work.filter(pl.col("program") == calls.name), calls.times
    known = shared_weights(calls.module)
    if known.weights >= SHARED_WEIGHTS_LEAST:
        passes = Passes(mine.select("event", sure=pl.lit(True), again=pl.lit(True)), times, known, "")
        chosen = chosen_of(case, passes)
    else:
        chosen = _of_vectors(case, mine, times, calls.module)
    return chosen if len(chosen) and left_of(chosen) <= PASSES_LEFT_MOST else None


def _of_vectors(case: Case, mine: pl.DataFrame, times: int, module: Module) -> pl.DataFrame:
    """The same of a program that uses each weight for one input alone: it mostly reads them, and reads them once for all inputs.

    XLA writes such products as sums, which keep no sign of the weight that they take.
    """
    kernels = case.compute.kernels.filter(pl.col("time_ns") > 0)
    rows = kernels.join(mine.select("event", "run"), on="event", maintain_order="left")
    flops = float(rows["flops"].fill_null(0.0).sum()) / max(1, rows["run"].n_unique())
    weights = sum(shape.elements for shape in given_to(module) if len(shape.sizes) > 1)
    rate = (case.peaks.own_flops_per_s("fp32") or 0.0) / 1e9 if case.peaks else 0.0
    if not rate or flops > FLOPS_OF_ONE_INPUT * weights:
        return rows.clear()
    needed = pl.col("flops").fill_null(0.0) / rate / pl.col("time_ns")

    def share(least: float, efficiency: float) -> pl.Expr:
        return pl.max_horizontal(pl.lit(least), needed / efficiency).clip(upper_bound=1.0)

    return rows.select(
        "event",
        "time_ns",
        least=share(1 / times, BATCHED_EFFICIENCY_MOST),
        most=share(1 / math.sqrt(times), BATCHED_EFFICIENCY_LEAST),
    )


def _joined(case: Case, chosen: pl.DataFrame, again: pl.DataFrame, left: str) -> Plan:
    """The steps in which the first call of a row does all of it: the others are not made, waited for or read."""
    at = case.plan.items["at"]
    gone = within(at, again["start_ns"], again["end_ns"])
    shares = case.plan.items.join(chosen.select("event", left), on="event", how="left", maintain_order="left")
    is_kernel = shares[left].is_not_null()
    plan = case.plan.with_device(pl.lit(True), pl.lit(shares[left].fill_null(1.0)))
    plan = plan.with_device(pl.lit(gone & ~is_kernel & (case.plan.items["kind"] == native.WORK)))
    plan = plan.without_waits(pl.lit(gone))
    return plan.with_host(pl.lit(gone.gather(case.plan.host["item"])) & (pl.col("cause") != "input"))
