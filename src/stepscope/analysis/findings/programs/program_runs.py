"""Runs of XLA programs on a device: which of them are compiled functions, and which are single ops that run by themselves.

A compiled function stays what it is when the step around it is compiled as well: its kernels are fused already, and follow one
another as they did. Single ops become part of the kernels around them. A function that Python calls again and again becomes the body
of a loop. One with a known number of turns runs at the pace of its body; where a value on the device says when it
ends, the host reads that value in each turn, and only then launches the next.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.programs.host_programs import program_of
from stepscope.analysis.findings.programs.own_functions import has_few_between, is_private, own_functions
from stepscope.analysis.host.program_calls import PROGRAM_CALLS, called_function
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import (
    EAGER_CALLS,
    KERNELS_OF_EAGER_CALL,
    MAJORITY,
    NEARLY_ALL,
)
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors

_TO_HOST = r"(?i)D2H|DtoH"


@dataclass(frozen=True)
class ProgramRuns:
    """`work`: event, program, run, step, is_compiled, gap_ns (what passed before it in its run), first (of its run), in order.

    `reads`: when copies to the host began, in order.
    """

    work: pl.DataFrame
    reads: pl.Series
    steps: int

    @cached_property
    def starts(self) -> pl.DataFrame:
        """program, step, is_compiled, start_ns of each run, in order."""
        firsts = self.work.group_by("run", maintain_order=True).first()
        return firsts.select("program", "step", "is_compiled", "start_ns").sort("start_ns")

    @cached_property
    def loop(self) -> str | None:
        """The compiled function that Python calls again and again, if most of a step's runs are of one."""
        often = self.starts.group_by("program", "is_compiled").len().sort("len", "program", descending=True)
        if often.is_empty():
            return None
        name, is_compiled, count = often.row(0)
        is_often = count >= EAGER_CALLS * self.steps and count > MAJORITY * len(self.starts)
        return str(name) if is_compiled and is_often else None

    @cached_property
    def body(self) -> str | None:
        """The function of the loop, or the one that is called most often, if few ops run between the calls of such functions."""
        if self.loop is not None:
            return self.loop
        mine = pl.col("program").is_in([program for program in self.repeated if not is_private(program)])
        rows = self.work.filter(mine).group_by("program").agg(runs=pl.col("run").n_unique(), work=pl.len())
        often = rows.sort("runs", "work", "program", descending=[True, True, False])
        if often.is_empty() or not has_few_between(len(self.starts), int(often["runs"].sum())):
            return None
        return str(often["program"][0])

    def runs_in_a_step(self, program: str) -> float:
        """How often a step runs a program."""
        return int((self.starts["program"] == program).sum()) / self.steps

    @cached_property
    def turns(self) -> pl.Series:
        """How often each step runs the loop's body."""
        mine = self.starts.filter(pl.col("program") == pl.lit(self.loop, pl.String))
        return mine.group_by("step", maintain_order=True).len()["len"]

    @cached_property
    def is_read_each_turn(self) -> bool:
        """Whether the host reads something between nearly all turns: it may decide by that whether there is another."""
        return self.loop is not None and self.is_read_between(self.loop)

    def is_read_between(self, program: str) -> bool:
        """Whether the host reads something between nearly all runs of a program."""
        mine = self.starts.filter(pl.col("program") == program)["start_ns"]
        if len(mine) < 2:
            return False
        before = self.reads.search_sorted(mine)
        return int((before.diff() > 0).sum()) >= NEARLY_ALL * (len(mine) - 1)

    @property
    def ends_by_value(self) -> bool:
        """Whether a value surely decides when the loop ends: the host reads one, and steps have different numbers of turns."""
        return self.is_read_each_turn and self.turns.n_unique() > 1

    @cached_property
    def repeated(self) -> frozenset[str]:
        """Compiled functions that a step runs again and again, whatever runs between: parts of one program, they are not called one by one."""
        often = self.starts.filter("is_compiled").group_by("program").len()
        return frozenset(often.filter(pl.col("len") >= EAGER_CALLS * self.steps)["program"])

    def calls_of_compiled(self, events: pl.DataFrame, without: Collection[str]) -> pl.Series:
        """For each event the call of a compiled function that it is or is inside of, else null; some functions are left out."""
        compiled = self.starts.filter("is_compiled")["program"].unique()
        is_call = are_calls(events, [name for name in compiled if name not in without])
        above = ancestors(events, is_call)
        return pl.select(pl.when(is_call).then(events["id"]).otherwise(above)).to_series()


def called_name(events: pl.DataFrame, program: str) -> str:
    """The function as the job calls it."""
    calls = events["name"].filter(are_calls(events, [program]))
    return called_function(str(calls[0])) if len(calls) else program.removeprefix("jit_")


def are_calls(events: pl.DataFrame, programs: Collection[str]) -> pl.Series:
    """Which events are calls of some programs; their names have other letters for those of a lambda's brackets."""
    names = events["name"].filter(is_named(events, PROGRAM_CALLS)).cast(pl.String).unique()
    wanted = {program.rstrip("_") for program in programs}
    mine = [name for name in names if program_of(called_function(name)) in wanted]
    found: pl.Series = events["name"].cast(pl.String).is_in(mine)
    return found


def program_runs(case: Case) -> ProgramRuns | None:
    """The runs in the steps of the case; None where the recording does not name the programs of its kernels."""
    if case.trace.info.framework != "jax" or case.device is None:
        return None
    work = _work_in_runs(case)
    if work.is_empty():
        return None
    events = case.trace.events
    copies = events.filter(pl.col("kind") == "copy", pl.col("step").is_not_null())
    reads = copies.filter(pl.col("name").cast(pl.String).str.contains(_TO_HOST))["start_ns"].sort()
    steps = max(1, len(case.lengths))
    return ProgramRuns(_with_own_functions(case, work, steps), reads, steps)


def _with_own_functions(case: Case, work: pl.DataFrame, steps: int) -> pl.DataFrame:
    """The work, where programs that are called again and again are compiled functions as well if their code is more than an op."""
    often = work.filter(~pl.col("is_compiled")).group_by("program").agg(runs=pl.col("run").n_unique())
    names = often.filter(pl.col("runs") >= EAGER_CALLS * steps)["program"].to_list()
    own = own_functions(case.trace, names)
    return work.with_columns(pl.col("is_compiled") | pl.col("program").is_in(list(own)))


def _work_in_runs(case: Case) -> pl.DataFrame:
    """The work of the device that began during a run of a program."""
    events, tracks = case.trace.events, case.trace.tracks
    mine = tracks.filter(pl.col("device") == case.device)
    streams = mine.filter(pl.col("what") == "device")["id"]
    runs = events.filter(pl.col("kind") == "module", pl.col("track").is_in(mine["id"].implode()))
    runs = runs.select("start_ns", run="id", program="name", run_end=pl.col("start_ns") + pl.col("dur_ns"))
    is_work = pl.col("kind").is_in(["kernel", "copy", "memset"]) & pl.col("step").is_not_null()
    work = events.filter(is_work, pl.col("track").is_in(streams.implode()))
    work = work.select("start_ns", "dur_ns", "track", "step", "kind", event="id").sort("start_ns")
    work = work.join_asof(runs.sort("start_ns"), on="start_ns").filter(pl.col("start_ns") < pl.col("run_end"))
    before = (pl.col("start_ns") + pl.col("dur_ns")).cum_max().shift(1).over("run", "track")
    work = work.with_columns(
        pl.col("program").cast(pl.String),
        gap_ns=pl.max_horizontal((pl.col("start_ns") - before).fill_null(0), 1 - pl.col("dur_ns")),
        first=pl.int_range(pl.len()).over("run") == 0,
        kernels=(pl.col("kind") == "kernel").sum().over("program") / pl.col("run").n_unique().over("program"),
    )
    return work.select(
        "event", "program", "run", "step", "start_ns", "gap_ns", "first",
        is_compiled=pl.col("kernels") > KERNELS_OF_EAGER_CALL,
    )  # fmt: skip
