"""Which way the copies go, in words."""

from __future__ import annotations

from collections import Counter

from stepscope.registers.policy.findings import MAJORITY
from stepscope.reports.model.report import Report

_WAYS = {
    "HtoD": "from the host to the device",
    "DtoH": "from the device to the host",
    "DtoD": "within the device",
    "PtoP": "between devices",
}


def exposed_copies(report: Report) -> str:
    """`copies from the host to the device`: the way of all, or of most, of what nothing hides."""
    exposed = Counter[str]()
    for row in report.device.copies:
        exposed[row.direction or ""] += row.exposed_ns or 0
    if not exposed.total():
        return "copies"
    way, longest = exposed.most_common(1)[0]
    if way not in _WAYS or longest <= MAJORITY * exposed.total():
        return "copies"
    mostly = "" if longest == exposed.total() else ", mostly"
    return f"copies{mostly} {_WAYS[way]}"
