"""The tables of the account of compute."""

from __future__ import annotations

from typing import Any

from stepscope.reports.model.report import Report
from stepscope.reports.tables.table import Column, Table, table
from stepscope.reports.wording.compute import reason_title

_PARTS = (
    Column("reason", "where compute goes"),
    Column("share", "share of compute", "share"),
    Column("ns", "time", "ns"),
    Column("mostly", "mostly in"),
)
_ROWS = (
    Column("class", "class"),
    Column("op", "op", "name"),
    Column("kernels", "kernels", "count", minor=True),
    Column("time_ns", "time", "ns"),
    Column("share", "share", "share"),
    Column("ideal_ns", "ideal", "ns"),
    Column("share_of_bound", "of its bound", "share"),
    Column("bound", "bound by"),
    Column("flops_per_s", "FLOP/s", "flops"),
    Column("bytes_per_s", "B/s", "flops"),
    Column("flops", "FLOPs", "flops", minor=True),
    Column("bytes", "bytes", "bytes", minor=True),
)
_PEAKS = (
    Column("device", "device"),
    Column("source", "from"),
    Column("peak", "FLOP/s by format"),
    Column("bytes_per_s", "memory, B/s", "flops"),
    Column("l2_bytes", "L2", "bytes"),
    Column("l2_bytes_per_s", "L2, B/s", "flops", minor=True),
    Column("pcie_bytes_per_s", "PCIe, B/s", "flops", minor=True),
    Column("link", "link", minor=True),
    Column("link_bytes_per_s", "link, B/s", "flops", minor=True),
)
_LARGEST = 2  # classes that are named with a reason


def roofline_tables(report: Report) -> list[Table]:
    """Where compute goes, then each class and op against its bound, then the peaks."""
    found = report.roofline
    parts = [
        {
            "reason": reason_title(row.reason),
            "share": row.share,
            "ns": row.ns,
            "mostly": ", ".join(list(row.ns_by_class)[:_LARGEST]),
        }
        for row in found.parts
    ]
    peaks: list[dict[str, Any]] = [
        {
            "device": each.device,
            "source": each.source,
            "peak": ", ".join(f"{name} {rate / 1e12:.4g} T" for name, rate in each.flops_per_s.items()),
            **{key: getattr(each, key) for key in ("bytes_per_s", "l2_bytes", "l2_bytes_per_s", "pcie_bytes_per_s", "link", "link_bytes_per_s")},
        }
        for each in found.peaks
    ]  # fmt: skip
    return [
        table("compute", "where compute goes", _PARTS, parts, bar="share"),
        table("roofline", "classes and ops against their bound", _ROWS, found.rows, total=found.total),
        table("peaks", "peaks of the devices", _PEAKS, peaks),
    ]
