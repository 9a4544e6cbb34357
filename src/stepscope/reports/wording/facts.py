"""Single figures of a section, in words, for every rendering alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stepscope import units
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.reports.model.report import Queue, Report, Steps
from stepscope.reports.wording.devices import over_all
from stepscope.reports.wording.memory import notes
from stepscope.reports.wording.values import share

Fact = tuple[str, str]
VERDICT = "verdict"  # a sentence that needs no label


INFLATED = 1.02  # less is noise


def facts_of(report: Report, section: str) -> list[Fact]:
    """What is known of the section in single figures: a label and its value each."""
    return [(label, value) for label, value in _WAYS[section](report) if value] if section in _WAYS else []


def is_sentence(value: str) -> bool:
    """Whether the value wants a line of its own."""
    return value.endswith(".")


def _share(label: str, value: float | None, of: str = "") -> Fact:
    return label, "" if value is None else f"{share(value)} {of}".strip()


def _of_steps(report: Report) -> str:
    return "of the time" if report.steps.source == "whole" else "of step time"


def _duration(label: str, value: int | None, when: str = "") -> Fact:
    return label, "" if value is None else f"{units.duration(value)} {when}".strip()


def _steps(report: Report) -> Iterator[Fact]:
    found = report.steps
    if not found.count:
        return
    yield "steps", "none: the whole recording" if found.source == "whole" else f"{found.count:,}"
    yield "marked by", _source(found)
    yield "confidence", found.confidence or ""
    yield _share("covers", found.covers, "of the recorded device time")
    yield "warm-up", f"{found.warm_ups:,} × {found.warm_up}, left out" if found.warm_ups else ""
    yield _duration("median", found.median_ns)
    yield _duration("mean", found.mean_ns)
    yield _duration("p10", found.p10_ns)
    yield _duration("p90", found.p90_ns)
    yield _duration("shortest", found.min_ns)
    yield _duration("longest", found.max_ns)
    yield "outliers", f"{found.outliers:,}" if found.outliers else ""
    yield "incomplete steps", f"{found.partial:,}, left out" if found.partial else ""
    yield "slowed down by the profiler", inflation(report)


def _source(found: Steps) -> str:
    return f"{found.source} {found.name or ''}".strip()


def inflation(report: Report) -> str:
    """How much longer profiling makes a step, and how that is known; nothing where it is unknown or too little."""
    found = report.steps
    if not found.inflation or found.inflation < INFLATED:
        return ""
    return f"{found.inflation:.2f}× ({found.inflation_source or 'measured'})"


def _hang(report: Report) -> Iterator[Fact]:
    yield VERDICT, report.hang.sentence


def _critical_path(report: Report) -> Iterator[Fact]:
    found = report.critical_path
    for kind, part in found.kinds.items():
        yield _share(kind, part)
    yield VERDICT, _NOT_REPLAYED if found.source == "account" else ""
    yield VERDICT, _AS_RECORDED if found.source == "replay" and _gains_off_path(report) else ""


def _gains_off_path(report: Report) -> bool:
    """Whether findings about kernels promise something, though the device is hardly on the path of the recorded steps."""
    gains = any(
        each.page == "kernels" and each.class_ == "time" and each.speedup.mid > 1 + WORTH_A_FINDING
        for each in report.findings
    )
    return gains and report.critical_path.kinds.get("device", 0.0) < WORTH_A_FINDING


_AS_RECORDED = "This is the path of the recorded steps, in which the profiler slows the host. What findings about kernels promise is of the step without it, where the device decides more."
_NOT_REPLAYED = "These steps cannot be replayed: this is the account of the device in the order of time."


def _input(report: Report) -> Iterator[Fact]:
    found = report.input
    if found.stages:
        yield _share("loader", found.share, _of_steps(report))
        who = "step" if report.device.busy_share is None and not report.profile.devices else "device"
        yield _share(f"the {who} waits", found.exposed_share, _of_steps(report))
    yield VERDICT, found.verdict


def _serving(report: Report) -> Iterator[Fact]:
    """Of inference alone: training has sections of its own."""
    found = report.serving
    if found.workload != "inference":
        return
    yield "engine", found.engine or ""
    yield "known by", found.evidence
    if found.gaps.count:
        yield _duration("gaps between executions, median", found.gaps.median_ns)
        yield _share("in gaps", found.gaps.share, "of the time of the executions")


def _precision(report: Report) -> Iterator[Fact]:
    found = report.precision
    if found.shares:
        yield _share("on tensor cores", found.tensor_core_share, "of compute time")
        yield _share("eligible for tensor cores", found.eligible_share, "of compute time")
    if found.unknown_total:
        count = f"{found.unknown_total:,} kernel{'s' if found.unknown_total > 1 else ''}"
        yield _share("unknown", found.unknown_share, f"of compute time, {count}: -v lists them")


def _roofline(report: Report) -> Iterator[Fact]:
    found = report.roofline
    if not found.parts:
        return
    yield _share("known", found.known_share, "of compute time")
    yield _share("HFU", found.hfu)
    yield _share("MFU", found.mfu, "without recomputation" if found.mfu != found.hfu else "")


def _device(report: Report) -> Iterator[Fact]:
    found = report.device
    yield _share("busy", found.busy_share, over_all(report))
    yield _share("MFU", found.mfu)
    yield _share("MFU at the peak of the precision in use", found.mfu_own_precision)
    yield _share("SM efficiency", found.sm_efficiency)
    yield _share("occupancy", found.occupancy)
    yield "streams", f"{found.streams:,}" if found.streams else ""
    yield "concurrent kernels", "" if found.concurrency is None else f"{found.concurrency:.2f}"
    queue = found.queue
    if queue.launches:
        yield "launches", f"{queue.launches:,}"
        yield "launch latency", _latency(queue)
        yield "queue depth, median", "" if queue.median_depth is None else f"{queue.median_depth:.3g}"
        yield _share("launches to an idle device", queue.empty_share)


def _latency(queue: Queue) -> str:
    """From the launch to the start of the kernel."""
    figures = (("median", queue.median_delay_ns), ("p90", queue.p90_delay_ns))
    return ", ".join(f"{name} {units.duration(ns)}" for name, ns in figures if ns is not None)


def _memory(report: Report) -> Iterator[Fact]:
    yield from notes(report)


def _collectives(report: Report) -> Iterator[Fact]:
    found = report.collectives
    if found.rows:
        yield _share("exposed", found.exposed_share, f"{_of_steps(report)} {over_all(report)}".rstrip())
        yield _share("total", found.kernel_share, "of kernel time")


_WAYS: dict[str, Callable[[Report], Iterator[Fact]]] = {
    "hang": _hang,
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
