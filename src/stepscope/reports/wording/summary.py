"""Words and figures that several renderings take from a report."""

from __future__ import annotations

from collections import Counter
from typing import Any

from stepscope import units
from stepscope.analysis.parts import PARTS, spoken
from stepscope.lazy import dataclass
from stepscope.reports.model.report import BreakdownRow, Finding, Interval, Report, StepRow
from stepscope.reports.wording.devices import charged_device
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.values import share

_LEAST_GAIN = 1.005  # less is written as 1.00×


def own_rows(report: Report, rank: int | None = None) -> list[StepRow]:
    """The steps of each rank's critical device, or of one rank's."""
    devices = report.steps.critical_devices
    return [
        row
        for row in report.steps.rows
        if (rank is None or row.rank == rank) and devices.get(str(row.rank), row.device) == row.device
    ]


def own_steps(report: Report) -> int:
    """How many steps the account is over, each rank's counted; 1 where it is over the whole recording."""
    return max(1, len(own_rows(report)))


def basis(report: Report) -> str:
    """What the account is over; of several devices in a process it is of the one that decides."""
    return ", ".join(filter(None, [_steps_in_words(report), charged_device(report)]))


def _steps_in_words(report: Report) -> str:
    if not report.steps.rows or report.steps.source == "whole":
        asked_for = report.steps.confidence == "high"
        return "the whole recording" + ("" if asked_for else ", since no steps were found")
    ranks, steps = len(report.profile.ranks), own_steps(report)
    steps = steps // ranks if ranks and steps % ranks == 0 else steps  # equally many on each
    over = "one step" if steps == 1 else f"mean of {steps:,} steps"
    return over + (f" on {ranks:,} ranks" if ranks > 1 else "")


def sampled(report: Report) -> str:
    """Which steps the findings are made of, where these are not all."""
    found = report.steps.sample
    return f"from {found.count:,} of {found.of:,} steps" if found is not None else ""


def in_order(rows: list[BreakdownRow]) -> list[BreakdownRow]:
    """What keeps the device busy first, then what keeps it idle, the longest first."""
    return sorted(rows, key=lambda row: (not part(row.part).is_busy, -row.ns))


@dataclass(frozen=True)
class Named:
    """A name of a part, its time on all threads, and what says more about most of it; `place` as in the report."""

    name: str
    ns: int
    detail: str | None
    place: str | None = None


def longest_names(row: BreakdownRow, most: int = 3) -> list[Named]:
    """The longest names of a part, whatever thread they are on; the ends of all steps are one place."""
    summed: Counter[tuple[str, str | None]] = Counter()
    details: dict[str, str] = {}
    for each in row.names:
        if each.place == "end":
            continue
        summed[each.name, each.place] += each.ns
        if each.detail is not None:
            details.setdefault(each.name, each.detail)
    if row.end_ns:
        summed["", "end"] = row.end_ns
    return [Named(name, ns, details.get(name), place) for (name, place), ns in summed.most_common(most)]


def placed(name: str, place: str | None) -> str:
    """The name of what spent the time; where it is, if that is all that is known."""
    if place == "end":
        return "at the end"
    return f"{place} {name}" if place else name


def about_names(row: BreakdownRow) -> str:
    """How much of the part its names say."""
    if any(each.place for each in row.names) or row.end_ns:
        return "The names only say where it is."
    return f"{share(row.named_share)} of this time has a name."


def evidence(finding: Finding) -> list[tuple[str, str]]:
    """The figures that a finding rests on, in words."""
    return [
        (_label(key), _words(key, value))
        for key, value in finding.evidence.items()
        if value not in (None, [])
    ]


def _label(key: str) -> str:
    """What is measured; the unit comes with the figure."""
    return " ".join(word for word in key.split("_") if word not in ("ns", "bytes"))


def _words(key: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_words(key, each) for each in value)
    if isinstance(value, dict):
        name = placed(str(value.get("name", "")), value.get("place"))
        rest = [_figure(each, figure) for each, figure in value.items() if each not in ("name", "place")]
        return f"{name} ({', '.join(rest)})" if name and rest else name or ", ".join(rest)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return spoken(value) if value in PARTS else str(value)
    if "ns" in key.split("_"):
        return units.duration(value)
    if "bytes" in key.split("_"):
        return units.size(value)
    return share(value) if key.endswith("share") else f"{value:,}"


def _figure(key: str, value: Any) -> str:
    """Of several; a part of the account comes with its time."""
    if key in PARTS and isinstance(value, int):
        return f"{spoken(key)} {units.duration(value)}"
    return f"{_label(key)} {_words(key, value)}"


def saved_time(report: Report, finding: Finding) -> str:
    """How long the change makes a step shorter; the recording, if that has no steps."""
    each = "" if report.steps.source == "whole" else " a step"
    return f"saves about {units.duration(finding.saves_ns_per_step)}{each}"


def gain(report: Report, finding: Finding) -> str:
    """What the change would bring."""
    if finding.speedup.mid < _LEAST_GAIN:
        return "hardly saves time by itself" + (
            f", {speedup(finding.speedup)} at best" if finding.speedup.high > _LEAST_GAIN else ""
        )
    return f"{saved_time(report, finding)}: speed-up {speedup(finding.speedup)}"


def speedup(found: Interval) -> str:
    """`1.4–2.1× (most likely 1.7×)`."""
    bounds, mid = units.speedup(found.low, found.high), units.times(found.mid)
    is_said = found.low >= units.MOST_TIMES or mid in (units.times(found.low), units.times(found.high))
    return bounds if is_said else f"{bounds} (most likely {mid}×)"


def together(report: Report) -> str:
    """What all changes bring together, where there are several."""
    found = report.together
    several = (
        sum(1 for finding in report.findings if finding.class_ == "time" and finding.saves_ns_per_step > 0)
        > 1
    )
    return f"All of these together: speed-up {speedup(found)}." if found is not None and several else ""
