"""Single figures of the two reports: steps, shares, peaks of memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

import polars as pl

from stepscope.diffs.data.model import Batch, Row
from stepscope.diffs.data.samples import HELD, Samples
from stepscope.diffs.explain.lines import PrecisionChange
from stepscope.diffs.explain.wording import describe_formats
from stepscope.diffs.noise.machine_speed import HOST
from stepscope.registers.calibration.runs import DEVICE_MEMORY_NOISE, HOST_MEMORY_NOISE, MEMORY_NOISE_BYTES
from stepscope.registers.policy.diffs import DIFF_DEVICES
from stepscope.reports.model.report import Report

MEDIAN_STEP = "median step"
UTILISATION = "model FLOPs utilisation"
_NUMBER = re.compile(r" \d+(?= |$)")


def _find_peak(report: Report) -> int | None:
    peaks = [row.peak_bytes or 0 for row in report.memory.devices if row.device_kind != "cpu"]
    return max(peaks, default=None)


FIGURES: tuple[tuple[str, str, Callable[[Report], float | None]], ...] = (
    (MEDIAN_STEP, "ns", lambda report: report.steps.median_ns),
    ("p90 step", "ns", lambda report: report.steps.p90_ns),
    ("steps", "count", lambda report: report.steps.count),
    ("device busy", "share", lambda report: report.device.busy_share),
    (UTILISATION, "share", lambda report: report.device.mfu),
    ("tensor cores", "share", lambda report: report.precision.tensor_core_share),
    ("exposed input", "share", lambda report: report.input.exposed_share),
    ("exposed communication", "share", lambda report: report.collectives.exposed_share),
    ("peak memory", "bytes", _find_peak),
    ("ranks", "count", lambda report: len(report.profile.ranks)),
)


def make_plain_row(name: str, a: float | None, b: float | None, unit: str) -> Row:
    """Figures without samples: their noise is unknown."""
    difference = (b or 0) - (a or 0)
    return Row(
        name=name,
        a=a,
        b=b,
        difference=difference,
        relative=difference / a if a and b is not None else None,
        unit=unit,
    )


def compare_figures(a: Report, b: Report, batch: Batch | None) -> list[Row]:
    """Those that a run has; with another batch, also the step per sample, in samples of A's batch."""
    rows = [make_plain_row(name, read(a), read(b), unit) for name, unit, read in FIGURES]
    known = [row for row in rows if row.a is not None or row.b is not None]
    step = known[0] if known and known[0].name == MEDIAN_STEP else None
    if batch is not None and step is not None and step.b is not None:
        per_batch = make_plain_row(f"{MEDIAN_STEP} per batch of A's size", step.a, step.b / batch.ratio, "ns")
        known.insert(1, per_batch)
    return known


_NARROW_FORMATS = {"fp8", "fp4", "int8", "int4"}


def note_other_peaks(rows: Sequence[Row], change: PrecisionChange | None) -> None:
    """Utilisation is of the peak of 16 bits, or of a narrower format: with one of those it refers to another peak."""
    if change is None or not {change.before, change.after} & _NARROW_FORMATS:
        return
    for row in rows:
        if row.name == UTILISATION and row.a is not None and row.b is not None:
            row.note = f"of another peak: {describe_formats(change.before, change.after)}"


def compare_memory(a: Samples, b: Samples) -> list[Row]:
    """The highest peak over ranks, by memory; where a run has more than DIFF_DEVICES of a kind, of the fullest."""
    both = [_find_peaks(side) for side in (a, b)]
    crowded = {
        kind
        for peaks in both
        for kind, count in Counter(map(_find_kind, peaks)).items()
        if count > DIFF_DEVICES
    }
    ours, theirs = (_keep_fullest(each, crowded) for each in both)
    if any(HELD in name for name in ours) and any(HELD in name for name in theirs):
        ours, theirs = _with_absent(ours, theirs), _with_absent(theirs, ours)
    rows = [make_plain_row(name, ours.get(name), theirs.get(name), "bytes") for name in {**ours, **theirs}]
    for row in rows:
        share = HOST_MEMORY_NOISE if row.name == HOST else DEVICE_MEMORY_NOISE
        least = max(MEMORY_NOISE_BYTES, share * max(row.a or 0, row.b or 0))
        row.significant = row.a is not None and row.b is not None and abs(row.difference) > least
    return sorted(rows, key=lambda row: (-abs(row.difference), row.name))


def _with_absent(ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, int]:
    """What only the other snapshot holds is 0 in this one."""
    return {**{name: 0 for name in theirs if HELD in name}, **ours}


def _find_kind(name: str) -> str:
    """gpu 3 → gpu."""
    return _NUMBER.sub("", name)


def _keep_fullest(peaks: Mapping[str, int], crowded: Collection[str]) -> dict[str, int]:
    fullest: dict[str, int] = {}
    for name, peak in peaks.items():
        kind = _find_kind(name)
        title = f"the fullest {kind}" if kind in crowded else name
        fullest[title] = max(peak, fullest.get(title, 0))
    return fullest


def _find_peaks(samples: Samples) -> dict[str, int]:
    known = samples.memory.filter(pl.col("peak_bytes").is_not_null())
    return dict(known.group_by("name").agg(pl.col("peak_bytes").max()).sort("name").iter_rows())
