"""Steps that wait for batches while all cores of the machine are busy with making them: more workers bring nothing, nor does
a faster step. Only less work for each batch does, and how much of it can go, no profile shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.input_facts import InputFacts
from stepscope.registers.policy.host_code import CORES_BUSY, CORES_BUSY_WAIT
from stepscope.units import percent

BUSY = "cores_busy"  # in the evidence
_FIX = "Do less on the processor for each batch: store data that is decoded already, or in a format that decodes faster; move decoding and augmentation to the device; or use a machine with more cores."


def waits_for_cores(case: Case, facts: InputFacts) -> bool:
    """Whether workers make batches on all cores, and steps wait for them."""
    if not facts.made_in_background or (facts.cores_busy or 0.0) < CORES_BUSY:
        return False
    waited = int(case.slices.filter(pl.col("part") == "input")["ns"].sum()) / max(1, case.step_count)
    return case.had_ready_batches or waited >= CORES_BUSY_WAIT * case.step_ns


def advise_less_work(case: Case, found: Finding, facts: InputFacts) -> None:
    """Leave the finding about the input as advice: what is made on all cores is not made faster by more workers."""
    busy = facts.cores_busy or 0.0
    of = f"All {facts.cores} cores" if facts.cores else "All cores"
    found.detail += f" {of} of the machine are busy ({percent(busy)}): more workers bring nothing."
    found.evidence = {**found.evidence, BUSY: round(busy, 3)}
    found.evidence.pop("follows", None)
    found.fix = _FIX
    case.changes.pop(found.code, None)
    withdraw(found)


def beside_busy_cores(case: Case, found: Iterable[Finding]) -> Iterator[Finding]:
    """The findings; where batches come no faster than the cores make them, what would make the rest of the step faster promises nothing."""
    every = list(found)
    if not any(BUSY in finding.evidence for finding in every):
        yield from every
        return
    for finding in every:
        if finding.class_ == "time":
            case.changes.pop(finding.code, None)
            withdraw(finding)
            finding.evidence.pop("follows", None)
            finding.detail += (
                " The step would then wait longer for its batches, for which all cores are busy."
            )
        yield finding
