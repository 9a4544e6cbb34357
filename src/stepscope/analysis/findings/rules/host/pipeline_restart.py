"""TensorFlow starts an input pipeline, or a whole loop of Keras, again in every step."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.pipeline_starts import PipelineStarts, find_pipeline_starts
from stepscope.native.host.lineage import USER
from stepscope.registers.policy.findings import ACCOUNT_SAVES_LEAST, MAJORITY, WORTH_A_FINDING
from stepscope.registers.policy.steps import RESTART_LEAVES_MOST

_OF_LOOP = ("dispatch", "input", "python")  # what is compiled outside a start is a function of the model


def find(case: Case) -> Finding | None:
    """Each step makes a new dataset and iterator, mostly for a batch or a few."""
    if case.trace.info.framework != "tensorflow" or case.device is not None:
        return None
    starts = find_pipeline_starts(case.trace)
    if starts is None or not _is_in_every_step(case, starts):
        return None
    owned = _owned(case, starts)
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    times = starts.count / len(starts.steps)
    detail = (
        f"{case.of_step(ns)} goes into the start of input pipelines: a step makes {times:,.0f} "
        f"iterator{'s' if round(times) != 1 else ''} over a new dataset, as model.fit(), evaluate() and predict() do in each call, "
        "and next(iter(dataset))."
    )
    evidence = {"iterators_per_step": round(times, 1)}
    return timed(case, RULE, owned, case.plan, detail, evidence, accounted=_left(case, ns))


def _is_in_every_step(case: Case, starts: PipelineStarts) -> bool:
    """The first step of an epoch makes an iterator in any job; one recorded step may be such."""
    steps = set(case.slices["step"].unique())
    return len(steps) > 1 and steps <= set(starts.steps)


def _owned(case: Case, starts: PipelineStarts) -> pl.DataFrame:
    """The starts; and where they are most of the host's time outside the model's functions, what is around them as well.

    Then the loop of Keras is what takes the time, not only its dataset.
    """
    free = case.free((pl.col("part") != "python") | _is_of_libraries(case))
    starting, running = (
        within(free["start_ns"], spans["start_ns"], spans["end_ns"] - 1)
        for spans in (starts.spans, starts.runs)
    )
    mine = free.filter(starting)
    around = free.filter(~starting & ~running & pl.col("part").is_in(_OF_LOOP))
    both = int(mine["ns"].sum()) + int(around["ns"].sum())
    return pl.concat([mine, around]) if int(mine["ns"].sum()) > MAJORITY * both else mine


def _is_of_libraries(case: Case) -> pl.Expr:
    """Python in functions of TensorFlow, Keras and others, not of the user."""
    users = case.trace.events["id"].filter(host_codes(case.trace) == USER)
    return ~pl.col("named_by").is_in(users.implode())


def _left(case: Case, ns: float) -> Interval:
    """All but the starts; at worst some times as much, for what still goes through Keras in each step."""
    share = min(1.0, ns / case.step_ns)
    rest = 1 - share
    return Interval(rest, rest, min(RESTART_LEAVES_MOST * rest, 1 - ACCOUNT_SAVES_LEAST * share))


RULE: Rule[Case] = Rule(
    code="pipeline-restart",
    title="Every step starts an input pipeline again",
    turn=45,
    owns="the host's time in making datasets and iterators, if TensorFlow makes one in every step of a job on a CPU; all dispatch, input and Python of libraries outside the functions of the model, if that is most of it",
    change="only the runs of the model's functions and the job's own Python remain; at worst, three times as much",
    fix={
        "tensorflow": "Make the iterator once, outside the loop: iterator = iter(dataset), then next(iterator) in each step. Instead of predict() on small inputs, call model(x, training=False) inside a tf.function; instead of fit() for each batch, train_on_batch, or one fit() over the whole dataset.",
        ANY: "Make the iterator once, outside the loop.",
    },
    find=find,
)
