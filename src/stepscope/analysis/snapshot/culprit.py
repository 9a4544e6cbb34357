"""Who holds the memory, in the order in which to look: what is kept, what is free in pieces, and then by size."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from stepscope.analysis.host.place import Place
from stepscope.analysis.snapshot.explain import Explained
from stepscope.analysis.snapshot.growth import SITE, Growing
from stepscope.analysis.snapshot.kept import Kept
from stepscope.analysis.snapshot.words import at, call
from stepscope.lazy import dataclass
from stepscope.registers.policy.snapshot import (
    ASKED_ALONE,
    BESIDE_STATE,
    GOES_ON,
    KEPT_FIRST,
    MOSTLY,
    NAMED_LINES,
    SITE_SHARE,
    STATE_OF_ADAM,
    STRANDED,
    WITHOUT_LINE,
)
from stepscope.units import count, size

_OF_A_STEP = ("activation", "temporary", "unknown", "input")


@dataclass(frozen=True)
class Culprit:
    """What to name: a cause (kept, fragmentation, or a kind), its bytes, and where. `wider` counts what comes along with it, too."""

    cause: str
    bytes: int
    text: str
    where: list[Place]
    wider: int | None = None


def name_culprits(found: Explained) -> list[Culprit]:
    """The causes, the first one first."""
    kept = [_kept(each) for each in found.kept]
    first = [each for each in kept if each.bytes >= KEPT_FIRST * found.fragments.reserved]
    pieces = [describe_pieces(found)] if is_fragmented(found) else []
    others = _rank(found, [*_by_size(found), *map(_grows, found.growing), *kept[len(first) :]])
    causes = [*pieces, *first, *others] if _would_go_on(found, first) else [*first, *pieces, *others]
    return [*_request(found), *causes]


def _request(found: Explained) -> list[Culprit]:
    """The request itself, where it is far larger than all that there is: nothing else is to blame."""
    if found.asked is None or found.failed_at is None or found.asked < ASKED_ALONE * found.fragments.reserved:
        return []
    text = f"{at(found.failed_at)} asks for {size(found.asked)} at once, while {size(found.allocated)} are in use."
    return [Culprit("request", found.asked, text, [found.failed_at])]


def _would_go_on(found: Explained, kept: list[Culprit]) -> bool:
    """Whether there is enough in free pieces for the request and for much more of what is kept."""
    left = found.fragments.cached - (found.asked or 0)
    return left >= GOES_ON * sum(each.bytes for each in kept)


def _rank(found: Explained, culprits: list[Culprit]) -> list[Culprit]:
    """By size, as far as size alone decides."""
    gradients = sum(each.bytes for each in culprits if each.cause == "gradient")

    def weigh(each: Culprit) -> float:
        if each.cause == "optimizer state" and found.makes_state:
            return max(each.bytes, STATE_OF_ADAM * gradients)
        return each.bytes if each.where else WITHOUT_LINE * each.bytes

    ranked = sorted(culprits, key=weigh, reverse=True)
    if ranked and ranked[0].cause == "optimizer state":
        enough = BESIDE_STATE * weigh(ranked[0])
        frozen = [each for each in ranked if _is_frozen(found, each) and each.bytes >= enough]
        return [*frozen, *(each for each in ranked if each not in frozen)]
    return ranked


def _is_frozen(found: Explained, each: Culprit) -> bool:
    return each.cause == "parameter" and any((place.file, place.line) in found.frozen for place in each.where)


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


def _kept(each: Kept) -> Culprit:
    site = Place(each.file, each.line, each.function)
    places = [site] if each.inner is None else [Place(*each.inner), site]
    called = f", called from {at(site)}," if each.inner else ""
    others = [Place(*other) for other in each.others[: NAMED_LINES - 1]]
    along = (
        f" {size(each.line_bytes)} of it are of that line; {_list(others)} made the rest." if others else ""
    )
    text = (
        f"{at(places[0])}{called} allocates {size(each.bytes)} of {_in_prose(each.kind)} that stay alive from {count(each.passes)} "
        f"earlier passes, {size(each.bytes_per_pass)} each.{along}"
    )
    if each.current < SITE_SHARE * each.bytes:
        return Culprit("kept", each.bytes, text, [*places, *others])
    wider = each.bytes + each.current
    text += f" With the pass that was not over it is {size(wider)}."
    return Culprit("kept", each.bytes, text, [*places, *others], wider)


def _list(places: list[Place]) -> str:
    return " and ".join(at(place) for place in places)


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
    pins = sorted(
        (
            (Place(file, int(line), function), segments)
            for file, line, function, segments in pieces.pins.select(*SITE, "segments")
            .drop_nulls()
            .iter_rows()
        ),
        key=lambda pin: _is_of_call(pin[0], found.failed_at),
    )[:NAMED_LINES]
    held = f" {at(pins[0][0])} stays in {count(pins[0][1])} of them." if pins else ""
    text = (
        f"{size(pieces.cached)} are free in pieces of at most {size(pieces.largest_free)}, in "
        f"{count(pieces.pinned_segments)} segments that hold something else.{held}"
    )
    failed = [found.failed_at] if found.failed_at is not None else []
    places = [place for place, _ in pins]
    return Culprit(
        "fragmentation", pieces.cached, text, list(dict.fromkeys([*places[:1], *failed, *places[1:]]))
    )


def _is_of_call(place: Place, failed_at: Place | None) -> bool:
    """Whether it is of the function that asked: what that has made just now will be freed soon."""
    return failed_at is not None and (place.file, place.function) == (failed_at.file, failed_at.function)


def _by_size(found: Explained) -> list[Culprit]:
    """What each line holds for each purpose and is not named for already; lines of one function that a step passes count together."""
    grown = [(*line[:2], each.kind) for each in found.growing for line in each.lines]
    lines = [
        _Held(*row) for row in found.held.iter_rows() if (row[1], row[2], row[0]) not in grown and row[4] > 0
    ]
    together: dict[object, list[_Held]] = {}
    for each in lines:
        together.setdefault(each.group, []).append(each)
    return [_held(found, rows) for rows in together.values()]


class _Held(NamedTuple):
    """A row of Explained.held."""

    kind: str
    file: str | None
    line: int | None
    function: str | None
    bytes: int
    current: float

    @property
    def group(self) -> object:
        """Rows with the same one are named as one."""
        if self.kind == "optimizer state":
            return self.kind
        if self.file is not None and self.kind in _OF_A_STEP and self.current > MOSTLY:
            return self.file, self.function
        return self


def _held(found: Explained, rows: list[_Held]) -> Culprit:
    """`rows` have the largest first."""
    first, held = rows[0], sum(row.bytes for row in rows)
    kind = _main_kind(rows)
    by_line: dict[Place, int] = {}
    for row in rows:
        if row.file is not None:
            place = Place(row.file, int(row.line or 0), row.function or "")
            by_line[place] = by_line.get(place, 0) + row.bytes
    places = sorted(by_line, key=lambda place: -by_line[place])[:NAMED_LINES]
    where = f" at {_list(places)}" if places else ", of which no line is known"
    wider, along = _count_along(found, kind, first, held)
    return Culprit(kind, held, f"{size(held)} are {_in_prose(kind)}{where}{along}.", places, wider)


def _main_kind(rows: list[_Held]) -> str:
    """What most of it is; temporary tensors between activations are named with these."""
    sums: dict[str, int] = {}
    for row in rows:
        sums[row.kind] = sums.get(row.kind, 0) + row.bytes
    if sums.get("activation"):
        sums["activation"] += sums.pop("temporary", 0)
    return max(sums, key=lambda kind: sums[kind])


def _count_along(found: Explained, kind: str, row: _Held, held: int) -> tuple[int | None, str]:
    """The bytes with what belongs to it in a wider sense, and how to say that; None where there is nothing."""
    is_trained = kind == "parameter" and (row.file, row.line) not in found.frozen
    other, words = {
        "parameter": ("gradient" if is_trained else "", "the gradients"),
        "activation": ("temporary", "the temporary tensors of the backward pass"),
        "optimizer state": ("temporary", "the temporary tensors of the step"),
    }.get(kind, ("", ""))
    at_line = (
        pl.col("site_line").is_null() if kind != "optimizer state" else pl.col("site_line") == (row.line or 0)
    )
    more = int(found.held.filter(pl.col("kind") == other, at_line)["bytes"].sum())
    return (held + more, f", {size(held + more)} with {words}") if more >= SITE_SHARE * held else (None, "")
