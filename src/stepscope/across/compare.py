"""Two runs side by side: what each costs per step, and the difference. Pure arithmetic over two reports in JSON form.

Times are per step and rank, so that runs of different length and size compare. What one run does not have is null
there, and counts as 0 in the difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from stepscope.across.diff_figures import FIGURES
from stepscope.across.diff_model import Diff, Line
from stepscope.across.diff_model import Row as DiffRow

ROWS = 200
Report = Mapping[str, Any]


class Row(msgspec.Struct):
    """One figure of both runs. `more` has further figures, each as [a, b]."""

    name: str
    a: float | None
    b: float | None
    difference: float
    unit: str = ""
    more: dict[str, list[float | None]] = {}
    noise: float | None = None
    significant: bool | None = None  # more than chance; null where that was not judged


class Change(msgspec.Struct):
    """A finding that one run has or both have; what it would save per step in each."""

    code: str
    title: str
    a_saves_ns: int | None
    b_saves_ns: int | None


class Comparison(msgspec.Struct):
    """Everything that differs, the largest difference first within each list."""

    figures: list[Row]
    parts: list[Row]
    ops: list[Row]
    ops_total: int
    ops_measure: str
    kernels: list[Row]
    kernels_total: int
    memory: list[Row]
    gained: list[Change]
    lost: list[Change]
    kept: list[Change]
    steps: dict[str, list[int]]
    verdict: str = ""
    lines: list[Line] = []
    not_comparable: list[str] = []


@dataclass(frozen=True)
class Side:
    """A report in JSON form, and how many steps its sums are over, each rank's counted."""

    report: Report
    steps: int


def compare(a: Side, b: Side) -> Comparison:
    """`difference` is b − a: what b takes more."""
    measure = _measure(a, b)
    ops = _paired(_ops(a, measure), _ops(b, measure), "ns")
    kernels = _paired(_kernels(a), _kernels(b), "ns")
    gained, lost, kept = _findings(a.report, b.report)
    return Comparison(
        figures=_figures(a.report, b.report),
        parts=_paired(_parts(a), _parts(b), "ns"),
        ops=ops[:ROWS],
        ops_total=len(ops),
        ops_measure=measure,
        kernels=kernels[:ROWS],
        kernels_total=len(kernels),
        memory=_paired(_memory(a.report), _memory(b.report), "bytes"),
        gained=gained,
        lost=lost,
        kept=kept,
        steps={"a": _durations(a.report), "b": _durations(b.report)},
    )


def judged(found: Comparison, diff: Diff) -> Comparison:
    """With what the diff of the same runs says: the verdict, what explains it, and which differences are more than chance."""
    found.verdict, found.lines, found.not_comparable = diff.verdict, diff.lines, diff.not_comparable
    for rows, known in (
        (found.parts, diff.parts),
        (found.ops, diff.ops.rows),
        (found.kernels, diff.kernels.rows),
        (found.memory, diff.memory),
    ):
        _mark(rows, known)
    _mark(
        [row for row in found.figures if row.name == "median step"], [replace(diff.step, name="median step")]
    )
    return found


def _mark(rows: list[Row], known: list[DiffRow]) -> None:
    """A name may be in several rows of the diff: it differs if one of them does; noise is told where it is one."""
    by_name: dict[str, list[DiffRow]] = defaultdict(list)
    for each in known:
        by_name[each.name].append(each)
    for row in rows:
        same = by_name.get(row.name, [])
        row.significant = any(each.significant for each in same) if same else None
        row.noise = same[0].noise if len(same) == 1 else None


def _figures(a: Report, b: Report) -> list[Row]:
    rows = [_row(name, read(a), read(b), unit) for name, unit, read in FIGURES]
    return [row for row in rows if row.a is not None or row.b is not None]


def _row(name: str, a: float | None, b: float | None, unit: str) -> Row:
    return Row(name, a, b, (b or 0) - (a or 0), unit)


# A name's figures: the first is compared, the others are shown with it.
Named = dict[str, dict[str, float]]


def _paired(a: Named, b: Named, unit: str) -> list[Row]:
    """One row a name, the largest difference first."""
    rows = []
    for name in {**a, **b}:
        ours, theirs = a.get(name, {}), b.get(name, {})
        keys = list(ours or theirs)
        row = _row(name, ours.get(keys[0]), theirs.get(keys[0]), unit)
        row.more = {key: [ours.get(key), theirs.get(key)] for key in keys[1:]}
        rows.append(row)
    return sorted(rows, key=lambda row: (-abs(row.difference), row.name))


def _parts(side: Side) -> Named:
    return {row["part"]: {"ns": row["ns"] / side.steps} for row in side.report["breakdown"]}


def _measure(a: Side, b: Side) -> str:
    """Device time where any op has some, else host time."""
    has_device = any(row["device_self_ns"] for side in (a, b) for row in side.report["ops"]["rows"])
    return "device" if has_device else "host"


def _ops(side: Side, measure: str) -> Named:
    other = "host" if measure == "device" else "device"
    wanted = {
        f"{measure}_self_ns": f"{measure}_self_ns",
        f"{other}_self_ns": f"{other}_self_ns",
        "calls": "calls",
    }
    return _summed(side.report["ops"]["rows"], wanted, side.steps)


def _kernels(side: Side) -> Named:
    return _summed(side.report["kernels"]["rows"], {"total_ns": "total_ns", "calls": "calls"}, side.steps)


def _summed(rows: Iterable[Report], wanted: Mapping[str, str], steps: int) -> Named:
    """Rows of the same name together, per step."""
    found: Named = defaultdict(lambda: dict.fromkeys(wanted.values(), 0.0))
    for row in rows:
        for key, name in wanted.items():
            found[row["name"]][name] += (row[key] or 0) / steps
    return dict(found)


def _memory(report: Report) -> Named:
    """The highest peak of each kind and number of device over all ranks."""
    found: Named = {}
    for row in report["memory"]["devices"]:
        number = "" if row["device"] is None or row["device_kind"] == "cpu" else f" {row['device']}"
        name = ("host" if row["device_kind"] == "cpu" else row["device_kind"]) + number
        name += " program" if row["source"] == "hlo" else ""
        peak = max(row["peak_bytes"] or 0, found.get(name, {}).get("peak_bytes", 0))
        found[name] = {"peak_bytes": peak}
    return found


def _findings(a: Report, b: Report) -> tuple[list[Change], list[Change], list[Change]]:
    """Gained by b, lost by b, and those that both have; findings of one code are one."""
    ours, theirs = _by_code(a), _by_code(b)
    gained = [Change(code, title, None, saves) for code, (title, saves) in theirs.items() if code not in ours]
    lost = [Change(code, title, saves, None) for code, (title, saves) in ours.items() if code not in theirs]
    kept = [
        Change(code, title, ours[code][1], saves) for code, (title, saves) in theirs.items() if code in ours
    ]
    return gained, lost, kept


def _by_code(report: Report) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for row in report["findings"]:
        title, saves = found.get(row["code"], (row["title"], 0))
        found[row["code"]] = title, saves + row["saves_ns_per_step"]
    return found


def _durations(report: Report) -> list[int]:
    """Of the steps on each rank's critical device."""
    critical = report["steps"]["critical_devices"]
    return [
        row["duration_ns"]
        for row in report["steps"]["rows"]
        if critical.get(str(row["rank"]), row["device"]) == row["device"] and not row["partial"]
    ]
