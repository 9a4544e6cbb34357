"""The first steps of the recording are slower than the others."""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.steps.step_outliers import are_first, slow_steps


def find(case: Case) -> Finding | None:
    """The same as slow steps, but nothing to save in the others: the first ones are paid once in a job."""
    found = slow_steps(case) if are_first(case) else None
    if found is None:
        return None
    fix = RULE.fix_for(case.trace.info.framework)
    return RULE.finding(found.detail, fix, evidence=found.evidence, share=found.share)


RULE: Rule[Case] = Rule(
    code="warm-up",
    title="The first steps of the recording are warm-up",
    turn=40,
    class_="advice",
    page="steps",
    owns="the same, if only the first one to three steps of the recording are slow",
    change="the job pays for them once",
    fix={
        ANY: "Compilation, autotuning and caches are paid once in a job. To judge the usual step, record later: stepscope.schedule(skip=10, active=5), or leave those steps out with --step.",
    },
    find=find,
)
