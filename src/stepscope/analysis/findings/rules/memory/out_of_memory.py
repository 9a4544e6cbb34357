"""The allocator gave up: a request did not fit."""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.snapshot.culprit import Culprit, name_culprits
from stepscope.analysis.snapshot.explain import Explained
from stepscope.analysis.snapshot.words import at, call
from stepscope.registers.policy.snapshot import NAMED_LINES
from stepscope.units import size


def find(case: Case) -> list[Finding]:
    """One for each device whose allocator failed."""
    return [_describe(one) for one in case.snapshots if one.failed]


def _describe(one: Explained) -> Finding:
    culprits = name_culprits(one)
    first = culprits[0] if culprits else None
    return RULE.finding(
        _detail(one, culprits),
        _advise(one, first),
        title=f"{RULE.title}: {_title(first)}" if first is not None else RULE.title,
        share=round(first.bytes / max(1, one.fragments.reserved), 4) if first is not None else 0.0,
        where=list(dict.fromkeys(place for culprit in culprits[:NAMED_LINES] for place in culprit.where))[
            :NAMED_LINES
        ],
        evidence={
            "device": one.device,
            "asked_bytes": one.asked,
            "allocated_bytes": one.allocated,
            "reserved_bytes": one.fragments.reserved,
            "cause": first.cause if first is not None else None,
            "bytes": first.bytes if first is not None else None,
            **({"wider_bytes": first.wider} if first is not None and first.wider else {}),
        },
    )


def _advise(one: Explained, first: Culprit | None) -> str:
    if first is not None and first.cause == "request":
        return "Check the size that is asked for; if it is meant, work through the data in pieces."
    return one.changes[0].text if one.changes else RULE.fix[ANY]


def _title(culprit: Culprit) -> str:
    where = f" at {at(culprit.where[0])}" if culprit.where else ""
    if culprit.cause == "kept":
        return f"{size(culprit.bytes)} kept{where}"
    if culprit.cause == "request":
        return f"{size(culprit.bytes)} asked for at once{where}"
    if culprit.cause == "growing":
        return f"{size(culprit.bytes)} grown{where}"
    if culprit.cause == "fragmentation":
        return f"{size(culprit.bytes)} free, but in pieces"
    return f"{size(culprit.bytes)} of {call(culprit.cause)}{where}"


def _detail(one: Explained, culprits: list[Culprit]) -> str:
    asked = f"{size(one.asked)} were asked for" if one.asked else "More was asked for"
    where = f" at {at(one.failed_at)}" if one.failed_at is not None else ""
    state = f"{asked}{where} while {size(one.allocated)} were in use on device {one.device}."
    return " ".join([*(culprit.text for culprit in culprits[:2]), state])


RULE: Rule[Case] = Rule(
    code="out-of-memory",
    title="Out of memory",
    turn=5,
    class_="memory",
    page="memory",
    owns="a snapshot in which a request failed",
    change="",
    fix={ANY: "Use a smaller batch, recompute activations, or shard the model."},
    find=find,
)
