"""What was profiled: framework, devices, ranks, hosts, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stepscope.profiles.overview import devices_of, distinct, duration_of, merged
from stepscope.profiles.profile import Profile
from stepscope.reports.model import report as model
from stepscope.safe import readable
from stepscope.trace.frames import take_smallest
from stepscope.trace.trace import Trace, TraceInfo


def about(profile: Profile, traces: Mapping[int, Trace]) -> model.Profile:
    """The chosen ranks of the profile in figures."""
    infos = [trace.info for trace in traces.values()]
    begins = [base for trace in traces.values() if (base := _recorded_at(trace)) is not None]
    return model.Profile(
        path=profile.path,
        name=profile.name,
        framework=", ".join(distinct(info.framework for info in infos)) or None,
        format=", ".join(distinct(info.format for info in infos)),
        ranks=list(traces),
        world_size=max((info.world_size for info in infos if info.world_size), default=None),
        devices=_devices(list(traces.values())),
        hosts=distinct(info.host for info in infos),
        duration_ns=max((duration_of(trace.events) for trace in traces.values()), default=0),
        events=sum(len(trace.events) for trace in traces.values()),
        files=distinct(info.path for info in infos),
        versions=merged([*(info.versions for info in infos), *map(_commit, infos)]),
        capture_options=merged(info.capture_options for info in infos),
        recorded_unix_ns=min(begins, default=None),
    )


def _commit(info: TraceInfo) -> dict[str, Any]:
    """The commit that ran, where our own capture noted it."""
    found = info.capture.get("git_commit")
    return {"git_commit": readable(found[:_LONGEST_COMMIT])} if isinstance(found, str) and found else {}


def _devices(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(device) for device in devices_of(traces)]


def _recorded_at(trace: Trace) -> int | None:
    """When the recording began by the clock on the wall, where the trace knows."""
    base = trace.info.base_unix_ns
    begin = base + take_smallest(trace.events["start_ns"])
    # A recorder that counts from its machine's start, and has no base, would claim the year 1970.
    return begin if begin > _YEAR_2000 else None


_LONGEST_COMMIT = 64
_YEAR_2000 = 946_684_800_000_000_000
