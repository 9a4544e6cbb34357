"""The report's first line: framework, device, steps and how well the device was used."""

from __future__ import annotations

from stepscope import units
from stepscope.profile.ranks import spans
from stepscope.report.model import Report
from stepscope.report.shown import framework, moment, share


def headline(report: Report) -> list[str]:
    """What to know first, in a few short pieces."""
    return [
        piece for piece in (framework(report.profile.framework), devices(report), *figures(report)) if piece
    ]


def figures(report: Report) -> list[str]:
    """Steps and use of the device."""
    return [piece for piece in (ranks(report), steps(report), _busy(report), _mfu(report)) if piece]


def devices(report: Report) -> str:
    """How many of which."""
    named = [
        f"{device['count']} × {device['name']}" if device.get("count", 1) > 1 else str(device.get("name"))
        for device in report.profile.devices
    ]
    return ", ".join(named) or "no device"


def ranks(report: Report) -> str:
    """Which of how many, where there are several."""
    profile = report.profile
    if len(profile.ranks) <= 1 and (profile.world_size or 1) == 1:
        return ""
    of = (
        f" of {profile.world_size}" if profile.world_size and profile.world_size != len(profile.ranks) else ""
    )
    return f"{'rank' if len(profile.ranks) == 1 else 'ranks'} {spans(profile.ranks)}{of}"


def steps(report: Report) -> str:
    """How many, how they were found, and the median."""
    found = report.steps
    if not found.count:
        return "no steps"
    count = f"{found.count:,} step" + ("s" if found.count > 1 else "")
    how = {"inferred": " (inferred)", "annotation": f" of {found.name}"}.get(found.source, "")
    return f"{count}{how}" + (
        f", median {units.duration(found.median_ns)}" if found.median_ns is not None else ""
    )


def _busy(report: Report) -> str:
    busy = report.device.busy_share
    return "" if busy is None else f"device busy {share(busy)}"


def _mfu(report: Report) -> str:
    return "" if report.device.mfu is None else f"MFU {share(report.device.mfu)}"


def title(report: Report) -> str:
    """Run, host, device and time, for a page that is kept or sent."""
    profile = report.profile
    when = moment(profile.recorded_unix_ns) if profile.recorded_unix_ns is not None else ""
    where = ", ".join(profile.hosts[:2]) + (" …" if len(profile.hosts) > 2 else "")
    pieces = [profile.name or profile.path, where, devices(report), when]
    return " · ".join(piece for piece in pieces if piece)
