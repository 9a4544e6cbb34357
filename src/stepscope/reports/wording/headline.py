"""The report's first line: framework, device, steps and how well the device was used."""

from __future__ import annotations

import re
from typing import Any

from stepscope import units
from stepscope.formats.flight_recorder import FORMAT as DUMPS
from stepscope.names import cut_middle
from stepscope.profiles.ranks import spans
from stepscope.reports.model.report import Report
from stepscope.reports.wording.devices import has_several
from stepscope.reports.wording.values import framework, moment, share

_STEP_NAME = 36  # characters
_TENSORFLOW = re.compile(r"^/job:.*/device:(\w+):(\d+)$")  # as TensorFlow writes a device
# Files that have no steps by their nature.
_OF_MEMORY = {
    "memory_snapshot": "memory snapshot",
    "memory_timeline": "memory timeline",
    "pprof": "device memory",
}


def headline(report: Report) -> list[str]:
    """What to know first, in a few short pieces."""
    return [
        piece
        for piece in (
            framework(report.profile.framework),
            devices(report),
            _inference(report),
            *figures(report),
        )
        if piece
    ]


def about_line(report: Report) -> str:
    """Framework, devices, ranks and steps; how busy the device is belongs to the sentence that follows."""
    pieces = (
        framework(report.profile.framework),
        devices(report),
        _inference(report),
        ranks(report),
        steps(report),
    )
    return " · ".join(piece for piece in pieces if piece)


def brief(report: Report) -> str:
    """What an interactive Python shows: which report this is, and how to see it."""
    first = (
        f"{len(report.findings)} findings, the first: {report.findings[0].code}"
        if report.findings
        else "no findings"
    )
    name = report.profile.name or report.profile.path
    return f"<stepscope report of {name}: {', '.join((*headline(report), first))}; print(report) shows it>"


def figures(report: Report) -> list[str]:
    """Steps and use of the device."""
    return [piece for piece in (ranks(report), steps(report), _busy(report), _mfu(report)) if piece]


def is_of_dumps(report: Report) -> bool:
    """Whether flight-recorder dumps were read, which have neither steps nor devices."""
    return report.profile.format == DUMPS.name


def devices(report: Report) -> str:
    """How many of which."""
    if is_of_dumps(report):
        return ""
    return ", ".join(map(_in_use, report.profile.devices)) or "no device"


def _in_use(device: dict[str, Any]) -> str:
    """How many there are; of a machine with more than were used, how many were."""
    name = _TENSORFLOW.sub(r"\1 \2", str(device.get("name")))
    count, used = device.get("count", 1), device.get("used", 0)
    if 0 < used < count:
        return f"{name} ({used} of {count} used)"
    return f"{count} × {name}" if count > 1 else name


def _inference(report: Report) -> str:
    found = report.serving
    if found.workload != "inference":
        return ""
    phases = "/".join(dict.fromkeys(row.phase for row in found.phases))
    return " ".join(piece for piece in (found.engine, "inference", f"({phases})" if phases else "") if piece)


def ranks(report: Report) -> str:
    """Which of how many, where there are several."""
    profile = report.profile
    if len(profile.ranks) <= 1 and (profile.world_size or 1) == 1:
        return ""
    of = (
        f" of {profile.world_size}" if profile.world_size and profile.world_size != len(profile.ranks) else ""
    )
    examined = f" ({len(profile.examined)} examined in full)" if profile.examined else ""
    return f"{'rank' if len(profile.ranks) == 1 else 'ranks'} {spans(profile.ranks)}{of}{examined}"


def steps(report: Report) -> str:
    """How many, and how they were found; how long one takes is the sentence that follows."""
    found = report.steps
    if is_of_dumps(report):
        return "flight-recorder dumps"
    if not found.count:
        return _OF_MEMORY.get(report.profile.format, "no steps")
    if found.source == "whole":
        return f"no steps: the whole recording, {units.duration(found.median_ns or 0)}"
    count = f"{found.count:,} step" + ("s" if found.count > 1 else "")
    name = cut_middle(found.name or "", _STEP_NAME)
    how = {
        "inferred": " (inferred)", "annotation": f" of {name}", "program": f" of the program {name}"
    }.get(found.source, "")  # fmt: skip
    return f"{count} of the region {found.region}" if found.region is not None else f"{count}{how}"


def _busy(report: Report) -> str:
    busy = report.device.busy_share
    return "" if busy is None else f"{'devices' if has_several(report) else 'device'} busy {share(busy)}"


def _mfu(report: Report) -> str:
    """Against the best dense peak, and against that of the format in use where it is another."""
    best, own = report.device.mfu, report.device.mfu_own_precision
    if best is None:
        return ""
    beside = (
        f" ({share(own)} at the peak of the precision in use)"
        if own is not None and share(own) != share(best)
        else ""
    )
    return f"MFU {share(best)}{beside}"


def title(report: Report) -> str:
    """Run, host, device and time, for a page that is kept or sent."""
    profile = report.profile
    when = moment(profile.recorded_unix_ns) if profile.recorded_unix_ns is not None else ""
    where = ", ".join(profile.hosts[:2]) + (" …" if len(profile.hosts) > 2 else "")
    pieces = [profile.name or profile.path, where, devices(report), when]
    return " · ".join(piece for piece in pieces if piece)
