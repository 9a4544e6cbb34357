"""From a profile to its report: the account closes, ranks and steps can be chosen, and a fault is told."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from stepscope.analysis.findings.finding import Interval
from stepscope.analysis.options import Options
from stepscope.analysis.parts import PARTS
from stepscope.errors import StepscopeError
from stepscope.profiles.load import load
from stepscope.profiles.profile import Profile
from stepscope.reports import build as module
from stepscope.reports.build import SECTION_NAMES, chosen_sections, report
from stepscope.reports.failures import RAISE
from stepscope.reports.model.report import Report
from stepscope.reports.render.brief import as_brief
from stepscope.reports.render.json import as_json
from stepscope.reports.sections import SECTIONS
from stepscope.reports.sections.findings import OfRank, joined
from stepscope.reports.tables.tables import ORDER
from stepscope.trace.draft import Draft
from stepscope.trace.finish import finish
from tests.builders.traces import draft, trace

FIXTURES = Path(__file__).parent.parent / "fixtures"
SAMPLE = Path(stepscope.__file__).parent / "samples" / "tiny_gpt.pt.trace.json.gz"
PROFILES = sorted([SAMPLE, *(FIXTURES / "kineto").glob("*.gz"), FIXTURES / "jax", FIXTURES / "tf_events"])


@pytest.fixture(scope="module")
def sample() -> Profile:
    return load(SAMPLE)


@pytest.fixture(scope="module")
def of_sample(sample: Profile) -> Report:
    return report(sample)


@pytest.fixture(scope="module")
def all_of_sample(sample: Profile) -> Report:
    return report(sample, limit=0)


@pytest.fixture
def two_ranks() -> Profile:
    return Profile("/x", [trace(0), trace(1)], [0, 1])


@pytest.fixture(scope="module")
def of_two_ranks() -> Report:
    return report(Profile("/x", [trace(0), trace(1)], [0, 1]))


def test_one_screen_needs_no_more_than_its_own_sections(sample: Profile, of_sample: Report) -> None:
    brief = report(sample, brief=True)
    assert as_brief(brief) == as_brief(of_sample)
    assert of_sample.ops.rows and not brief.ops.rows


@cache
def of(path: Path) -> Report:
    return report(path, limit=0)


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.name)
def test_the_account_closes(path: Path) -> None:
    found = of(path)
    assert all(sum(row.parts.values()) == row.duration_ns for row in found.steps.rows)
    assert {part for row in found.steps.rows for part in row.parts} <= set(PARTS)
    own = {int(rank): device for rank, device in found.steps.critical_devices.items()}
    in_rows = sum(row.duration_ns for row in found.steps.rows if own[row.rank] == row.device)
    if found.steps.rows:
        assert sum(row.ns for row in found.breakdown) == in_rows
    assert sum(row.share for row in found.breakdown) == pytest.approx(1, abs=1e-4) or not found.breakdown
    assert not [problem for problem in found.problems if problem.code == "analysis-failed"]


def test_the_sample(of_sample: Report) -> None:
    found = of_sample
    assert (found.steps.source, found.steps.name, found.steps.count) == ("marker", "ProfilerStep", 3)
    assert [row.step for row in found.steps.rows] == [3, 4, 5]
    assert found.profile.framework == "pytorch"
    assert found.profile.devices == [{"name": "NVIDIA H200", "count": 1, "used": 1}]
    assert found.ops.rows[0].device_self_ns >= found.ops.rows[1].device_self_ns > 0
    assert found.ops.total > found.ops.shown == len(found.ops.rows) == 100


def test_names_are_the_longest(of_sample: Report, all_of_sample: Report) -> None:
    for row in of_sample.breakdown:
        times = [each.ns for each in row.names]
        assert times == sorted(times, reverse=True)
        assert sum(times) <= row.ns
        assert len(times) == 10 or sum(times) >= 0.9 * row.ns or len(times) == row.names_total
    for row in all_of_sample.breakdown:
        assert len(row.names) == row.names_total


def test_some_steps(sample: Profile, all_of_sample: Report) -> None:
    found = report(sample, step="4:5", limit=0)
    assert [row.step for row in found.steps.rows] == [4, 5]
    whole = {row.step: row for row in all_of_sample.steps.rows}
    assert [row.parts for row in found.steps.rows] == [whole[4].parts, whole[5].parts]
    calls = {row.name: row.calls for row in all_of_sample.ops.rows}
    fewer = {row.name: row.calls for row in found.ops.rows}
    assert fewer["aten::mm"] * 3 == calls["aten::mm"] * 2


def test_ranks_are_summed(two_ranks: Profile) -> None:
    both, one = report(two_ranks, limit=0), report(two_ranks, rank=1, limit=0)
    assert {row.rank for row in both.steps.rows} == {0, 1}
    assert {row.rank for row in one.steps.rows} == {1}
    assert both.profile.ranks == [0, 1]
    assert one.profile.ranks == [1]
    assert [(row.name, row.calls) for row in both.ops.rows] == [
        (row.name, 2 * row.calls) for row in one.ops.rows
    ]
    assert sum(row.ns for row in both.breakdown) == 2 * sum(row.ns for row in one.breakdown)
    assert {row.part: row.share for row in both.breakdown} == {row.part: row.share for row in one.breakdown}


def test_what_one_rank_would_gain_is_not_told_of_a_job() -> None:
    def of_one(rank: int) -> OfRank:
        return OfRank(rank, [], Interval(1.1, 1.2, 1.3))

    assert joined([of_one(0)], Options())["together"] == Interval(1.1, 1.2, 1.3)
    assert joined([of_one(0), of_one(1)], Options())["together"] is None


def test_a_rank_that_is_not_there(two_ranks: Profile) -> None:
    with pytest.raises(StepscopeError, match="No rank 7"):
        report(two_ranks, rank=7)


def test_problems_come_with_their_ranks(two_ranks: Profile, of_two_ranks: Report) -> None:
    problems = of_two_ranks.problems
    assert [problem.code for problem in problems] == ["cut", "clock-inversion", "damaged-program", "odd"]
    assert problems[0].title == "The file is cut"
    assert problems[0].detail.endswith("On ranks 0–1.")
    assert report(two_ranks, rank=1, sections=["problems"]).problems[0].rank == 1


def test_ops_split_further(sample: Profile, all_of_sample: Report) -> None:
    by_shapes = report(sample, ops_by=["shapes"], limit=0, sections=["ops"]).ops
    by_name = all_of_sample.ops
    assert by_shapes.by == ["shapes"]
    assert by_shapes.total > by_name.total
    mm = [row for row in by_shapes.rows if row.name == "aten::mm"]
    assert len({row.shapes for row in mm}) == len(mm) > 1
    assert sum(row.calls for row in mm) == next(row.calls for row in by_name.rows if row.name == "aten::mm")


def test_some_sections(sample: Profile) -> None:
    found = report(sample, sections=["ops"])
    assert found.ops.rows
    assert found.steps.count == 3
    assert not found.memory.devices
    with pytest.raises(StepscopeError, match="no section nonsense"):
        report(sample, sections=["nonsense"])


@pytest.mark.parametrize("name", ["findings", "problems"])
def test_a_section_is_the_same_whichever_are_shown(
    two_ranks: Profile, of_two_ranks: Report, name: str
) -> None:
    """Stragglers and ranks that differ show only between ranks, which is the section of collectives."""
    assert getattr(report(two_ranks, sections=[name]), name) == getattr(of_two_ranks, name)
    assert "collectives" in {section.name for section in chosen_sections([name])}
    assert "collectives" not in {section.name for section in chosen_sections([name], several=False)}


def test_every_section_has_a_place() -> None:
    assert set(SECTION_NAMES) <= set(ORDER)


def _fails(*_: Any) -> Any:
    raise ZeroDivisionError("oh no\nsecond line")


def test_a_fault_costs_only_its_section(two_ranks: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [
        dataclasses.replace(section, of_rank=_fails) if section.name in ("ops", "memory") else section
        for section in SECTIONS
    ]
    monkeypatch.setattr(module, "SECTIONS", broken)
    with pytest.raises(ZeroDivisionError):
        report(two_ranks)
    monkeypatch.delenv(RAISE)
    found = report(two_ranks)
    told = [problem for problem in found.problems if problem.code == "analysis-failed"]
    assert [problem.title for problem in told] == ["stepscope could not compute: memory, ops"]
    assert told[0].detail == "ZeroDivisionError: oh no On ranks 0–1."
    assert found.breakdown
    assert not found.ops.rows


def test_from_python(sample: Profile, of_sample: Report) -> None:
    found = stepscope.report(SAMPLE, sections=["ops"])
    assert isinstance(found, Report)
    assert sample.report().ops.rows == found.ops.rows == of_sample.ops.rows
    import stepscope.reports.model.report as package

    assert package.Report is Report


def test_without_steps_the_recording_is_explained() -> None:
    bare = draft()
    events = bare.events.filter(~pl.col("name").str.starts_with("ProfilerStep"))
    found = report(Profile("/x", [finish(Draft(info=bare.info, events=events, tracks=bare.tracks))], [0]))
    assert (found.steps.source, found.steps.count, found.steps.confidence) == ("whole", 1, "low")
    assert sum(row.ns for row in found.breakdown) == found.profile.duration_ns


def test_steps_by_the_name_of_an_annotation(sample: Profile, all_of_sample: Report) -> None:
    found = report(sample, step_name="make_batch", limit=0)
    assert (found.steps.source, found.steps.name, found.steps.count) == ("annotation", "make_batch", 3)
    assert all(sum(row.parts.values()) == row.duration_ns for row in found.steps.rows)
    inside = sum(row.calls for row in found.ops.rows)
    assert 0 < inside < sum(row.calls for row in all_of_sample.ops.rows) + 1


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.name)
def test_the_same_profile_gives_the_same_report(path: Path) -> None:
    assert as_json(of(path)) == as_json(report(load(path), limit=0))
