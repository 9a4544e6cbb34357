"""What the replay of all ranks says of a job, in a few numbers."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.lazy import dataclass
from stepscope.ranks.calls.unnamed_groups import Leaders
from stepscope.ranks.job.course import Course
from stepscope.ranks.job.gathered import PackedCourse
from stepscope.ranks.job.model import JobModel, job_model, mean_ns
from stepscope.ranks.job.roles import Roles
from stepscope.ranks.job.what_if import Bubble, Cause, explain


@dataclass(frozen=True)
class JobAnswers:
    """`replayed_ns` is the mean step of the unchanged replay, `recorded_ns` that of the recordings; no causes where they differ."""

    roles: Roles
    recorded_ns: float
    replayed_ns: float
    is_faithful: bool
    causes: tuple[Cause, ...] = ()
    bubble: Bubble | None = None
    transfers_ns: float | None = None
    model: JobModel | None = None  # for further questions; only where it is faithful


def answers(courses: Sequence[Course | PackedCourse], leaders: Leaders | None = None) -> JobAnswers | None:
    """None where ranks do not meet."""
    model = job_model(courses, leaders)
    if model is None:
        return None
    found = explain(model) if model.is_faithful else None
    return JobAnswers(
        model.roles,
        model.recorded_ns,
        mean_ns(model.base),
        found is not None,
        tuple(found.causes) if found is not None else (),
        found.bubble if found is not None else None,
        found.transfers_ns if found is not None else None,
        model if found is not None else None,
    )
