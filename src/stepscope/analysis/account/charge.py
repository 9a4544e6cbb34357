"""Whom a span of host time is charged to: its own thread, the one that thread waits for, or the context around it.

In this order: what the thread itself did; while it did nothing or waited for another thread, what the main thread
did; a short silence of both is dispatch, named by the event that follows; in a long one what any other thread
did; else the annotation around it; else nothing is known, and the event that follows in the same step says where that is.
"""

from __future__ import annotations

from functools import cached_property
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analysis.account.host_timeline import Timeline, cut_by, host_timeline, main_track
from stepscope.analysis.host.causes import host_causes, same_host
from stepscope.analysis.host.names import COMPUTE_THREAD, INPUT_THREAD
from stepscope.analysis.host.tracks import by_track
from stepscope.analysis.part_column import part
from stepscope.analysis.steps.find import Steps
from stepscope.analysis.steps.host_runs import host_runs
from stepscope.native.spans import segments as native
from stepscope.native.spans.slices import runs
from stepscope.native.spans.sweep import slices
from stepscope.registers.calibration.launches import EAGER_PAUSE_NS
from stepscope.registers.policy.tables import SILENCE_PAIRS, SILENCE_THREADS
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import filled, take, take_largest, take_smallest
from stepscope.trace.trace import Trace

_RANK = {
    "host_compute": 9, "compile": 8, "host_collective": 7, "io": 6, "input": 5, "allocator": 4, "dispatch": 4, "python": 3,
    "sync": 2, "profiler": 1,
}  # fmt: skip
_NO_PART = 255
COLUMNS = ["gap", "start_ns", "end_ns", "part", "named_by", "detail", "thread"]


_known: WeakKeyDictionary[Trace, dict[bool, tuple[Timeline, Timeline]]] = WeakKeyDictionary()


class Charger:
    """Charges spans of host time, with what that needs of the trace computed once."""

    def __init__(self, trace: Trace, steps: Steps, host_only: bool = False) -> None:
        self.trace = trace
        self.steps = steps
        self.main = main_track(trace, steps)
        self.host_only = host_only
        self.causes = host_causes(trace)
        waits = self.causes["waits_for_thread"]
        # Without a device, what looks like a wait for it is a wait for the threads that compute.
        waits = waits | self.causes["waits"] if host_only else waits
        self.acts = self.causes["acts"] & ~waits
        self.timeline, self.contexts = self._timelines(waits)

    def _timelines(self, waits: pl.Series) -> tuple[Timeline, Timeline]:
        """What threads do or wait for, and what is around that; of one trace the same for all that ask."""
        source = same_host(self.trace)
        known = _known.setdefault(source, {})
        if self.host_only not in known:
            context = ~self.acts & self.causes["cause"].is_not_null()
            known[self.host_only] = Timeline(source, self.acts | waits), Timeline(source, context)
        return known[self.host_only]

    def charge(self, spans: pl.DataFrame) -> pl.DataFrame:
        """The spans (gap, start_ns, end_ns, track) in pieces with part, named_by, detail and thread."""
        return self._with_names(_merged(self.pieces(spans)))

    def pieces(self, spans: pl.DataFrame) -> pl.DataFrame:
        """The same in smaller pieces, of which some have no name: enough where only parts count."""
        spans, computed = self._computed(spans)
        pieces = self.timeline.cut(spans)
        acting = filled(take(self.acts, pieces["event"]))
        silent, by_main = self._ask_main(self._with_quiet(pieces.filter(~acting)))
        found = [computed, self._acted(pieces.filter(acting)), by_main]
        short = pl.col("until_ns") - pl.col("since_ns") <= EAGER_PAUSE_NS
        if self.host_only:
            short &= pl.col("event").is_null()
        else:
            found.append(self._came_next(silent.filter(short), "dispatch"))
            silent = silent.filter(~short)
        silent, by_others = self._ask_workers(
            silent, self.timeline.tracks.filter(self.timeline.tracks != self.main)
        )
        found += [
            by_others,
            self._came_next(silent.filter(short), "dispatch"),
            self._in_context(silent.filter(~short)),
        ]
        return pl.concat(found)

    def _computed(self, spans: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Without a device, the threads on which programs and graphs run are one: they come first."""
        if not self.host_only:
            return spans, self._nothing
        computes = (
            by_track(self.trace, pl.col("thread").str.contains(COMPUTE_THREAD)).arg_true().cast(pl.UInt32)
        )
        if computes.is_empty():
            return spans, self._nothing
        left, claimed = self._ask_others(spans, computes, only="host_compute")
        left, rest = self._in_runs(left)
        return left, pl.concat([claimed, rest])

    def _in_runs(self, spans: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """A program that runs computes, also where none of its ops was recorded: pieces of an op on other threads are not."""
        runs = host_runs(self.trace)
        if spans.is_empty() or runs.is_empty():
            return spans, self._nothing
        begun = pl.max_horizontal("start_ns", pl.col("end_ns").cum_max().shift(1))
        owners = runs.sort("start_ns").select("id", "end_ns", start_ns=begun)
        cut = cut_by(spans, owners.filter(pl.col("start_ns") < pl.col("end_ns")))
        pieces = spans[cut["row"]].with_columns(cut["start_ns"], cut["end_ns"])
        inside = cut["owner"].is_not_null()
        claimed = pieces.filter(inside).with_columns(cut["owner"].filter(inside).alias("named_by"))
        return pieces.filter(~inside), claimed.select(
            "gap",
            "start_ns",
            "end_ns",
            "named_by",
            part=part("host_compute"),
            detail=pl.lit(None, dtype=self.causes["detail"].dtype),
            thread=take(self.trace.events["track"], claimed["named_by"]),
        )[COLUMNS]

    @cached_property
    def _nothing(self) -> pl.DataFrame:
        """No pieces. Most questions of a small trace have this answer, and to ask them all costs more than its events."""
        known = {"part": "cause", "named_by": "named_by", "detail": "detail"}
        types = {name: self.causes[column].dtype for name, column in known.items()}
        spans = {"gap": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64, "thread": pl.UInt32}
        return pl.DataFrame(schema={name: (spans | types)[name] for name in COLUMNS})

    @cached_property
    def _is_plain(self) -> bool:
        """Whether no framework runs here: the spans of a program of its own are its work, not the way to it."""
        info = self.trace.info
        is_foreign = info.format == "chrome" and info.framework is None
        return is_foreign and not (self.trace.events["kind"] == "op").any()

    def _with_names(self, pieces: pl.DataFrame) -> pl.DataFrame:
        """Where nothing came before, meanwhile or next, the marker around it is the last resort."""
        unnamed = pieces.filter(pl.col("named_by").is_null())
        if unnamed.is_empty():
            return pieces
        named = _named_by_marker(self.trace, self.steps, unnamed)
        return pl.concat([pieces.filter(pl.col("named_by").is_not_null()), named])

    def _acted(self, pieces: pl.DataFrame) -> pl.DataFrame:
        """What an event says of the pieces that it owns."""
        if pieces.is_empty():
            return self._nothing
        event = pieces["event"]
        cause = pl.col("cause")
        if self.host_only:
            computing = pl.when("computes").then(part("host_compute"))
            busy = "host_compute" if self._is_plain else "dispatch"
            cause = computing.when(cause.is_in(["sync", "dispatch"])).then(part(busy)).otherwise(cause)
        wanted = ["cause", "computes", "named_by", "detail", "leads_to_op", "api"]
        causes = pl.DataFrame([take(self.causes[name], event) for name in wanted])
        named = causes.with_columns(named_by=self._op_that_follows(pieces, causes))
        spans = pieces[["gap", "start_ns", "end_ns"]].hstack([pieces["track"].alias("thread")])
        return spans.hstack(named.select(cause.alias("part"), "named_by", "detail"))[COLUMNS]

    def _op_that_follows(self, pieces: pl.DataFrame, causes: pl.DataFrame) -> pl.Series:
        """Framework code is named by the op it leads to, if that op comes within the same call of the user."""
        if not causes["leads_to_op"].any():
            return causes["named_by"]
        rows = causes["leads_to_op"].arg_true()
        events, api = self.trace.events, causes["api"].gather(rows)
        following = self._next_op(pieces["track"].gather(rows), pieces["start_ns"].gather(rows))
        api_end = events["start_ns"].gather(api) + events["dur_ns"].gather(api)
        leads = (events["start_ns"].gather(following) < api_end).fill_null(False)
        return causes["named_by"].scatter(rows.filter(leads), following.filter(leads))

    def _next_op(self, track: pl.Series, time: pl.Series) -> pl.Series:
        ops, first = self.ops
        rows = native.next_start(buffer(first), buffer(ops["start_ns"]), buffer(track), buffer(time))
        row = series("row", rows, pl.UInt32)
        return ops["id"].gather(pl.select(pl.when(row != native.NONE).then(row)).to_series())

    @cached_property
    def ops(self) -> tuple[pl.DataFrame, pl.Series]:
        """The ops by track and start, and for each track the first of its rows."""
        is_op = (self.trace.events["kind"] == "op") & self.acts
        ops = self.trace.events.select("id", "track", "start_ns").filter(is_op)
        tracks = pl.int_range(self.timeline.count + 1, dtype=pl.UInt32, eager=True)
        return ops, ops["track"].search_sorted(tracks, side="left").cast(pl.UInt32)

    def _with_quiet(self, pieces: pl.DataFrame) -> pl.DataFrame:
        """The pieces with the stretch of silence they lie in, which does not reach beyond the steps."""
        quiet = self.timeline.quiet(pieces)
        if len(self.steps.host):
            first, last = int(self.steps.host["start_ns"][0]), int(self.steps.host["end_ns"][-1])
            quiet = quiet.with_columns(
                pl.when(pieces["start_ns"] >= first).then(pl.col("since_ns").clip(lower_bound=first)).otherwise("since_ns"),
                pl.when(pieces["end_ns"] <= last).then(pl.col("until_ns").clip(upper_bound=last)).otherwise("until_ns"),
            )  # fmt: skip
        return pl.concat([pieces, quiet], how="horizontal")

    def _ask_main(self, silent: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What the main thread did meanwhile; and what is left, in the stretch in which both threads are silent."""
        elsewhere = silent.filter(silent["track"] != self.main)
        if elsewhere.is_empty():
            return silent, self._nothing
        rows = elsewhere.select(
            "start_ns", "end_ns", gap=pl.int_range(pl.len(), dtype=pl.UInt32), track=pl.lit(self.main, dtype=pl.UInt32)
        )  # fmt: skip
        pieces = self.timeline.cut(rows)
        acting = filled(take(self.acts, pieces["event"]))
        acted = pieces.filter(acting)
        acted = acted.with_columns(gap=elsewhere["gap"].gather(acted["gap"]))
        asked = self._with_quiet(pieces.filter(~acting))
        own = elsewhere[asked["gap"]]
        # Whichever of the two goes on first is what the host was working up to.
        sooner = asked["until_ns"] < own["until_ns"]
        both = asked.with_columns(
            gap=own["gap"],
            since_ns=pl.max_horizontal(asked["since_ns"], own["since_ns"]),
            until_ns=pl.min_horizontal(asked["until_ns"], own["until_ns"]),
            next=pl.when(sooner).then(asked["next"]).otherwise(own["next"]),
        )
        left = pl.concat([silent.filter(silent["track"] == self.main), both])
        return left, self._acted(acted)

    def _came_next(self, pieces: pl.DataFrame, given: str) -> pl.DataFrame:
        """Pieces of one part, named by the event that came next."""
        if pieces.is_empty():
            return self._nothing
        following = pieces["next"]
        return pieces.select(
            "gap",
            "start_ns",
            "end_ns",
            part=part(given),
            named_by=take(self.causes["named_by"], following),
            detail=take(self.causes["detail"], following),
            thread=pl.coalesce(take(self.trace.events["track"], following), pl.col("track")),
        )

    def _ask_workers(self, silent: pl.DataFrame, others: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
        """As `_ask_others`; what others do while the main thread waits for its own workers is its input, by the names of what they do."""
        awaits = filled(take(self.causes["cause"] == "input", silent["event"]))
        if not awaits.any():
            return self._ask_others(silent, others)
        waiting, made = self._ask_others(silent.filter(awaits), others)
        rest, found = self._ask_others(silent.filter(~awaits), others)
        return pl.concat([waiting, rest]), pl.concat([made.with_columns(part=part("input")), found])

    def _ask_others(
        self, silent: pl.DataFrame, others: pl.Series, only: str | None = None
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What is left of a silence, and what other threads did in the rest of it, the most telling of them first."""
        if silent.is_empty() or others.is_empty():
            return silent, self._nothing
        silent = silent.with_columns(row=pl.int_range(pl.len(), dtype=pl.UInt32))
        most = max(SILENCE_THREADS, SILENCE_PAIRS // max(1, len(silent)))
        others = self.timeline.busiest(others, most)
        spans = silent.select("start_ns", "end_ns", gap="row").join(others.to_frame("track"), how="cross")
        pieces = self.timeline.cut(spans)
        acted = self._acted(pieces.filter(filled(take(self.acts, pieces["event"]))))
        acted = self._input_threads(acted)
        acted = acted if only is None else acted.filter(pl.col("part") == only)
        if acted.is_empty():
            return silent.drop("row"), acted
        claimed = self._one_at_a_time(acted)
        left = _without(silent, claimed)
        return left.drop("row"), claimed.with_columns(gap=take(silent["gap"], claimed["gap"]))

    def _input_threads(self, pieces: pl.DataFrame) -> pl.DataFrame:
        makes_input = take(
            by_track(self.trace, pl.col("thread").str.contains(INPUT_THREAD)), pieces["thread"]
        )
        return pieces.with_columns(part=pl.when(makes_input).then(part("input")).otherwise("part"))

    def _one_at_a_time(self, pieces: pl.DataFrame) -> pl.DataFrame:
        """Of pieces that overlap, at each moment the one whose part ranks highest."""
        ranked = pieces.with_columns(
            rank=pl.col("part").cast(pl.String).replace_strict(_RANK, default=1, return_dtype=pl.UInt8)
        ).sort("start_ns", maintain_order=True)
        start, end, _, owner = slices(
            buffer(ranked["start_ns"]), buffer(ranked["end_ns"]), buffer(ranked["rank"]),
            take_smallest(ranked["start_ns"]), take_largest(ranked["end_ns"]),
        )  # fmt: skip
        owners = series("owner", owner, pl.UInt32)
        kept = owners != native.NONE
        starts, ends = series("start_ns", start, pl.Int64), series("end_ns", end, pl.Int64)
        rows: pl.DataFrame = ranked[owners.filter(kept)]
        return rows.with_columns(start_ns=starts.filter(kept), end_ns=ends.filter(kept)).select(COLUMNS)

    def _in_context(self, silent: pl.DataFrame) -> pl.DataFrame:
        """In a user's annotation it is the user's code; in a framework's, dispatch; in none, nobody knows."""
        if silent.is_empty():
            return self._nothing
        rows = silent.select(
            "start_ns", "end_ns", gap=pl.int_range(pl.len(), dtype=pl.UInt32), track=pl.lit(self.main, dtype=pl.UInt32)
        )  # fmt: skip
        pieces = self.contexts.cut(rows)
        own = silent[pieces["gap"]]
        waits = own["event"].is_not_null()
        waiting = self._acted(pieces.with_columns(own["gap"], own["event"]).filter(waits))
        pieces = pieces.with_columns(own["gap"], own["next"]).filter(~waits)
        cause = take(self.causes["cause"], pieces["event"])
        by_user = (cause == "python").fill_null(False)
        named = self._acted(pieces.filter(by_user))
        framework = self._came_next(pieces.filter(cause.is_not_null() & ~by_user), "dispatch")
        unknown = self._came_next(pieces.filter(cause.is_null()), "unexplained")
        return pl.concat([waiting, named, framework, unknown])


def _merged(pieces: pl.DataFrame) -> pl.DataFrame:
    """Pieces that follow one another and say the same, as one: a call's name may stand for all that it calls."""
    if pieces.is_empty():
        return pieces
    events = (pieces[name].fill_null(native.NONE) for name in ("named_by", "detail", "thread"))
    first, end = runs(
        buffer(pieces["start_ns"]), buffer(pieces["end_ns"]), buffer(pieces["part"].to_physical().fill_null(_NO_PART)),
        buffer(pieces["gap"]), *map(buffer, events),
    )  # fmt: skip
    if len(first) == len(pieces):
        return pieces
    return pieces[series("row", first, pl.UInt32)].with_columns(series("end_ns", end, pl.Int64))


def _without(silent: pl.DataFrame, claimed: pl.DataFrame) -> pl.DataFrame:
    """The silences less what was claimed of them."""
    gone = claimed.select("start_ns", "end_ns", id="gap").sort("start_ns")
    free = cut_by(silent, gone).filter(pl.col("owner").is_null())
    return silent[free["row"]].with_columns(free["start_ns"], free["end_ns"])


def named_within_steps(trace: Trace, steps: Steps, slices: pl.DataFrame, until: pl.Series) -> pl.DataFrame:
    """The slices of a device, each in a step that lasts `until`: unexplained ones are named by what comes next in that step.

    Where the thread that was asked does no more in it, that is whatever else happens; where nothing does, the marker.
    """
    begins = trace.events["start_ns"]
    rows = (slices["part"] == "unexplained").arg_true()
    begin = take(begins, slices["named_by"].gather(rows))
    is_next = (begin >= slices["end_ns"].gather(rows)) & (begin < until.gather(rows))
    rows = rows.filter(~filled(is_next))
    if rows.is_empty():
        return slices
    mine = pl.repeat(False, len(slices), dtype=pl.Boolean, eager=True).scatter(rows, True)
    unnamed, others = slices.filter(mine), slices.filter(~mine).sort("start_ns")
    place = others["start_ns"].search_sorted(unnamed["end_ns"], side="left")
    place = pl.select(pl.when(place < len(others)).then(place)).to_series()
    event = take(others["named_by"], place)
    follows = (take(others["step"], place) == unnamed["step"]) & (take(begins, event) >= unnamed["end_ns"])
    follows = filled(follows)
    unnamed = unnamed.with_columns(
        named_by=event, detail=pl.lit(None, dtype=pl.UInt32), thread=take(trace.events["track"], event)
    )
    silent = _named_by_marker(
        trace, steps, unnamed.filter(~follows).with_columns(thread=pl.lit(None, dtype=pl.UInt32))
    )
    return pl.concat([slices.filter(~mine), unnamed.filter(follows), silent])


def _named_by_marker(trace: Trace, steps: Steps, unnamed: pl.DataFrame) -> pl.DataFrame:
    """The slices, named by what the thread that marks the steps says of their time."""
    marking = int(steps.host["track"][0]) if len(steps.host) else main_track(trace, steps)
    track = pl.lit(marking, dtype=pl.UInt32)
    rows = unnamed.with_columns(track=track, gap=pl.int_range(pl.len(), dtype=pl.UInt32))
    cut = host_timeline(trace).cut(rows)
    return unnamed[cut["gap"]].with_columns(
        cut["start_ns"], cut["end_ns"], named_by=cut["event"], thread=track
    )
