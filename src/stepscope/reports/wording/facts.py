"""Single figures of a section, in words, for every rendering alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stepscope import units
from stepscope.reports.model.report import Report, Steps
from stepscope.reports.wording.memory import notes
from stepscope.reports.wording.values import share

Fact = tuple[str, str]
VERDICT = "verdict"  # a sentence that needs no label


_INFLATED = 1.02  # less is noise


def facts_of(report: Report, section: str) -> list[Fact]:
    """What is known of the section in single figures: a label and its value each."""
    return [(label, value) for label, value in _WAYS[section](report) if value] if section in _WAYS else []


def is_sentence(value: str) -> bool:
    """Whether the value wants a line of its own."""
    return value.endswith(".")


def _share(label: str, value: float | None, of: str = "") -> Fact:
    return label, "" if value is None else f"{share(value)} {of}".strip()


def _duration(label: str, value: int | None, when: str = "") -> Fact:
    return label, "" if value is None else f"{units.duration(value)} {when}".strip()


def _steps(report: Report) -> Iterator[Fact]:
    found = report.steps
    if not found.count:
        return
    yield "steps", "none: the whole recording" if found.source == "whole" else f"{found.count:,}"
    yield "found by", _source(found)
    yield "confidence", found.confidence or ""
    yield _share("covers", found.covers, "of the recorded device time")
    yield "warm-up", f"{found.warm_ups:,} × {found.warm_up}, left out" if found.warm_ups else ""
    yield _duration("median", found.median_ns)
    yield _duration("mean", found.mean_ns)
    yield _duration("10th percentile", found.p10_ns)
    yield _duration("90th percentile", found.p90_ns)
    yield _duration("shortest", found.min_ns)
    yield _duration("longest", found.max_ns)
    yield "outliers", f"{found.outliers:,}" if found.outliers else ""
    yield "pieces at the ends", f"{found.partial:,}, left out" if found.partial else ""
    yield "with the profiler a step takes", inflation(report)


def _source(found: Steps) -> str:
    return f"{found.source} {found.name or ''}".strip()


def inflation(report: Report) -> str:
    """How much longer profiling makes a step, and how that is known; nothing where it is not, or not worth telling."""
    found = report.steps
    if not found.inflation or found.inflation < _INFLATED:
        return ""
    return f"{found.inflation:.2f} times as long ({found.inflation_source or 'measured'})"


def _critical_path(report: Report) -> Iterator[Fact]:
    found = report.critical_path
    for kind, part in found.kinds.items():
        yield _share(kind, part)
    yield VERDICT, _NOT_REPLAYED if found.source == "account" else ""


_NOT_REPLAYED = "These steps cannot be replayed: this is the account of the device in the order of time."


def _input(report: Report) -> Iterator[Fact]:
    found = report.input
    if found.stages:
        yield _share("in the loader", found.share, "of step time")
        who = "step" if report.device.busy_share is None and not report.profile.devices else "device"
        yield _share(f"the {who} waits", found.exposed_share, "of step time")
    yield VERDICT, found.verdict


def _serving(report: Report) -> Iterator[Fact]:
    """Of inference alone: training has sections of its own."""
    found = report.serving
    if found.workload != "inference":
        return
    yield "engine", found.engine or ""
    yield "known by", found.evidence
    if found.gaps.count:
        yield _duration("gaps between executions", found.gaps.median_ns, "in the median")
        yield _share("in gaps", found.gaps.share, "of the time of the executions")


def _precision(report: Report) -> Iterator[Fact]:
    found = report.precision
    if found.shares:
        able = "" if found.eligible_share is None else f", of {share(found.eligible_share)} that could be"
        yield _share("on tensor cores", found.tensor_core_share, f"of compute time{able}")
    if found.unknown_total:
        count = f"{found.unknown_total:,} kernel{'s' if found.unknown_total > 1 else ''}"
        yield _share("unknown", found.unknown_share, f"of compute time, {count}: -v lists them")


def _roofline(report: Report) -> Iterator[Fact]:
    found = report.roofline
    if not found.parts:
        return
    yield _share("known", found.known_share, "of compute time")
    yield _share("HFU", found.hfu)
    yield _share("MFU", found.mfu, "without what is recomputed" if found.mfu != found.hfu else "")


def _device(report: Report) -> Iterator[Fact]:
    found = report.device
    yield _share("busy", found.busy_share)
    yield _share("MFU", found.mfu)
    yield _share("of its own precision's peak", found.mfu_own_precision)
    yield _share("SM efficiency", found.sm_efficiency)
    yield _share("occupancy", found.occupancy)
    yield "streams", f"{found.streams:,}" if found.streams else ""
    yield "kernels at once", "" if found.concurrency is None else f"{found.concurrency:.2f}"
    queue = found.queue
    if queue.launches:
        yield "launches", f"{queue.launches:,}"
        yield _duration("launch to start", queue.median_delay_ns, "in the median")
        yield _duration("launch to start", queue.p90_delay_ns, "in 9 of 10 cases at most")
        yield "queued", "" if queue.median_depth is None else f"{queue.median_depth:.3g} in the median"
        yield _share("met an idle device", queue.empty_share, "of launches")


def _memory(report: Report) -> Iterator[Fact]:
    yield from notes(report)


def _collectives(report: Report) -> Iterator[Fact]:
    found = report.collectives
    if found.rows:
        yield _share("not hidden", found.exposed_share, "of step time")
        yield _share("in all", found.kernel_share, "of kernel time")


_WAYS: dict[str, Callable[[Report], Iterator[Fact]]] = {
    "steps": _steps,
    "critical_path": _critical_path,
    "input": _input,
    "serving": _serving,
    "precision": _precision,
    "roofline": _roofline,
    "device": _device,
    "memory": _memory,
    "collectives": _collectives,
}
