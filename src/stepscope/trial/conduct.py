"""A trial: which changes to try, in which order to run them, and what came of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stepscope.capture.trial.changes import CHANGES, Change, is_tried_for
from stepscope.errors import StepscopeError
from stepscope.reports.model.report import Finding, Interval
from stepscope.trial.estimate import compare, unchanged_difference
from stepscope.trial.files import changed_files, snapshot
from stepscope.trial.run import Ran, run_once

Say = Callable[[str], None]
Runner = Callable[[Sequence[str]], Ran]
_LOSS_TAIL = 4  # the last quarter of the steps that all runs have is compared
_LOSS_CLOSE = 0.05


@dataclass(frozen=True)
class Tried:
    """A change: what was promised, what was measured, or why nothing could be."""

    name: str
    measured: Interval | None = None
    promised: Interval | None = None
    code: str = ""  # the finding that promised it
    failure: str = ""
    tail: tuple[str, ...] = ()
    peak_bytes: int | None = None
    loss: float | None = None
    unchanged_loss: float | None = None  # at the same steps
    is_loss_close: bool | None = None

    def verdict(self, unchanged: float) -> str:
        """faster or slower, where the interval and the difference of unchanged runs allow to say so."""
        if self.measured is None:
            return "failed"
        if self.measured.low > 1 and self.measured.mid - 1 > unchanged:
            return "faster"
        if self.measured.high < 1 and 1 / self.measured.mid - 1 > unchanged:
            return "slower"
        return "within noise"


@dataclass(frozen=True)
class Outcome:
    """The whole trial. `unchanged` is by how much unchanged runs in a row differ; `step_ns` is the mean of theirs."""

    step_ns: float
    unchanged: float
    tried: list[Tried]
    steps: int = 0
    source: str | None = None
    peak_bytes: int | None = None
    files: list[str] = field(default_factory=list)
    redirected: int = 0
    rounds: int = 0
    is_interrupted: bool = False

    @property
    def winners(self) -> list[str]:
        """Changes that are faster and keep the loss."""
        return [
            each.name
            for each in self.tried
            if each.verdict(self.unchanged) == "faster" and each.is_loss_close is not False
        ]


def choose_changes(
    findings: Sequence[Finding], frameworks: Sequence[str], only: Sequence[str], every: bool
) -> dict[str, Finding | None]:
    """The changes to try, with the finding that promises something, in the order of the findings."""
    if only:
        return _chosen(findings, frameworks, only)
    answered = {
        change.name: _asking(change, findings)
        for finding in findings
        for change in CHANGES.values()
        if is_tried_for(change, finding.code) and change.framework in frameworks
    }
    rest = {change.name: None for change in CHANGES.values() if every and change.framework in frameworks}
    return {**answered, **{name: answered.get(name) for name in rest}}


def _chosen(
    findings: Sequence[Finding], frameworks: Sequence[str], only: Sequence[str]
) -> dict[str, Finding | None]:
    """By the names of changes or the codes of findings."""
    found: dict[str, Finding | None] = {}
    for wanted in only:
        names = [wanted] if wanted in CHANGES else _answering(wanted, frameworks)
        if not names:
            raise StepscopeError(
                f"Nothing to try for {wanted!r}.",
                fix=f"Changes: {', '.join(CHANGES)}; or the code of a finding.",
            )
        for name in names:
            found[name] = _asking(CHANGES[name], findings)
    return found


def _asking(change: Change, findings: Sequence[Finding]) -> Finding | None:
    """The finding that asks for the change: the first that it answers, else the first of whose advice it is a part."""
    in_part = (each for each in findings if each.code in change.helps)
    return next((each for each in findings if each.code in change.codes), next(in_part, None))


def _promised(name: str, finding: Finding | None) -> Interval | None:
    """What the finding promises for this change; nothing where the change is only a part of its advice."""
    change = CHANGES.get(name)
    if (
        change is None
        or finding is None
        or finding.saves_ns_per_step <= 0
        or finding.code not in change.codes
    ):
        return None
    figures = finding.evidence.get(change.figures) if change.figures else None
    if isinstance(figures, dict):
        return Interval(**figures)
    return finding.speedup if change.or_all or not change.figures else None


def _answering(code: str, frameworks: Sequence[str]) -> list[str]:
    return [
        change.name
        for change in CHANGES.values()
        if is_tried_for(change, code) and (not frameworks or change.framework in frameworks)
    ]


def conduct(wanted: dict[str, Finding | None], run: Runner, rounds: int, say: Say, folder: Path) -> Outcome:
    """Run the job unchanged and changed, in turns. A change that fails once is not run again; the others go on.

    Ctrl-C ends it with what the complete rounds show.
    """
    before = snapshot(folder)
    say("unchanged")
    unchanged = [_must_work(run(()))]
    files = changed_files(before, snapshot(folder))
    runs: dict[str, list[Ran]] = {name: [] for name in wanted}
    try:
        for _ in range(rounds):
            for name in wanted:
                if not any(each.failure for each in runs[name]):
                    say(name)
                    runs[name].append(run((name,)))
            say("unchanged")
            unchanged.append(_must_work(run(())))
    except KeyboardInterrupt:
        if len(unchanged) < 2:  # no round is complete: there is nothing to compare
            raise
    complete = len(unchanged) - 1
    whole = {name: each[:complete] for name, each in runs.items()}
    outcome = _outcome(wanted, whole, unchanged, files)
    return replace(outcome, rounds=complete, is_interrupted=complete < rounds)


def _must_work(ran: Ran) -> Ran:
    if ran.step_ns is None:
        last = "\n".join(f"  {line}" for line in ran.tail)
        raise StepscopeError(f"The unchanged job {ran.failure or 'took no time'}.", fix=last or None)
    return ran


def _outcome(
    wanted: dict[str, Finding | None], runs: dict[str, list[Ran]], unchanged: list[Ran], files: list[str]
) -> Outcome:
    times = [ran.step_ns or 0.0 for ran in unchanged]
    good = {name: each for name, each in runs.items() if each and all(ran.step_ns for ran in each)}
    speedups = dict(
        zip(
            good,
            compare(times, [[ran.step_ns or 0.0 for ran in each] for each in good.values()]),
            strict=True,
        )
    )
    tried = [
        _tried(name, finding, runs[name], speedups.get(name), unchanged) for name, finding in wanted.items()
    ]
    first = unchanged[0].result
    return Outcome(
        step_ns=sum(times) / len(times),
        unchanged=unchanged_difference(times),
        tried=tried,
        steps=first.steps,
        source=first.source,
        peak_bytes=_most(unchanged),
        files=files,
        redirected=first.redirected,
    )


def _tried(
    name: str,
    finding: Finding | None,
    runs: list[Ran],
    speedup: Interval | None,
    unchanged: list[Ran],
) -> Tried:
    failed = next((ran for ran in runs if ran.failure), None)
    facts: dict[str, Any] = {
        "promised": _promised(name, finding),
        "code": finding.code if finding is not None else "",
    }
    if failed is not None or speedup is None:
        why = failed.failure if failed is not None else "took no time"
        return Tried(name, failure=why, tail=failed.tail if failed is not None else (), **facts)
    steps = min(len(ran.result.losses) for ran in [*unchanged, *runs])
    before, scatter = _losses(unchanged, steps)
    own, _ = _losses(runs, steps)
    return Tried(
        name,
        speedup,
        peak_bytes=_most(runs),
        loss=own,
        unchanged_loss=before,
        is_loss_close=_is_close(before, own, scatter),
        **facts,
    )


def _losses(runs: Sequence[Ran], steps: int) -> tuple[float | None, float]:
    """The mean loss at the end of the steps that all runs have, and by how much the runs differ in it."""
    if not steps:
        return None, 0.0
    lasts = [ran.result.losses[steps - max(1, steps // _LOSS_TAIL) : steps] for ran in runs]
    ends = [sum(math.nan if each is None else each for each in last) / len(last) for last in lasts]
    return sum(ends) / len(ends), max(ends) - min(ends)


def _is_close(unchanged: float | None, own: float | None, scatter: float) -> bool | None:
    """Whether the loss is where it was, as far as unchanged runs agree on it."""
    if unchanged is None or own is None or math.isnan(unchanged):
        return None
    return abs(own - unchanged) <= max(_LOSS_CLOSE * abs(unchanged), 2 * scatter)


def _most(runs: Sequence[Ran]) -> int | None:
    return max((ran.result.peak_bytes for ran in runs if ran.result.peak_bytes is not None), default=None)


def make_runner(command: Sequence[str], folder: Path, timeout_s: float, **limits: float) -> Runner:
    """Runs the command with some changes."""
    return lambda changes: run_once(command, changes, timeout_s=timeout_s, folder=folder, limits=limits)
