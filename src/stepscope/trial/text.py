"""What a trial found, as lines of text or as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from stepscope import units
from stepscope.analysis.findings.finding import Interval
from stepscope.capture.trial.changes import CHANGES, is_tried_for
from stepscope.reports.model.report import Finding
from stepscope.reports.render.text_grid import fold
from stepscope.safe import safe
from stepscope.trial.conduct import Outcome, Tried

_NAME = 26
_FIGURE = 20
_FILES = 5
SCHEMA = "stepscope.trial/1"


def outcome_json(outcome: Outcome) -> str:
    """For programs: the outcome as it is, with the verdicts that the text gives."""
    fields = {field.name: getattr(outcome, field.name) for field in dataclasses.fields(outcome)}
    verdicts = {each.name: each.verdict(outcome.unchanged) for each in outcome.tried}
    plain = {"schema": SCHEMA, **fields, "verdicts": verdicts, "winners": outcome.winners}
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode() + "\n"


def plan_words(findings: Sequence[Finding], wanted: Mapping[str, Finding | None]) -> str:
    """What is going to be tried, and which findings have no change that can be made from outside."""
    codes = dict.fromkeys(finding.code for finding in findings)
    rest = [code for code in codes if not any(is_tried_for(change, code) for change in CHANGES.values())]
    if wanted:
        words = f"Trying {', '.join(wanted)}."
        return f"{words} Findings without a change from outside: {', '.join(rest)}." if rest else words
    if not codes:
        return "No findings, so there is nothing to try. --all tries every change."
    return f"No finding has a change that can be made from outside ({', '.join(codes)}). --all tries every change."


def outcome_lines(outcome: Outcome, width: int = 100) -> Iterator[str]:
    """The unchanged job, a line per change, and what is to be known about the runs."""
    yield _about(outcome)
    yield ""
    yield f"{'change':{_NAME}}{'promised':{_FIGURE}}{'measured':{_FIGURE}}{'memory':>10}  {'verdict'}"
    for tried in outcome.tried:
        yield from _change(tried, outcome, width)
    yield ""
    if outcome.is_interrupted:
        yield f"Interrupted: this is what {outcome.rounds} complete {'round shows' if outcome.rounds == 1 else 'rounds show'}."
    yield f"Unchanged runs in a row differ by up to {100 * outcome.unchanged:.1f} %: nothing below that is a verdict."
    if any(each.verdict(outcome.unchanged) == "within noise" for each in outcome.tried):
        yield "Within noise: more rounds (--rounds) or longer runs (--seconds) narrow an interval."
    if outcome.files:
        more = f" and {len(outcome.files) - _FILES} more" if len(outcome.files) > _FILES else ""
        yield f"The script changed {', '.join(map(safe, outcome.files[:_FILES]))}{more}."
    if outcome.redirected:
        yield f"{outcome.redirected} writes of checkpoints or event files per run went to a scratch folder, which is deleted."


def _about(outcome: Outcome) -> str:
    if not outcome.steps:
        return f"No loop was found: the whole job is compared, {units.duration(outcome.step_ns)}."
    return f"A step takes {units.duration(outcome.step_ns)} unchanged (runs of {outcome.steps} steps)."


def _change(tried: Tried, outcome: Outcome, width: int) -> Iterator[str]:
    promised = interval_words(tried.promised)
    if tried.measured is None:
        yield f"{tried.name:{_NAME}}{promised:{_FIGURE}}{'':{_FIGURE}}{'':>10}  {tried.failure}"
        for line in tried.tail:
            yield from (f"    {part}" for part in fold(safe(line), width - 4))
        return
    verdict = tried.verdict(outcome.unchanged)
    yield (
        f"{tried.name:{_NAME}}{promised:{_FIGURE}}{interval_words(tried.measured):{_FIGURE}}"
        f"{_memory(tried, outcome):>10}  {verdict}{_loss(tried)}"
    )


def interval_words(speedup: Interval | None) -> str:
    """The middle and the bounds of a speed-up."""
    return "-" if speedup is None else f"{speedup.mid:.2f} ({speedup.low:.2f}–{speedup.high:.2f})"


def _memory(tried: Tried, outcome: Outcome) -> str:
    if not tried.peak_bytes or not outcome.peak_bytes:
        return "-"
    return f"{round(100 * (tried.peak_bytes / outcome.peak_bytes - 1)):+} %"


def _loss(tried: Tried) -> str:
    if tried.is_loss_close is None:
        return ""
    word = "loss as before" if tried.is_loss_close else "the loss differs"
    return f"; {word} ({tried.unchanged_loss:.4g} → {tried.loss:.4g})"
