"""What stepscope's own capture noted beside a trace: rank, run, step times outside the window, telemetry, problems.

A sidecar is a small JSON file with the trace's name and the ending `.stepscope.json`. Files of any other recorder have none,
and nothing here is needed to read a trace: a sidecar that is missing or damaged costs only what it would have added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from statistics import mean, median
from typing import Any, Literal

import msgspec

from stepscope.profiles.find.runs import Entry
from stepscope.registers.calibration.runs import UNPROFILED_DRIFT_DEVICE, UNPROFILED_DRIFT_HOST
from stepscope.registers.policy.capture import (
    BEFORE_QUEUE_IS_FULL,
    MOSTLY_STEADY,
    STEADY_DEVICE,
    UNPROFILED_AGREES,
    UNPROFILED_HOST_BOUND,
    UNPROFILED_NS,
    UNPROFILED_STEPS,
)
from stepscope.trace.header import is_rank

ENDING = ".stepscope.json"
# Of capture/files/writer.py.
LIGHT_ENDING = ".stepscope-light"
LARGEST = 16 << 20
_TRACE_ENDING = re.compile(
    r"(?:(?:(?:\.pt)?\.trace\.json|\.xplane\.pb)(?:\.gz)?|\.events\.out\.tfevents\.[^/]+)$", re.IGNORECASE
)


class _Timed(msgspec.Struct):
    """Steps in a row: the number of the first, and how long each took."""

    first: int = 0
    durations_ns: list[int] = []


class _Run(msgspec.Struct):
    """Unprofiled steps between two waits for the devices."""

    count: int = 0
    total_ns: int = 0
    mean_ns: float = 0
    low_ns: float = 0
    high_ns: float = 0
    synchronised: bool = False
    host_durations_ns: list[int] = []
    workers: int = 1

    @property
    def host_ns(self) -> float | None:
        """The host's own time per step: while nothing held it up.

        A queue that is full by the next step mostly filled up in the last of these, which then took longer than those before.
        """
        lengths = self.own_durations_ns
        if 1 < len(lengths) < self.count and lengths[-1] == max(lengths):
            lengths = lengths[:-1]
        return sum(lengths) / len(lengths) if lengths else None

    @property
    def own_durations_ns(self) -> list[int]:
        """The host's steps until it is held up.

        A host that is not much faster than the device is held up without a jump: its first steps are shorter, and from the one on
        in which the queue is full all take as long as the device needs.
        """
        lengths = self.host_durations_ns
        device = median(lengths[len(lengths) // 2 :]) if lengths else 0
        own = list(takewhile(lambda length: length < BEFORE_QUEUE_IS_FULL * device, lengths))
        held = lengths[len(own) :]
        steady = sum(abs(length / device - 1) <= STEADY_DEVICE for length in held) if device else 0
        is_held = 1 < len(own) < len(held) and steady >= MOSTLY_STEADY * len(held)
        return own if is_held else lengths

    @property
    def is_host_bound(self) -> bool:
        return (self.host_ns or 0) >= UNPROFILED_HOST_BOUND * self.mean_ns

    @property
    def is_held_up(self) -> bool:
        """Whether something held the host up: then its steps come in bursts, and their scatter says nothing about the mean."""
        return len(self.own_durations_ns) < self.count or not self.is_host_bound

    @property
    def is_enough(self) -> bool:
        return self.synchronised and (self.count >= UNPROFILED_STEPS or self.total_ns >= UNPROFILED_NS)


class _Runs(msgspec.Struct):
    before: _Run | None = None
    after: _Run | None = None


class _Steps(msgspec.Struct):
    before: _Timed = msgspec.field(default_factory=_Timed)
    inside: _Timed = msgspec.field(default_factory=_Timed)
    after: _Timed = msgspec.field(default_factory=_Timed)


class _Problem(msgspec.Struct):
    code: str
    title: str
    detail: str = ""
    fix: str = ""
    severity: Literal["error", "warning", "info"] = "warning"


class Sidecar(msgspec.Struct):
    """The fields that the reader itself uses; `Noted.everything` holds them all."""

    schema: Literal["stepscope.capture/1"]
    backend: str = ""
    run: str = ""
    window: int = 0
    worker: str = ""
    rank: int | None = None
    world_size: int | None = None
    host: str | None = None
    start_unix_ns: int = 0
    steps: _Steps = msgspec.field(default_factory=_Steps)
    problems: list[_Problem] = []
    ops: dict[str, Any] = {}
    last_step: int | None = None
    recording: str | None = None
    job: str = ""
    unprofiled: _Runs | None = None
    regions: dict[str, Any] | None = None


def sidecar_path(trace_path: str) -> str | None:
    """Where the sidecar of this trace would be; None for a file that no capture of ours can have written."""
    stem = _TRACE_ENDING.sub("", trace_path)
    return None if stem == trace_path else stem + ENDING


def light_path(trace_path: str) -> str | None:
    """Where the light window of this trace would be."""
    sidecar = sidecar_path(trace_path)
    return None if sidecar is None else sidecar.removesuffix(ENDING) + LIGHT_ENDING


def is_sidecar(path: str) -> bool:
    """Whether the file, by its name, is one."""
    return path.endswith(ENDING)


def is_light(path: str) -> bool:
    """Whether the file, by its name, is the light window of a trace."""
    return path.endswith(LIGHT_ENDING)


def note_captures(entries: list[Entry], sidecars: Iterable[str]) -> list[Entry]:
    """The entries with the rank and the run that their sidecars contain."""
    there = set(sidecars)
    with_one = [item for item in entries if sidecar_path(item.path) in there]
    if not with_one:
        return entries
    with ThreadPoolExecutor(8, thread_name_prefix="stepscope-scan") as pool:
        noted = dict(zip((item.path for item in with_one), pool.map(_noted, with_one), strict=True))
    return [noted.get(item.path, item) for item in entries]


def _noted(item: Entry) -> Entry:
    data = read_sidecar(item)
    try:
        found = msgspec.json.decode(data or b"", type=Sidecar)
    except (msgspec.MsgspecError, UnicodeError):
        return item
    rank = found.rank if is_rank(found.rank) else None
    return replace(
        item,
        rank=rank if rank is not None else item.rank,
        who=(rank,) if rank is not None else item.who,
        worker=found.worker or item.worker,
        time_ns=item.time_ns or found.start_unix_ns or None,
        capture=f"{found.run}/{found.window}/{found.backend}" if found.run else "",
        recording=f"{found.recording}/{found.window}" if found.recording else "",
        job=f"{found.job}/{found.window}" if found.job else "",
    )


def step_figures(found: Sidecar) -> dict[str, Any]:
    """The mean step without the profiler, where a run of them is known, and that inside the window."""
    if found.regions is not None:  # what the loop calls a step holds several of them, and what is between
        return {
            "unprofiled_step": None,
            "unprofiled_step_ns": None,
            "unprofiled_steps": 0,
            "profiled_step_ns": None,
        }
    inside = found.steps.inside.durations_ns
    known = unprofiled_step(found.unprofiled or _Runs())
    return {
        "unprofiled_step": known,
        "unprofiled_step_ns": None if known is None else known["mean_ns"],
        "unprofiled_steps": 0 if known is None else known["count"],
        "profiled_step_ns": round(sum(inside) / len(inside)) if inside else None,
    }


def unprofiled_step(runs: _Runs) -> dict[str, Any] | None:
    """Mean, spread and number of unprofiled steps: of the run before the window, and of the one after if it agrees.

    Of the one after alone, where the job became faster during the one before, until it was as fast as after.
    """
    before, after = runs.before, runs.after
    if before is None or not before.synchronised or before.count < 1 or before.mean_ns <= 0:
        return None
    if after is not None and _was_warming_up(before, after):
        return _figures([after], after, None, "after")
    used = [before]
    if after is not None and after.is_enough and abs(after.mean_ns / before.mean_ns - 1) <= UNPROFILED_AGREES:
        used.append(after)
    if not any(run.is_enough for run in used):
        return None
    return _figures(used, before, after, "before" if len(used) == 1 else "before and after")


def _was_warming_up(before: _Run, after: _Run) -> bool:
    """Whether the first half of the host's steps took longer than the second, and that as long as steps after the window."""
    lengths = before.host_durations_ns
    if len(lengths) < max(UNPROFILED_STEPS, before.count) or not before.is_host_bound:
        return False
    if not _shows_drift(before, after):
        return False
    first, second = (mean(half) for half in (lengths[: len(lengths) // 2], lengths[len(lengths) // 2 :]))
    agrees = abs(after.mean_ns / before.mean_ns - 1) <= UNPROFILED_AGREES
    return (
        not agrees
        and second < (1 - UNPROFILED_AGREES) * first
        and abs(after.mean_ns / second - 1) <= UNPROFILED_AGREES
    )


def _figures(used: list[_Run], before: _Run, after: _Run | None, source: str) -> dict[str, Any]:
    """Of the runs that are used, with the spread of these two."""
    count = sum(run.count for run in used)
    mean_ns = sum(run.mean_ns * run.count for run in used) / count
    low, high = _spread(mean_ns, before, after)
    return {
        "mean_ns": round(mean_ns),
        "low_ns": round(low),
        "high_ns": round(high),
        "count": count,
        "synchronised": True,
        "source": source,
        "host_ns": _host_ns(used),
    }


def _host_ns(runs: list[_Run]) -> int | None:
    """The host's own time per step; where the device holds it up, that of the faster run.

    What disturbs a host only makes it slower, and where it waits for the device nothing else shows how fast it is.
    """
    first = runs[0]
    alike = [first] if first.is_host_bound else runs
    known = [run.host_ns for run in alike if run.host_ns is not None]
    return round(min(known)) if first.host_ns is not None else None


def _spread(mean_ns: float, before: _Run, after: _Run | None) -> tuple[float, float]:
    """The bounds of the mean: what jobs drift by within minutes, and what these two runs differ by."""
    runs = [before] if after is None or not _shows_drift(before, after) else [before, after]
    drift = UNPROFILED_DRIFT_HOST if before.is_host_bound else UNPROFILED_DRIFT_DEVICE
    low, high = mean_ns * (1 - drift), mean_ns * (1 + drift)
    for run in runs:
        # Two means show what bursts hide; a single run has only its own scatter.
        is_mean_alone = run.is_held_up and len(runs) > 1
        low = min(low, run.mean_ns if is_mean_alone else run.low_ns)
        high = max(high, run.mean_ns if is_mean_alone else run.high_ns)
    return max(low, 0.0), high


def _shows_drift(before: _Run, after: _Run) -> bool:
    """Whether a difference of the runs is one of the job. Workers that went on while the file was written only make it faster."""
    is_prefetched = after.workers > 1 and after.mean_ns < (1 - UNPROFILED_AGREES) * before.mean_ns
    return after.is_enough and after.mean_ns > 0 and not is_prefetched


def read_sidecar(item: Entry) -> bytes | None:
    """The sidecar, if there is one of a sensible size."""
    path = sidecar_path(item.path)
    if path is None:
        return None
    try:
        if item.filesystem is None:
            with Path(path).open("rb") as file:
                data = file.read(LARGEST + 1)
        else:
            data = bytes(item.filesystem.cat_file(path, end=LARGEST + 1))
    except Exception:  # it is not there, or a remote filesystem has errors of its own
        return None
    return data if len(data) <= LARGEST else None
