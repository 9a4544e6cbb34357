"""What a ring says about its process and window, and how its steps went."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stepscope.formats.ring.areas import RingBytes, step_moments, texts
from stepscope.lazy import dataclass

Int62 = Annotated[int, Meta(ge=0, lt=2**62)]
Int31 = Annotated[int, Meta(ge=0, lt=2**31)]
# With room for the steps of a whole circle after it.
Step = Annotated[int, Meta(ge=0, lt=2**30)]


class Facts(msgspec.Struct):
    """The fields that are used here; `RingFacts.everything` holds them all."""

    recording: str = ""
    worker: str = ""
    host: str = ""
    job: str = ""
    rank: Int31 | None = None
    world_size: Int31 | None = None
    backend: str = ""
    window: Int31 | None = None
    base_ns: Int62 = 0
    start_unix_ns: Int62 = 0
    laps: Int31 = 0
    slots: Int31 = 0
    has_regions: bool = False
    began_ns: Int62 = 0
    number: Step = 0
    at_ns: Int62 = 0
    start_ticks: Int62 | None = None
    has_ended: bool = False
    versions: dict[str, Any] = {}
    gpus: list[dict[str, Any]] = []


@dataclass(frozen=True)
class RingFacts:
    """The newest facts that are whole."""

    known: Facts
    everything: dict[str, Any]


def read_facts(ring: RingBytes) -> RingFacts:
    """Empty ones where the process ended before it wrote any, or all are damaged."""
    for _, text in sorted(texts(ring, ring.facts), reverse=True):
        try:
            return RingFacts(msgspec.json.decode(text, type=Facts), msgspec.json.decode(text))
        except (msgspec.MsgspecError, UnicodeError):
            continue
    return RingFacts(Facts(), {})


def telemetry(ring: RingBytes, facts: Facts) -> list[dict[str, Any]]:
    """The samples of the window, in order."""
    rows = []
    for _, text in sorted(texts(ring, ring.telemetry)):
        try:
            row = msgspec.json.decode(text)
        except (msgspec.MsgspecError, UnicodeError):
            continue
        if isinstance(row, dict) and isinstance(row.get("unix_ns"), int) and 0 < row["unix_ns"] < 2**62:
            rows.append(row)
    # The first sample is taken just before the window opens.
    return [row for row in rows if row["unix_ns"] >= facts.start_unix_ns - 10**9]


def step_ends(ring: RingBytes, facts: Facts) -> dict[int, int]:
    """When each step that is still known ended, in order. A slot has the lower bits of its number, the facts have the rest."""
    moments = step_moments(ring)
    slots = len(moments)
    found = {}
    for slot, moment in enumerate(moments):
        if 0 < moment < 2**62:
            if moment >= facts.at_ns:
                number = facts.number + (slot - facts.number) % slots
            else:
                number = facts.number - 1 - (facts.number - 1 - slot) % slots
            if 0 <= number < 2**31:
                found[number] = moment
    ordered = dict(sorted(found.items()))
    return _rising(ordered)


def _rising(ends: dict[int, int]) -> dict[int, int]:
    """Without what a damaged slot says: later steps end later."""
    kept: dict[int, int] = {}
    latest = 0
    for number, moment in ends.items():
        if moment >= latest:
            kept[number] = latest = moment
    return kept


def durations(ends: dict[int, int], numbers: range, begins: int | None) -> dict[str, Any]:
    """Of the steps of these numbers up to the first that is not known, as the sidecar gives them; `begins` is when the first began."""
    known = [number for number in numbers if number in ends]
    if not known:
        return {"first": numbers.start, "durations_ns": []}
    first = known[0]
    before = ends.get(first - 1, begins if first == numbers.start else None)
    if before is None or before > ends[first]:
        first, before = first + 1, ends[first]
    moments = [before]
    for number in itertools.count(first):
        if number not in ends or number not in numbers:
            break
        moments.append(ends[number])
    return {"first": first, "durations_ns": [b - a for a, b in itertools.pairwise(moments)]}


def is_running(ring: RingBytes, facts: Facts) -> bool:
    """Whether the process is still there, as far as this machine knows."""
    from socket import gethostname

    if facts.start_ticks is None or facts.host != re.sub(r"[^A-Za-z0-9.-]+", "-", gethostname()):
        return False
    try:
        stat = Path(f"/proc/{ring.pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(stat[19]) == facts.start_ticks and stat[0] not in (b"Z", b"X")
    except (OSError, ValueError, IndexError):
        return False
