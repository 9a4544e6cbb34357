"""Which steps of a long recording findings look at, and that they find the same there as in all steps."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.analysis.context import RankContext
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.options import Options
from stepscope.analysis.steps import sample as module
from stepscope.analysis.steps.sample import Sample, choose_sample
from stepscope.profiles.load import load
from stepscope.registers.policy.steps import SAMPLED_FROM_EVENTS
from stepscope.reports.build import report
from stepscope.reports.render.brief import as_brief
from stepscope.reports.render.markdown import as_markdown
from stepscope.reports.render.terminal import as_text
from stepscope.reports.sections.findings import of_rank
from stepscope.trace.trace import Trace

SAMPLE = Path(stepscope.__file__).parent / "samples" / "tiny_gpt.pt.trace.json.gz"
CORPUS = os.environ.get("STEPSCOPE_CORPUS")
LONG = 1_000_000


def steps_of(*lengths: tuple[int, ...]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Parts and windows of steps, each with the time of some parts."""
    names = ("compute", "input", "dispatch")
    rows = [(step, *each) for step, times in enumerate(lengths) for each in zip(names, times, strict=False)]
    parts = pl.DataFrame(rows, schema={"step": pl.Int32, "part": pl.String, "ns": pl.Int64}, orient="row")
    windows = parts.group_by("step", maintain_order=True).agg(pl.col("ns").sum())
    end = pl.col("ns").cum_sum()
    return parts, windows.select("step", start_ns=end - pl.col("ns"), end_ns=end, partial=pl.lit(False))


def test_equal_steps_need_only_a_few() -> None:
    assert choose_sample(*steps_of(*[(10, 90)] * 400), LONG) == Sample(0, 39, 40, 400)


def test_a_short_recording_is_looked_at_as_a_whole() -> None:
    assert choose_sample(*steps_of(*[(10, 90)] * 400), SAMPLED_FROM_EVENTS - 1) is None


def test_few_steps_are_all_looked_at() -> None:
    assert choose_sample(*steps_of(*[(10, 90)] * 31), LONG) is None
    assert choose_sample(*steps_of(*[(10, 90)] * 32), LONG) == Sample(0, 15, 16, 32)


def test_steps_that_differ_from_the_others_do_not_stand_for_all() -> None:
    """The first half waits for data, the second does not: only where they meet are both as frequent as in the whole."""
    found = choose_sample(*steps_of(*[(50, 50)] * 200, *[(50, 30)] * 200), LONG)
    assert found == Sample(180, 219, 40, 400)


def test_a_job_of_three_phases_is_looked_at_as_a_whole() -> None:
    phases = [*[(50, 20, 30)] * 130, *[(20, 30, 50)] * 140, *[(30, 50, 20)] * 130]
    assert choose_sample(*steps_of(*phases), LONG) is None


def test_slow_steps_inside_do_not_count_against_it() -> None:
    lengths: list[tuple[int, ...]] = [(10, 90)] * 400
    lengths[5] = (10, 5000)
    assert choose_sample(*steps_of(*lengths), LONG) == Sample(0, 40, 41, 400)


def test_steps_out_of_order_are_all_looked_at() -> None:
    parts, windows = steps_of(*[(10, 90)] * 400)
    assert choose_sample(parts, windows.with_columns(start_ns=-pl.col("start_ns")), LONG) is None


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every recording is long, and any of its steps stands for all."""
    monkeypatch.setattr(module, "SAMPLED_FROM_EVENTS", 0)
    monkeypatch.setattr(module, "SAMPLE_EVENTS", 0)
    monkeypatch.setattr(module, "SAMPLE_STEPS", 1)
    monkeypatch.setattr(module, "SAMPLE_DIFFERS", 1.0)


@pytest.mark.usefixtures("long")
def test_the_account_of_the_sample_is_that_of_the_whole() -> None:
    context = of_trace(load(SAMPLE).traces[0])
    assert context.sample is not None
    mine, names = context.sampled.account.slices, context.sampled.trace.events["name"]
    steps = pl.col("step").is_between(context.sample.first, context.sample.last)
    theirs = context.account.slices.filter(steps)
    assert mine.select("part", "step", "start_ns", "end_ns").equals(
        theirs.select("part", "step", "start_ns", "end_ns")
    )
    assert names.gather(mine["named_by"]).equals(context.trace.events["name"].gather(theirs["named_by"]))


@pytest.mark.usefixtures("long")
def test_the_report_says_which_steps_findings_are_of() -> None:
    brief = report(SAMPLE, brief=True)
    found = brief.steps.sample
    assert found is not None and found.count < found.of == brief.steps.count
    words = f"from {found.count} of {found.of} steps"
    assert all(words in written for written in (as_brief(brief), as_text(brief), as_markdown(brief)))
    assert report(SAMPLE, sections=["steps"], step=f"{found.first}:").steps.sample is None


def test_usual_recordings_are_not_sampled() -> None:
    assert report(SAMPLE, sections=["steps"]).steps.sample is None


def of_trace(trace: Trace) -> RankContext:
    return RankContext(0, trace, Options(), alone=True)


def by_code(context: RankContext) -> dict[str, Finding]:
    return {found.code: found for found in of_rank(context).found}


# Of the corpus, those with enough steps.
RECORDINGS = ("h200/dqn_launch_bound.pt.trace.json.gz", "tensorflow/custom_loop", "tensorflow/keras_callback")


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="STEPSCOPE_CORPUS is not set")
@pytest.mark.parametrize("path", RECORDINGS)
def test_findings_of_a_sample_are_those_of_all_steps(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a quarter of the steps that a sample has at least."""
    monkeypatch.setattr(module, "SAMPLED_FROM_EVENTS", 0)
    monkeypatch.setattr(module, "SAMPLE_EVENTS", 0)
    monkeypatch.setattr(module, "SAMPLE_STEPS", 4)
    trace = load(Path(CORPUS or ".") / path).traces[0]
    sampled = of_trace(trace)
    assert sampled.sample is not None
    mine, theirs = by_code(sampled), by_code(RankContext(0, trace, Options()))
    assert list(mine) == list(theirs)
    for code, found in mine.items():
        assert theirs[code].speedup.low <= found.speedup.mid <= theirs[code].speedup.high
