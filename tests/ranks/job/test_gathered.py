"""Courses of many ranks in one table of each kind, as they travel."""

from __future__ import annotations

import pickle
from dataclasses import replace

import polars as pl
import pytest

from stepscope.ranks.job.answers import answers
from stepscope.ranks.job.course import WORK, Course
from stepscope.ranks.job.gathered import gather, packed
from stepscope.ranks.job.model import job_model
from tests.builders.jobs.parallel_job import Job, courses

SLOW = Job(tensor=2, stages=2, replicas=4, device=lambda rank, _: 1.3 if rank == 5 else 1.0)


def test_a_packed_course_is_the_course() -> None:
    for course in courses(SLOW):
        again = pickle.loads(pickle.dumps(packed(replace(course, host="node1")))).unpacked()
        assert (again.rank, again.host, again.step_ns) == (course.rank, "node1", course.step_ns)
        for name in ("work", "calls", "did"):
            assert getattr(again, name).equals(getattr(course, name))
            assert getattr(again, name).schema == getattr(course, name).schema


def test_packed_courses_take_little() -> None:
    for course in courses(SLOW):
        size = sum(map(len, packed(course).tables))
        assert size < 0.4 * (course.work.estimated_size() + course.calls.estimated_size())


def test_the_answers_are_those_of_the_courses() -> None:
    plain, small = answers(courses(SLOW)), answers([packed(each) for each in courses(SLOW)])
    assert plain is not None and small is not None
    assert [cause.ranks for cause in small.causes] == [(5,)]
    assert (small.causes, small.replayed_ns, small.roles) == (plain.causes, plain.replayed_ns, plain.roles)


@pytest.mark.parametrize("at_once", [1, 3, 64])
def test_batches_of_any_size_are_the_same(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And ranks that did nothing are left out."""
    monkeypatch.setattr("stepscope.ranks.job.gathered.COURSES_AT_ONCE", at_once)
    several = courses(SLOW)
    several.insert(2, Course(99, pl.DataFrame(schema=WORK)))
    found = gather(several)
    assert found.ranks == [each.rank for each in courses(SLOW)]
    places = found.calls.unique("rank", keep="first", maintain_order=True)
    sizes = [(len(each.work), len(each.calls)) for each in courses(SLOW)]
    assert places["first_work"].to_list() == [sum(work for work, _ in sizes[:at]) for at in range(len(sizes))]
    assert places["first_call"].to_list() == [sum(made for _, made in sizes[:at]) for at in range(len(sizes))]
    assert len(found.work) == sum(work for work, _ in sizes)


@pytest.mark.parametrize("at_once", [1, 3])
def test_work_is_divided_alike_in_batches_of_any_size(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = job_model(courses(SLOW))
    monkeypatch.setattr("stepscope.ranks.job.model.COURSES_AT_ONCE", at_once)
    model = job_model(courses(SLOW))
    assert whole is not None and model is not None
    assert whole.work["segment"].n_unique() > 2
    assert model.work.equals(whole.work)
    order = ["stage", "step", "rank"]
    assert model.totals.sort(order).equals(whole.totals.sort(order))
    assert model.totals["compute_ns"].sum() == model.work["compute_ns"].sum()


def test_calls_of_a_model_are_all_that_is_no_work() -> None:
    model = job_model(courses(SLOW))
    assert model is not None
    calls = model.nodes.with_row_index("row").filter(pl.col("name").is_not_null())
    assert model.calls.equals(calls)
    assert model.work["row"].to_list() == list(range(len(model.nodes) - len(calls)))


def test_nothing_of_nobody() -> None:
    assert gather([]).ranks == [] and gather([]).work.is_empty()
