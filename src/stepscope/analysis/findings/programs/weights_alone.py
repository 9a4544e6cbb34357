"""Work of compiled programs that depends on nothing but weights that no program changes: all of them in inference, frozen ones in training."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.programs.parts import part_of_program
from stepscope.analysis.xla.arguments import arguments_of
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.repeated_calls import Arrivals, codes_by_name, runs_of_programs
from stepscope.analysis.xla.repeats.kept_weights import kept_weights
from stepscope.analysis.xla.repeats.weight_work import WeightWork, weight_work
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.repeated_work import PICKED_WEIGHTS_MOST


@dataclass(frozen=True)
class WeightsAlone:
    """A program and its work on weights alone: event, least and most, what is left of it where the program is given the results."""

    program: str
    scope: str
    chosen: pl.DataFrame


def weights_alone(case: Case) -> list[WeightsAlone]:
    """Of each program that runs in most steps."""
    if case.device is None:
        return []
    runs, codes = runs_of_programs(case.trace, case.device), codes_by_name(case.trace)
    arrivals = Arrivals(case.trace, runs, codes)
    if arrivals.unknown > MAJORITY * sum(runs.values()):
        return []
    often = MAJORITY * max(1, len(case.lengths))
    return [
        found
        for name, count in runs.items()
        if count >= often and len(codes.get(name, ())) == 1
        for hlo in codes[name]
        for found in _of_program(case, name, hlo, arrivals)
    ]


def _of_program(case: Case, name: str, hlo: bytes, arrivals: Arrivals) -> Iterator[WeightsAlone]:
    module = read_module(hlo)
    given = arguments_of(module)
    weights = {one.number for one in kept_weights(given, arrivals)}
    if not weights:
        return
    others = [one.number for one in given if one.number not in weights]
    work = weight_work(module, weights, others)
    chosen = _chosen(case, name, hlo, work)
    if len(chosen):
        yield WeightsAlone(name, work.scope, chosen)


def _chosen(case: Case, name: str, hlo: bytes, work: WeightWork) -> pl.DataFrame:
    parts = [
        part_of_program(case, name, hlo, names).select(
            "event", least=pl.lit(0.0, pl.Float64), most=pl.lit(most, pl.Float64)
        )
        for names, most in ((work.once, 0.0), (work.in_loops, PICKED_WEIGHTS_MOST))
    ]
    return pl.concat(parts).unique("event", keep="first", maintain_order=True)
