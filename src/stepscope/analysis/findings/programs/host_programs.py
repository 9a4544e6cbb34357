"""Time of the account in which the host itself runs compiled programs of JAX: of which program it is, and of which instruction.

Not every op of a program is recorded on a CPU, and a program may run inside its call: then its time has the name of the call.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.host.program_calls import PROGRAM_CALLS, called_function
from stepscope.analysis.steps.host_runs import host_runs, runs_in_calls
from stepscope.analysis.xla.hlo_module import Module, read_module
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.frames import take

_PARTS = ("host_compute", "dispatch")
_UNFIT = re.compile(r"\W")  # what names of programs have an underscore for


def program_of(function: str) -> str:
    """The name of the program that a function is compiled to."""
    return "jit_" + _UNFIT.sub("_", function).rstrip("_")


def work_of_programs(case: Case) -> pl.DataFrame:
    """The free slices in which programs run, with `program`, and `instruction` where that was recorded, else null."""
    mine = case.free(pl.col("part").is_in(_PARTS))
    rows = _with_ops(case, mine).sort("start_ns", "slice")
    runs = runs_on_host(case)
    rows = rows.join_asof(
        runs, left_on="start_ns", right_on="run_end", strategy="forward", check_sortedness=False
    )
    # A call of a program is also a time in which nothing runs yet: only a run inside of it computes.
    runs_now = (pl.col("part") == "host_compute") | (
        (pl.col("start_ns") + pl.col("ns") / 2).is_between("run_start", "run_end")
    )
    found = rows.with_columns(program=pl.coalesce("own", pl.when(runs_now).then("ran")))
    return found.drop("own", "ran", "run_start", "run_end").drop_nulls("program").sort("slice")


def _with_ops(case: Case, slices: pl.DataFrame) -> pl.DataFrame:
    """`own` and `instruction`: what a slice says itself, by its op."""
    split = pl.col("scope").cast(pl.String).str.split("/")
    ops = case.trace.ops.select("event", own=split.list.first(), instruction=split.list.last())
    ops = ops.unique("event", keep="first").with_columns(pl.col("own").str.strip_chars_end("_"))
    return slices.join(ops, left_on="named_by", right_on="event", how="left", maintain_order="left")


def runs_on_host(case: Case) -> pl.DataFrame:
    """ran (the program), run_start, run_end of all runs, by their end."""
    events = case.trace.events
    runs = pl.concat([host_runs(case.trace).drop("at_ns"), runs_in_calls(case.trace)])
    names = take(events["name"], runs["id"]).cast(pl.String)
    is_call = names.str.contains(PROGRAM_CALLS)
    ran = [
        program_of(called_function(name)) if call else None for name, call in zip(names, is_call, strict=True)
    ]
    found = runs.select(run_start="start_ns", run_end="end_ns").with_columns(
        ran=pl.Series(ran, dtype=pl.String)
    )
    return found.sort("run_end")


def host_programs(case: Case) -> dict[str, Module]:
    """The code of each program of JAX that the host ran, by its name; none of several programs with one name."""
    if case.trace.info.framework != "jax" or case.device is not None:
        return {}
    found: dict[str, set[bytes]] = {}
    for name, _, hlo in programs_that_ran(case.trace):
        found.setdefault(name.rstrip("_"), set()).add(hlo)
    return {name: read_module(next(iter(codes))) for name, codes in found.items() if len(codes) == 1}


def of_instructions(case: Case, names: Mapping[str, Collection[str]]) -> pl.DataFrame:
    """The free slices of these instructions with `program`, and `going`: how much of each slice is theirs.

    Where they are most of what was recorded of a program, its other time is theirs by the same share.
    """
    work = work_of_programs(case)
    return pl.concat(
        [work.clear().with_columns(going=pl.lit(0.0))]
        + [_chosen(work.filter(pl.col("program") == program), names[program]) for program in names]
    ).sort("slice")


def _chosen(work: pl.DataFrame, instructions: Collection[str]) -> pl.DataFrame:
    known, unknown = (work.filter(pl.col("instruction").is_null() == is_null) for is_null in (False, True))
    mine = known.filter(pl.col("instruction").is_in(list(instructions)))
    share = int(mine["ns"].sum()) / max(1, int(known["ns"].sum()))
    beside = unknown if share > MAJORITY else unknown.clear()
    return pl.concat(
        [each.with_columns(going=pl.col("ns") * part) for each, part in ((mine, 1.0), (beside, share))]
    )


def going_share(case: Case, owned: pl.DataFrame) -> float:
    """The share of a step that these instructions take."""
    return float(owned["going"].sum()) / case.step_count / case.step_ns
