"""The un-profiled host time before each launch, from a light window that was recorded beside the full one.

The light window has launches and waits, and nothing that says what they are for; the full one has the names, and a host
slowed down by recording them. Both did the same work, so their launches come in the same order: they are aligned by the names
of the kernels, per thread (one that pins memory interleaves as it likes) and per kind of step (steps that launch the same; slow
steps with slow ones). The time between two launches of the one stands for the time between the same two of the other.

The two ends of a step count as one interval, since the clock that marks the steps of a light window and the clock of its file
may differ by some microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from stepscope.analysis.replay.host_gaps import Side, side_of, unseen_waits, windows_between, windows_of
from stepscope.analysis.steps.find import Steps
from stepscope.lazy import dataclass
from stepscope.native.host.align import NONE, align
from stepscope.registers.calibration.profiler import LIGHT_CLOCK_NS
from stepscope.registers.policy.capture import (
    LIGHT_AGREES,
    LIGHT_LONGEST,
    LIGHT_MOST_DIFFERENCES,
    LIGHT_MOST_FACTOR,
)
from stepscope.trace.columns import buffer, series
from stepscope.trace.trace import Trace
from stepscope.units import percent

# The calls of a step: for each thread the numbers of their names.
Sequences = Mapping[int, pl.Series]


@dataclass(frozen=True)
class NotJoined:
    """Why the light window cannot be used for this recording."""

    reason: str


@dataclass(frozen=True)
class LightHost:
    """What the host takes without the recording.

    `calls`: event (of the device, or the wait itself), host_ns (un-profiled, the median of the light steps), recorded_ns, factor.
    `steps`: step, dispatch_light_ns, dispatch_full_ns, edge_factor (of the time before its first launch and after its last one).
    `factor`: of all host time together, for what no row has. `aligned`: the share of the launches that have a counterpart, in
    `light_steps` steps.
    """

    calls: pl.DataFrame
    steps: pl.DataFrame
    factor: float
    aligned: float
    light_steps: int


def join_light(full: Trace, steps: Steps, light: Trace, moments: Sequence[int]) -> LightHost | NotJoined:
    """Align the launches of the two windows. `moments`: when the first light step began and when each of them ended."""
    if steps.is_whole or steps.region is not None or len(moments) < 2:
        return NotJoined("there are no steps to compare")
    ours = side_of(full, windows_of(steps), unseen_waits(full, steps))
    first: NotJoined | None = None
    for shift in (0, -LIGHT_CLOCK_NS, LIGHT_CLOCK_NS):
        theirs = side_of(light, windows_between([moment + shift for moment in moments]))
        found = _join(full, ours, theirs)
        if isinstance(found, LightHost):
            return found
        first = first or found
    return first or NotJoined("it has no steps")


def _join(full: Trace, ours: Side, theirs: Side) -> LightHost | NotJoined:
    if ours.calls.is_empty() or theirs.calls.is_empty():
        return NotJoined("nothing was launched in the steps of one of the two windows")
    pairs = _Pairs(*_numbered(ours, _on_our_threads(ours, theirs)))
    if (
        pairs.aligned < LIGHT_AGREES
    ):  # threads of a pool take whatever comes: then only the order of all calls counts
        pairs = _Pairs(*_numbered(_on_one_thread(ours), _on_one_thread(theirs)))
    if pairs.aligned < LIGHT_AGREES:
        return NotJoined(f"its launches are not those of the full window: {percent(pairs.aligned)} agree")
    rows, edges = pairs.rows(), pairs.edges()
    known = rows.drop_nulls(["light", "full"]).filter(~pl.col("is_first"))
    light_ns, full_ns = (float(known[name].sum()) + float(edges[name].sum()) for name in ("light", "full"))
    if not full_ns or light_ns > LIGHT_LONGEST * full_ns:
        return NotJoined("its steps took longer on the host than those of the full window")
    edges = edges.with_columns(factor=_factor("ns"))
    calls = known.with_columns(factor=_factor("gap"))
    firsts = rows.filter("is_first").join(edges.select("place", "factor"), on="place")
    firsts = firsts.with_columns(light=pl.col("gap") * pl.col("factor"))
    return LightHost(
        calls=_by_event(full, ours, pl.concat([calls, firsts.select(calls.columns)]), edges),
        steps=_by_step(ours.windows, known, edges),
        factor=light_ns / full_ns,
        aligned=pairs.aligned,
        light_steps=len(theirs.windows),
    )


def _factor(recorded: str) -> pl.Expr:
    """What is left of a recorded time: as much as in the light steps.

    A slow step without a slow one in the light window keeps what made it slow: there it is the ratio of the medians.
    """
    own = pl.when("has_like").then(pl.col("light") / pl.col(recorded))
    ratio = own.otherwise(pl.col("light") / pl.col("full"))
    return pl.when(ratio.is_finite()).then(ratio.clip(0, LIGHT_MOST_FACTOR))


def _on_our_threads(ours: Side, theirs: Side) -> Side:
    """Their calls, each thread as the one of ours that launches most of the same: a file's ids of threads may be others."""
    counts = [
        side.calls.group_by("track", "name").agg(share=pl.len() / len(side.windows))
        for side in (ours, theirs)
    ]
    both = counts[0].join(counts[1], on="name", suffix="_theirs")
    common = both.group_by("track", "track_theirs").agg(pl.min_horizontal("share", "share_theirs").sum())
    taken: dict[int, int] = {}
    for track, other, _ in common.sort(
        "share", "track", "track_theirs", descending=[True, False, False]
    ).iter_rows():
        if other not in taken and track not in taken.values():
            taken[other] = track
    kept = theirs.calls.filter(pl.col("track").is_in(list(taken)))
    track = pl.col("track").replace_strict(list(taken), list(taken.values()), return_dtype=pl.UInt32)
    return replace(theirs, calls=kept.with_columns(track) if taken else kept)


def _on_one_thread(side: Side) -> Side:
    """The calls of all threads as those of one."""
    alone = side.calls.with_columns(
        track=pl.lit(0, pl.UInt32), pos=pl.int_range(pl.len(), dtype=pl.UInt32).over("place")
    )
    return replace(side, calls=alone)


def _numbered(ours: Side, theirs: Side) -> tuple[Side, Side]:
    """The names as numbers that both windows share."""
    names = pl.concat([ours.calls["name"], theirs.calls["name"]]).rank("dense").cast(pl.UInt32)
    sides = (ours, names[: len(ours.calls)]), (theirs, names[len(ours.calls) :])
    first, second = (replace(side, calls=side.calls.with_columns(name=each)) for side, each in sides)
    return first, second


@dataclass(frozen=True)
class _Kind:
    """Steps of the full window that launch the same and are equally slow, and the light steps that stand for them."""

    places: list[int]
    light: list[int]
    # For each light step and thread the place of the counterpart of each call.
    counterparts: list[dict[int, pl.Series]]
    matched: int
    # Slow steps for which only usual light ones stand.
    unlike: list[int]


class _Pairs:
    """The kinds of steps of both windows, laid beside each other."""

    def __init__(self, ours: Side, theirs: Side) -> None:
        self._ours, self._theirs = ours, theirs
        self._sequences = _columns(ours.calls, "name"), _columns(theirs.calls, "name")
        self._known: dict[tuple[object, object], tuple[dict[int, pl.Series], int, float]] = {}
        self._kinds = list(self._found())
        matched = sum(kind.matched * len(kind.places) for kind in self._kinds)
        self.aligned = matched / max(1, len(ours.calls))

    def _found(self) -> Iterator[_Kind]:
        full, light = self._sequences
        slow, slow_light = self._ours.slow_places(), self._theirs.slow_places()
        same: dict[object, list[int]] = {}
        for place, each in full.items():
            same.setdefault(_signature(each), []).append(place)
        for places in same.values():
            like = {other: self._aligned(full[places[0]], light[other]) for other in light}
            like = {other: found for other, found in like.items() if found[-1] >= LIGHT_AGREES}
            for mine, theirs in _by_slowness(places, list(like), slow, slow_light):
                matched = max((like[other][1] for other in theirs), default=0)
                unlike = [] if slow_light.intersection(theirs) else [each for each in mine if each in slow]
                yield _Kind(mine, theirs, [like[other][0] for other in theirs], matched, unlike)

    def _aligned(self, ours: Sequences, theirs: Sequences) -> tuple[dict[int, pl.Series], int, float]:
        """The counterparts, how many there are, and their share; found once for steps that launch the same."""
        key = _signature(ours), _signature(theirs)
        if key not in self._known:
            self._known[key] = _align(ours, theirs)
        return self._known[key]

    def rows(self) -> pl.DataFrame:
        """Each launch of ours: place, call, is_first, gap, has_like, and what is usual for it in steps of its kind: light and full."""
        calls = self._ours.calls.with_columns(
            kind=self._kind_of(self._ours.calls["place"]), has_like=self._has_like()
        )
        light = _usual(pl.concat([_NO_GAPS, *self._light_gaps()]), "light")
        full = _usual(calls.select(*_NO_GAPS.columns[:-1], gap=_INNER_GAP), "full")
        with_light = calls.join(light, on=_CALL, how="left", maintain_order="left")
        return with_light.join(full, on=_CALL, how="left", maintain_order="left")

    def _has_like(self) -> pl.Expr:
        return ~pl.col("place").is_in([place for kind in self._kinds for place in kind.unlike])

    def _light_gaps(self) -> Iterator[pl.DataFrame]:
        gaps = _columns(self._theirs.calls.with_columns(gap=_INNER_GAP), "gap")
        for number, kind in enumerate(self._kinds):
            for place, counterparts in zip(kind.light, kind.counterparts, strict=True):
                for track, at in counterparts.items():
                    found = pl.DataFrame({"gap": gaps[place][track].gather(at)}).with_row_index("pos")
                    keys = {"kind": number, "track": track, "place": place}
                    yield found.with_columns(
                        pl.lit(value, pl.UInt32).alias(key) for key, value in keys.items()
                    ).select(_NO_GAPS.columns)

    def edges(self) -> pl.DataFrame:
        """place, ns, light, full, has_like: the two ends of each step together, and by the medians of its kind."""
        keys = ["kind", "end"]
        ours = self._ours.edges.with_columns(kind=self._kind_of(self._ours.edges["place"]))
        rows = [(number, place) for number, kind in enumerate(self._kinds) for place in kind.light]
        pairs = pl.DataFrame(rows, schema={"kind": pl.UInt32, "place": pl.UInt32}, orient="row")
        light = pairs.join(self._theirs.edges, on="place").group_by(keys).agg(light=pl.col("ns").median())
        full = ours.with_columns(full=pl.col("ns").median().over(keys))
        both = full.join(light, on=keys, maintain_order="left").drop_nulls(["ns", "light", "full"])
        sums = both.group_by("place", maintain_order=True).agg(pl.col("ns", "light", "full").sum())
        return sums.with_columns(has_like=self._has_like())

    def _kind_of(self, places: pl.Series) -> pl.Series:
        kinds = {place: number for number, kind in enumerate(self._kinds) for place in kind.places}
        found: pl.Series = places.replace_strict(kinds, default=None, return_dtype=pl.UInt32)
        return found


def _by_slowness(
    places: list[int], others: list[int], slow: set[int], slow_others: set[int]
) -> Iterator[tuple[list[int], list[int]]]:
    """Slow steps with slow ones, if both windows have any; else all with those that are not."""
    usual = [other for other in others if other not in slow_others]
    if slow.isdisjoint(places) or len(usual) in (0, len(others)):
        yield places, usual or others
        return
    yield [place for place in places if place not in slow], usual
    yield [place for place in places if place in slow], [other for other in others if other in slow_others]


_CALL = ["kind", "track", "pos"]
_NO_GAPS = pl.DataFrame(schema=dict.fromkeys((*_CALL, "place"), pl.UInt32) | {"gap": pl.Int64})
# The first one of a step belongs to the step's edges.
_INNER_GAP = pl.when(~pl.col("is_first")).then("gap")


def _usual(gaps: pl.DataFrame, name: str) -> pl.DataFrame:
    """The median of each gap over the steps of a kind; all of them together are as long as in the median step.

    Gaps are skewed, so that a sum of medians is shorter than any step.
    """
    medians = gaps.drop_nulls("gap").group_by(_CALL).agg(pl.col("gap").median().alias(name))
    steps = gaps.group_by("kind", "place").agg(pl.col("gap").sum())
    totals = steps.group_by("kind").agg(total=pl.col("gap").median())
    scaled = pl.col(name) * pl.col("total") / pl.col(name).sum().over("kind")
    joined = medians.join(totals, on="kind")
    return joined.select(*_CALL, pl.when(scaled.is_finite()).then(scaled).otherwise(name).alias(name))


def _columns(calls: pl.DataFrame, name: str) -> dict[int, dict[int, pl.Series]]:
    """A column for each step and thread, in the order of the calls."""
    found: dict[int, dict[int, pl.Series]] = {}
    for (place, track), rows in calls.partition_by(["place", "track"], as_dict=True).items():
        found.setdefault(int(place), {})[int(track)] = rows[name]
    return found


def _signature(sequences: Sequences) -> tuple[tuple[int, bytes], ...]:
    """The same for steps that launch the same."""
    return tuple(sorted((track, bytes(buffer(each))) for track, each in sequences.items()))


def _align(ours: Sequences, theirs: Sequences) -> tuple[dict[int, pl.Series], int, float]:
    counterparts: dict[int, pl.Series] = {}
    for track, calls in ours.items():
        others = theirs.get(track)
        if others is None:
            continue
        allowed = int(2 * (1 - LIGHT_AGREES) * max(len(calls), len(others))) + 1
        places = align(buffer(calls), buffer(others), min(allowed, LIGHT_MOST_DIFFERENCES))
        found = series("place", places, pl.UInt32)
        counterparts[track] = pl.select(pl.when(found != NONE).then(found)).to_series()
    matched = sum(len(each) - each.null_count() for each in counterparts.values())
    most = max(sum(map(len, ours.values())), sum(map(len, theirs.values())))
    return counterparts, matched, matched / max(1, most)


def _by_event(full: Trace, ours: Side, calls: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """A row for each piece of work that a call launched, and for each wait: it has the factor of the launch after it."""
    known = calls.drop_nulls("factor").select(
        "call", "factor", host_ns=pl.col("light").cast(pl.Int64), recorded_ns="gap"
    )
    links = full.links.filter(pl.col("why") == "launch").select(call="from", event="to")
    waits = ours.waits.join(known.select("factor", next_call="call"), on="next_call", how="left")
    last = waits.join(edges.select("place", edge="factor"), on="place", how="left")
    waits = last.select(
        event="call", host_ns=pl.lit(None, pl.Int64), recorded_ns=pl.lit(None, pl.Int64),
        factor=pl.when(pl.col("next_call").is_null()).then("edge").otherwise("factor"),
    )  # fmt: skip
    rows = pl.concat([known.join(links, on="call").select(waits.columns), waits.drop_nulls("factor")])
    return rows.unique("event", maintain_order=True)


def _by_step(windows: pl.DataFrame, known: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    parts = pl.concat(
        [frame.select("place", "light", "full") for frame in (known, edges)], how="vertical_relaxed"
    )
    sums = parts.group_by("place").agg(
        dispatch_light_ns=pl.col("light").sum().cast(pl.Int64),
        dispatch_full_ns=pl.col("full").sum().cast(pl.Int64),
    )
    found = windows.select("place", "step").join(sums, on="place", maintain_order="left")
    found = found.join(
        edges.select("place", edge_factor="factor"), on="place", how="left", maintain_order="left"
    )
    return found.drop("place")
