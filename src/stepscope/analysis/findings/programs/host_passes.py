"""Programs of JAX that the host runs, distinguished by their code: a function and its gradient are compiled under one name."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.programs.host_programs import runs_on_host
from stepscope.analysis.xla.repeated_calls import codes_by_name
from stepscope.analysis.xla.repeats.forward_again import GRADIENT
from stepscope.lazy import dataclass
from stepscope.trace.frames import take_smallest


@dataclass(frozen=True)
class HostProgram:
    """A program with its code, and when its runs in the steps ended."""

    name: str
    hlo: bytes
    ends: pl.Series

    @property
    def trains(self) -> bool:
        """Whether it computes gradients."""
        return GRADIENT in self.hlo


def programs_of_host(case: Case) -> list[HostProgram]:
    """The programs that ran in the steps; of those with one name, only a function and its gradient are distinguished, if both run in each."""
    runs = _runs_in_steps(case)
    found: list[HostProgram] = []
    for name, codes in codes_by_name(case.trace).items():
        mine = runs.filter(pl.col("ran") == name.rstrip("_"))
        if len(mine):
            found += _programs(name.rstrip("_"), codes, mine)
    return [one for one in found if len(one.ends)]


def work_of_runs(case: Case, work: pl.DataFrame, chosen: list[HostProgram]) -> pl.DataFrame:
    """Those slices of programs that are of these runs; programs run one after the other."""
    ends = pl.DataFrame({"run_end": _runs_in_steps(case)["run_end"]})
    of_run = work.sort("start_ns").join_asof(
        ends, left_on="start_ns", right_on="run_end", strategy="forward", check_sortedness=False
    )
    mine = [(pl.col("program") == one.name) & pl.col("run_end").is_in(one.ends.implode()) for one in chosen]
    return of_run.filter(pl.any_horizontal(mine)).drop("run_end").sort("slice")


def _runs_in_steps(case: Case) -> pl.DataFrame:
    """ran, run_end, ns (since the run before it ended), by their end."""
    begin = take_smallest(case.steps.host["start_ns"])
    runs = runs_on_host(case).filter(pl.col("run_end") >= begin).sort("run_end")
    return runs.select("ran", "run_end", ns=pl.col("run_end").diff().fill_null(pl.col("run_end") - begin))


def _programs(name: str, codes: set[bytes], runs: pl.DataFrame) -> Iterator[HostProgram]:
    if len(codes) == 1:
        yield HostProgram(name, next(iter(codes)), runs["run_end"])
    gradients = [code for code in codes if GRADIENT in code]
    if len(codes) == 2 and len(gradients) == 1:
        (function,) = codes - set(gradients)
        # A backward pass takes about twice as long as the forward pass, and comes on top of it.
        shortest = runs.sort("ns")["run_end"]
        half = len(runs) // 2
        yield HostProgram(name, function, shortest.head(half))
        yield HostProgram(name, gradients[0], shortest.tail(len(runs) - half))
