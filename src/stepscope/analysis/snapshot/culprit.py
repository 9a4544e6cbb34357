"""Who holds the memory, in the order in which to look: what is kept, what is free in pieces, and then by size."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.host.place import Place
from stepscope.analysis.snapshot.explain import Explained
from stepscope.analysis.snapshot.growth import SITE, Growing
from stepscope.analysis.snapshot.words import at, call
from stepscope.registers.policy.snapshot import KEPT_FIRST, NAMED_LINES, STRANDED
from stepscope.units import count, size


@dataclass(frozen=True)
class Culprit:
    """What to name: a cause (kept, fragmentation, or a kind), its bytes, and where."""

    cause: str
    bytes: int
    text: str
    where: list[Place]


def name_culprits(found: Explained) -> list[Culprit]:
    """The causes, the first one first."""
    kept = [_kept(found, place) for place in range(len(found.kept))]
    first = [each for each in kept if each.bytes >= KEPT_FIRST * found.fragments.reserved]
    pieces = [describe_pieces(found)] if is_fragmented(found) else []
    others = sorted(
        [*_by_size(found), *map(_grows, found.growing), *kept[len(first) :]], key=lambda each: -each.bytes
    )
    return [*first, *pieces, *others]


def is_fragmented(found: Explained) -> bool:
    """Whether the free pieces together would have sufficed for the request, and none of them alone."""
    pieces = found.fragments
    return (
        found.asked is not None
        and pieces.pinned_free >= STRANDED * pieces.reserved
        and pieces.largest_free < found.asked <= pieces.cached
    )


def _in_prose(kind: str) -> str:
    return "tensors" if kind == "unknown" else call(kind)


def _kept(found: Explained, number: int) -> Culprit:
    each = found.kept[number]
    site = Place(each.file, each.line, each.function)
    places = [site] if each.inner is None else [Place(*each.inner), site]
    called = f", called from {at(site)}," if each.inner else ""
    text = (
        f"{at(places[0])}{called} allocates {size(each.bytes)} of {_in_prose(each.kind)} that stay alive from {count(each.passes)} "
        f"earlier passes, {size(each.bytes_per_pass)} each."
    )
    return Culprit("kept", each.bytes, text, places)


def _grows(each: Growing) -> Culprit:
    places = [Place(*line) for line in each.lines]
    lines = " and ".join([at(places[0]), *(f"line {place.line}" for place in places[1:])])
    text = (
        f"{size(each.bytes)} of {_in_prose(each.kind)} are held by {lines}: allocations there become larger, "
        f"from {size(each.first_bytes)} to {size(each.last_bytes)}."
    )
    return Culprit("growing", each.bytes, text, places)


def describe_pieces(found: Explained) -> Culprit:
    """What is free and cannot be used, and which lines are in the way."""
    pieces = found.fragments
    pins = [
        (Place(file, int(line), function), segments)
        for file, line, function, segments in pieces.pins.select(*SITE, "segments")
        .drop_nulls()
        .head(NAMED_LINES)
        .iter_rows()
    ]
    held = f" {at(pins[0][0])} stays in {count(pins[0][1])} of them." if pins else ""
    text = (
        f"{size(pieces.cached)} are free in pieces of at most {size(pieces.largest_free)}, in "
        f"{count(pieces.pinned_segments)} segments that hold something else.{held}"
    )
    return Culprit("fragmentation", pieces.cached, text, [place for place, _ in pins])


def _by_size(found: Explained) -> list[Culprit]:
    """What each line holds for each purpose, less what it is already named for."""
    lines = found.by_line.group_by("kind", *SITE).agg(pl.col("bytes").sum())
    kept = {(each.file, each.line, each.kind): each.bytes for each in found.kept}
    grown = {(*line[:2], each.kind) for each in found.growing for line in each.lines}
    rows = []
    for kind, file, line, function, held in lines.sort("bytes", descending=True).iter_rows():
        left = 0 if (file, line, kind) in grown else held - kept.get((file, line, kind), 0)
        places = [] if file is None else [Place(file, int(line or 0), function or "")]
        where = f" at {at(places[0])}" if places else ", of which no line is known"
        rows.append(Culprit(kind, left, f"{size(left)} are {_in_prose(kind)}{where}.", places))
    return [row for row in rows if row.bytes > 0]
