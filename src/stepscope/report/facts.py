"""Single figures of a section, in words, for every rendering alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stepscope import units
from stepscope.report.model import Report
from stepscope.report.shown import share, shown
from stepscope.report.tables import where

Fact = tuple[str, str]


def facts_of(report: Report, section: str) -> list[Fact]:
    """What is known of the section in single figures: a label and its value each."""
    return [(label, value) for label, value in _WAYS[section](report) if value] if section in _WAYS else []


def _share(label: str, value: float | None) -> Fact:
    return label, "" if value is None else share(value)


def _duration(label: str, value: int | None) -> Fact:
    return label, "" if value is None else units.duration(value)


def _steps(report: Report) -> Iterator[Fact]:
    found = report.steps
    if not found.count:
        return
    yield "steps", f"{found.count:,}"
    yield "marked by", f"{found.name or ''} ({found.source})".strip()
    yield _duration("median", found.median_ns)
    yield _duration("mean", found.mean_ns)
    yield _duration("10th percentile", found.p10_ns)
    yield _duration("90th percentile", found.p90_ns)
    yield _duration("shortest", found.min_ns)
    yield _duration("longest", found.max_ns)
    yield "outliers", f"{found.outliers:,}" if found.outliers else ""
    yield "partial", f"{found.partial:,}, left out of the figures" if found.partial else ""
    yield "profiling makes a step longer by", f"{found.inflation:.2f}×" if found.inflation else ""


def _input(report: Report) -> Iterator[Fact]:
    found = report.input
    if found.stages:
        yield _share("of step time in the loader", found.share)
        yield _share("of step time the device waits for it", found.exposed_share)
    yield "verdict", found.verdict


def _precision(report: Report) -> Iterator[Fact]:
    found = report.precision
    if found.shares:
        yield _share("of compute time on tensor cores", found.tensor_core_share)
        yield _share("could run on tensor cores", found.eligible_share)
        yield _share("not known", found.unknown_share)


def _device(report: Report) -> Iterator[Fact]:
    found = report.device
    yield _share("busy", found.busy_share)
    yield _share("MFU", found.mfu)
    yield _share("SM efficiency", found.sm_efficiency)
    yield _share("occupancy", found.occupancy)
    yield "streams", f"{found.streams:,}" if found.streams else ""
    yield "kernels at once", "" if found.concurrency is None else f"{found.concurrency:.2f}"
    queue = found.queue
    if queue.launches:
        yield "launches", f"{queue.launches:,}"
        yield _duration("launch to start, median", queue.median_delay_ns)
        yield _duration("launch to start, 90th percentile", queue.p90_delay_ns)
        yield (
            "queue depth, median",
            shown(queue.median_depth, "number") if queue.median_depth is not None else "",
        )
        yield _share("launches that met an idle device", queue.empty_share)


def _memory(report: Report) -> Iterator[Fact]:
    for device in report.memory.devices:
        yield where(report, device), device.note


def _collectives(report: Report) -> Iterator[Fact]:
    found = report.collectives
    if found.rows:
        yield _share("of step time not hidden", found.exposed_share)
        yield _share("of kernel time", found.kernel_share)


_WAYS: dict[str, Callable[[Report], Iterator[Fact]]] = {
    "steps": _steps,
    "input": _input,
    "precision": _precision,
    "device": _device,
    "memory": _memory,
    "collectives": _collectives,
}
