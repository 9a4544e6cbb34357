"""What a profile is, in figures: the content of `stepscope info`, as text or JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import polars as pl

from stepscope.formats.source import Source
from stepscope.native import interpreted
from stepscope.problems.catalogue import cause_of
from stepscope.profiles.cache import background
from stepscope.profiles.cache.cache import Cache, identify
from stepscope.profiles.cache.place import default_folder
from stepscope.profiles.find.runs import Run
from stepscope.profiles.profile import Profile
from stepscope.safe import readable
from stepscope.trace.schema import SEVERITIES, TABLES
from stepscope.trace.trace import Trace

SCHEMA = "stepscope.info/1"
_STEP_NUMBER = re.compile(r"[\s#:_-]*\d+$")


class Device(msgspec.Struct):
    """Devices of one name, each counted once however many ranks see it, and how many of them have events."""

    name: str
    count: int
    used: int


class Steps(msgspec.Struct):
    """Training steps, each counted once however many threads and devices show its marker."""

    count: int
    source: str
    first: int
    last: int
    min_ns: int
    median_ns: int
    max_ns: int


class Rank(msgspec.Struct):
    """One rank's trace."""

    rank: int
    path: str
    host: str | None
    events: int
    device_events: int
    duration_ns: int
    steps: int


class Category(msgspec.Struct):
    """Events of one category of the file and one kind of ours."""

    category: str | None
    kind: str
    events: int
    total_ns: int


class ProblemTold(msgspec.Struct):
    """A problem, with the ranks that have it where there are several."""

    code: str
    severity: str
    title: str
    detail: str
    cause: str
    fix: str
    count: int
    ranks: list[int]


class RunFound(msgspec.Struct):
    """A run in the same folder. `address` is the path that opens it."""

    name: str
    address: str | None
    files: int
    bytes: int
    is_loaded: bool


class CacheState(msgspec.Struct):
    """Where the tables are kept for the next open, and of how many of the files."""

    folder: str
    kept: int
    files: int


class SkippedFile(msgspec.Struct):
    """A file that was left out, and why."""

    path: str
    reason: str


class Overview(msgspec.Struct, kw_only=True):
    """The content of `stepscope info`."""

    schema: str = SCHEMA
    path: str
    name: str
    framework: list[str]
    format: list[str]
    versions: dict[str, Any]
    devices: list[Device]
    device_events: int
    world_size: int | None
    hosts: list[str]
    ranks: list[Rank]
    duration_ns: int
    events: int
    steps: Steps | None
    categories: list[Category]
    tables: dict[str, int]
    capture_options: dict[str, Any]
    problems: list[ProblemTold]
    runs: list[RunFound]
    skipped: list[SkippedFile]
    interpreted: list[str]
    cache: CacheState | None


def overview(profile: Profile, *, is_cached: bool = True) -> Overview:
    """The profile in figures. `is_cached` is False where it was loaded without the cache."""
    infos = [trace.info for trace in profile.traces]
    ranks = [_rank(number, trace) for number, trace in zip(profile.ranks, profile.traces, strict=True)]
    return Overview(
        path=profile.path,
        name=profile.name,
        framework=distinct(info.framework for info in infos),
        format=distinct(info.format for info in infos),
        versions=merged(info.versions for info in infos),
        devices=devices_of(profile.traces),
        device_events=sum(rank.device_events for rank in ranks),
        world_size=max((info.world_size for info in infos if info.world_size), default=None),
        hosts=distinct(info.host for info in infos),
        ranks=ranks,
        duration_ns=max((rank.duration_ns for rank in ranks), default=0),
        events=sum(rank.events for rank in ranks),
        steps=_steps(profile.traces),
        categories=_categories(profile.traces),
        tables={
            name: sum(len(trace.tables[name]) for trace in profile.traces)
            for name in TABLES
            if name != "problems"
        },
        capture_options=merged(info.capture_options for info in infos),
        problems=problems_told(profile.table("problems")),
        runs=_runs(profile),
        skipped=[SkippedFile(readable(item.path), readable(item.reason)) for item in profile.skipped],
        interpreted=interpreted(),
        cache=_cache_state(profile) if is_cached else None,
    )


def distinct(values: Iterable[str | None]) -> list[str]:
    """Each text once, in order; unknown ones left out."""
    return list(dict.fromkeys(value for value in values if value))


def merged(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """One value for each name; a list of them where ranks disagree."""
    found: dict[str, list[Any]] = {}
    for part in parts:
        for name, value in part.items():
            values = found.setdefault(name, [])
            if value not in values:
                values.append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def devices_of(traces: Sequence[Trace]) -> list[Device]:
    """As the files describe them; ranks of one host see the same ones. Undescribed ones are identified by their tracks.

    A host has as many of a name as the rank that lists most of them, and at least as many as were used: ranks may number
    the same devices differently.
    """
    listed: Counter[tuple[str | None, str]] = Counter()
    used: dict[tuple[str | None, str], set[int | None]] = {}
    for trace in traces:
        host = trace.info.host
        described = {
            device.get("id", place): str(device.get("name") or device.get("kind") or "unknown device")
            for place, device in enumerate(trace.info.devices)
        }
        for name, count in Counter(described.values()).items():
            listed[host, name] = max(listed[host, name], count)
        for kind, number in _devices_with_events(trace):
            name = described.get(number) or str(kind or "device")
            used.setdefault((host, name), set()).add(number)
    counts: Counter[str] = Counter()
    with_events: Counter[str] = Counter()
    for key in dict.fromkeys([*listed, *used]):
        counts[key[1]] += max(listed[key], len(used.get(key, ())))
        with_events[key[1]] += len(used.get(key, ()))
    return [Device(name, count, with_events[name]) for name, count in counts.items()]


def _devices_with_events(trace: Trace) -> list[tuple[str | None, int | None]]:
    on_device = trace.tracks.filter(pl.col("what") == "device").select("id", "device_kind", "device")
    busy = on_device.join(trace.events.select(id="track").unique(), on="id", how="semi")
    return busy.select(pl.col("device_kind").cast(pl.String), "device").unique().sort("device").rows()


def _rank(number: int, trace: Trace) -> Rank:
    events, info = trace.events, trace.info
    on_device = trace.tracks.filter(pl.col("what") == "device")["id"]
    return Rank(
        rank=number,
        path=info.path,
        host=info.host,
        events=len(events),
        device_events=int(events["track"].is_in(on_device.implode()).sum()) if len(on_device) else 0,
        duration_ns=duration_of(events),
        steps=_markers(trace)["step"].n_unique(),
    )


def duration_of(events: pl.DataFrame) -> int:
    """From the first to the last moment of an event that takes time; marks far outside do not extend it."""
    events = events.select("start_ns", "dur_ns")
    spans = events.filter(pl.col("dur_ns") > 0)
    spans = events if spans.is_empty() else spans
    ends = spans.select(first=pl.col("start_ns").min(), last=(pl.col("start_ns") + pl.col("dur_ns")).max())
    first, last = ends.row(0)
    return 0 if first is None else int(last - first)


def _markers(trace: Trace) -> pl.DataFrame:
    """Each step of the trace once: its number, the name of its marker and the longest duration any thread shows."""
    markers = trace.events.filter(pl.col("role") == "step").select(
        pl.col("name").cast(pl.String), "step", "dur_ns"
    )
    return markers.sort("step", "dur_ns", descending=[False, True]).unique(
        "step", keep="first", maintain_order=True
    )


def _steps(traces: Sequence[Trace]) -> Steps | None:
    found = pl.concat([_markers(trace) for trace in traces]) if traces else pl.DataFrame()
    if found.is_empty():
        return None
    durations = found["dur_ns"]
    sources = Counter(_STEP_NUMBER.sub("", name or "") for name in found["name"])
    numbers = found["step"].drop_nulls()
    return Steps(
        count=found["step"].n_unique(),
        source=sources.most_common(1)[0][0],
        first=_whole(numbers.min()),
        last=_whole(numbers.max()),
        min_ns=_whole(durations.min()),
        median_ns=_whole(durations.median()),
        max_ns=_whole(durations.max()),
    )


def _whole(value: Any) -> int:
    return 0 if value is None else int(value)


def _categories(traces: Sequence[Trace]) -> list[Category]:
    keys = ["source_category", "kind"]
    counted = [
        trace.events.group_by(keys)
        .agg(events=pl.len(), total_ns=pl.col("dur_ns").sum())
        .with_columns(pl.col(keys).cast(pl.String))
        for trace in traces
    ]
    if not counted:
        return []
    totals = pl.concat(counted).group_by(keys).sum().sort("events", *keys, descending=[True, False, False])
    return [Category(*row) for row in totals.select(*keys, "events", "total_ns").rows()]


def problems_told(table: pl.DataFrame) -> list[ProblemTold]:
    """Errors first; the same problem of several ranks once."""
    found: dict[tuple[str, str], ProblemTold] = {}
    for row in table.to_dicts():
        rank = row.pop("rank", None)
        cause = cause_of(row["code"])
        told = found.setdefault(
            (row["code"], row["title"]), ProblemTold(**row | {"count": 0}, cause=cause, ranks=[])
        )
        told.count += row["count"]
        if rank is not None:
            told.ranks.append(rank)
    return sorted(found.values(), key=lambda problem: SEVERITIES.index(problem.severity))


def _cache_state(profile: Profile) -> CacheState | None:
    cache = Cache(default_folder())
    background.wait()  # what was just read is still being stored
    keys = [identify(Source(trace.info.path)) for trace in profile.traces]
    kept = sum(cache.holds(key) for key in keys if key is not None)
    return CacheState(str(cache.folder), kept, len(keys))


def _runs(profile: Profile) -> list[RunFound]:
    """The runs of the folder, the loaded one first; none where it is the only one."""
    if not profile.other_runs:
        return []
    files = [trace.info.path for trace in profile.traces]
    loaded = RunFound(profile.name, None, len(files), 0, is_loaded=True)
    return [loaded, *(_run(run) for run in profile.other_runs)]


def _run(run: Run) -> RunFound:
    address = None if run.address is None else readable(run.address)
    return RunFound(readable(run.name), address, len(run.entries), run.size, is_loaded=False)
