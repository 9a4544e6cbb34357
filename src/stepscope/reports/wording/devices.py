"""Which devices a figure is of, where a rank has several: the account is that of one of them, most sections are over all."""

from __future__ import annotations

from collections import Counter

from stepscope.reports.model.report import Report


def has_several(report: Report) -> bool:
    """Whether a rank has steps on more than one device."""
    devices = Counter(rank for rank, _ in {(row.rank, row.device) for row in report.steps.rows})
    return max(devices.values(), default=0) > 1


def charged_device(report: Report) -> str:
    """The device of the account, in words; nothing where there is only one."""
    if not has_several(report):
        return ""
    found = report.steps.critical_devices
    if len(found) == 1:
        return f"device {next(iter(found.values()))}"
    return "one device of each rank"


def over_all(report: Report) -> str:
    """What a figure over all devices of a rank is said to be over."""
    return "on all devices" if has_several(report) else ""
