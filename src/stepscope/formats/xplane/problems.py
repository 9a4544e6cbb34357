"""Defects of an XPlane capture: what its profiler reported, what is truncated or damaged, what is missing."""

from __future__ import annotations

import re

import polars as pl

from stepscope.formats.xplane.decode import Decoded
from stepscope.formats.xplane.index import Index
from stepscope.formats.xplane.info import METADATA
from stepscope.trace.problems import Problems, problem

_DROPPED = re.compile(
    r"(?i)(\d[\d,]*)\s+\w*\s*events?\s+(?:were |have been |are )?dropped|events? dropped because|dropped (\d[\d,]*)"
)
_TITLE_LENGTH = 100
_EXECUTED = r"Execute|^cuLaunch|^hipLaunch|^cudaLaunch|^PjitFunction|XlaModule|^cuGraphLaunch"


def note_problems(space: Index, decoded: Decoded, tracks: pl.DataFrame, problems: Problems) -> None:
    """Everything that the file itself shows to be wrong."""
    _note_messages(space, problems)
    _note_damage(space, decoded, problems)
    _note_missing_device(space, decoded, tracks, problems)


def _note_messages(space: Index, problems: Problems) -> None:
    for message in space.errors:
        problems.add(problem("capture-error", message, message=_shortened(message)))
    for message in space.warnings:
        found = _DROPPED.search(message)
        if found:
            count = int((found[1] or found[2] or "1").replace(",", ""))
            problems.add(problem("dropped-events", message, count=count))
        else:
            problems.add(problem("capture-warning", message, message=_shortened(message)))
    for plane in space.planes:
        dropped = plane.stats.get("dropped_traces")
        if dropped:
            problems.add(problem("dropped-events", f"{plane.name} reports dropped traces: {dropped}."))


def _shortened(message: str) -> str:
    """The first line of a message, as far as a title goes. Two messages with the same title count as one."""
    line = message.strip().split("\n")[0]
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1] + "…"


def _note_damage(space: Index, decoded: Decoded, problems: Problems) -> None:
    damage, size = space.damage, len(space.data)
    if space.truncated:
        detail = (
            f"It ends at byte {size:,}, in the middle of a message, after {space.events:,} complete events. "
            "Whole threads may be missing: no speed-up is promised."
        )
        problems.add(problem("truncated", detail))
    elif damage.cut_fields:
        detail = "{count} fields claim to be longer than the message around them; they were read as far as possible, or left out."
        problems.add(problem("damaged", detail, case="overlap", count=damage.cut_fields))
    if damage.lost_messages and not (space.truncated and damage.lost_at + damage.lost_bytes == size):
        detail = (
            f"From byte {damage.lost_at:,} on, {damage.lost_bytes:,} bytes in {damage.lost_messages:,} places are not "
            "valid protobuf and were skipped."
        )
        problems.add(problem("damaged", detail, count=damage.lost_bytes))
    if decoded.broken:
        detail = "{count} events or stats end early; their first part was kept."
        problems.add(problem("damaged-events", detail, count=decoded.broken))
    if decoded.clamped:
        detail = "{count} events have times more than 53 days from the start of their line; they were moved to that limit."
        problems.add(problem("bad-time", detail, count=decoded.clamped))
    unknown = decoded.unknown_fields + damage.unknown_fields
    if unknown:
        problems.add(
            problem("unknown-fields", "{count} fields are unknown; they were skipped.", count=unknown)
        )


def _note_missing_device(space: Index, decoded: Decoded, tracks: pl.DataFrame, problems: Problems) -> None:
    """A host that drives a device, and no work on any device: a profile that looks fine and is not."""
    on_device = tracks.filter(pl.col("what") == "device")["id"]
    # Devices come last: those of a truncated file may have been in the part that is gone.
    if space.truncated or decoded.events["track"].is_in(on_device.implode()).any():
        return
    backend = _backend(space)
    launched = len(decoded.stats.numbers("correlation_id")) > 0
    if not launched and (backend is None or not space.event_names["name"].str.contains(_EXECUTED).any()):
        return
    detail = (
        f"The host executed programs on {backend or 'a device'}, but the profile has no event of a device."
    )
    problems.add(problem("no-device-events", detail))


def _backend(space: Index) -> str | None:
    """The accelerator that the process had opened, as its plane of facts names it."""
    for plane in space.planes:
        if plane.name == METADATA:
            for name in ("gpu_version", "tpu_version", "cuda_version", "rocm_version"):
                if name in plane.stats:
                    return f"{name.removesuffix('_version')} ({plane.stats[name]})"
    return None
