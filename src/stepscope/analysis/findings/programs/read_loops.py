"""Loops over several programs that act on what the host reads: a token is chosen by one program and read, and the model is called with it.

A loop that reads results has all of them before it reads the first. Here, a function that a step calls again and again is given what it
returned, such as a cache of keys and values, and the host reads something between its calls.
"""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.programs.program_runs import ProgramRuns
from stepscope.analysis.xla.arguments import arguments_of, results_of
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.repeated_calls import codes_by_name


def acts_on_reads(case: Case, runs: ProgramRuns) -> bool:
    """Whether the host reads a value in each turn of a loop, which may decide about the next."""
    return runs.is_read_each_turn or goes_on_between_reads(case, runs)


def goes_on_between_reads(case: Case, runs: ProgramRuns) -> bool:
    """Whether the host reads a value between nearly all calls of a function that is given what it returned."""
    read = [name for name in runs.repeated if runs.is_read_between(name)]
    codes = codes_by_name(case.trace) if read else {}
    return any(_carries(hlo) for name in read for hlo in codes.get(name, ()))


def _carries(hlo: bytes) -> bool:
    """Whether a program returns an array like one that it is given; numbers and random keys are alike anyway."""
    module = read_module(hlo)
    returned = {(shape.element, shape.sizes) for shape in results_of(module)}
    return any(
        not one.is_small and (one.shape.element, one.shape.sizes) in returned for one in arguments_of(module)
    )
