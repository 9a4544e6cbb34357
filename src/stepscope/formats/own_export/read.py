"""Our own Chrome export, read back: the same tables, with every event on the track that it was moved from.

The form is described in `export_chrome`. The file may have been edited since, so everything in it is checked: what does
not fit is left out and counted, and a header that does not fit makes it a Chrome trace like any other.
"""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from stepscope.formats.chrome.scan.columns import JsonEvents
from stepscope.formats.own_export.header import Header, Id, Int32
from stepscope.formats.own_export.rows import Rows
from stepscope.formats.own_export.write import EVENT_TABLES, RESERVED
from stepscope.trace.draft import Draft
from stepscope.trace.problems import problem
from stepscope.trace.schema import Columns, Kind, LinkReason, Role

_ROWS_AT_ONCE = 1 << 16
_NOTES: Columns = {"row": pl.UInt32, "id": pl.UInt32, "kind": Kind, "role": Role, "step": pl.Int32}

_NO_ROW = msgspec.Raw()


class _Reserved(msgspec.Struct):
    """The content of `args.stepscope` of an event."""

    id: Id
    kind: str = "span"
    role: str | None = None
    step: Int32 | None = None
    ops: msgspec.Raw = _NO_ROW
    kernels: msgspec.Raw = _NO_ROW
    copies: msgspec.Raw = _NO_ROW
    memory: msgspec.Raw = _NO_ROW
    collectives: msgspec.Raw = _NO_ROW


_arguments = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_reserved = msgspec.json.Decoder(_Reserved).decode


def exported_draft(found: JsonEvents, header: Header, path: str) -> Draft:
    """The tables as they were when the trace was exported."""
    tracks, track_of = _tracks(found, header)
    scanned = found.events.with_row_index("row").with_columns(
        track=track_of.gather(found.events["track"]), start=pl.col("start") + header.shift_ns
    )
    samples = scanned.filter(pl.col("ph") == ord("C"))
    read = _Arguments()
    read.take(found.rest.join(samples, left_on="event", right_on="row", how="anti", maintain_order="left"))
    values = found.rest.join(samples, left_on="event", right_on="row", how="semi", maintain_order="left")
    read.rows["counters"].add(values["event"].to_list(), values["json"].to_list())
    events = _in_order(scanned.filter(pl.col("ph") != ord("C")), read.notes())
    places = _Places(events)
    draft = Draft(
        info=header.trace_info(path),
        events=_event_columns(events),
        tracks=tracks,
        links=_links(found.flows, places),
        counters=_counters(samples, read.rows["counters"]),
        modules=_loose_rows(found.header, "modules").frame().drop("event"),
        cold=_cold(read, places),
        problems=header.known_problems(),
    )
    for table in EVENT_TABLES:
        setattr(draft, table, _referring(read.rows[table], _loose_rows(found.header, table), places))
    _tell_bad(draft, found, read)
    return draft


def _tracks(found: JsonEvents, header: Header) -> tuple[pl.DataFrame, pl.Series]:
    """The tracks as they were, and for each track of the scan the one it belongs to; unknown ones come last."""
    tracks, known = header.track_table(), header.track_of_thread()
    numbers: list[int] = []
    added: list[dict[str, Any]] = []
    for pid, tid in found.tracks:
        number = known.get(tid) if isinstance(tid, int) else None
        if number is None:
            number = len(tracks) + len(added)
            added.append({"id": number, "what": "host", "pid": str(pid or ""), "tid": str(tid or "")})
        numbers.append(number)
    extra = pl.DataFrame(added, schema=dict(tracks.schema)) if added else tracks.clear()
    return pl.concat([tracks, extra]), pl.Series("track", numbers, dtype=pl.UInt32)


class _Arguments:
    """Sorts the arguments of events: what we put there, by table, and the rest."""

    def __init__(self) -> None:
        self.rows = {table: Rows(table) for table in (*EVENT_TABLES, "counters")}
        self.bad = 0
        self._notes: list[pl.DataFrame] = []
        self._rest: list[pl.DataFrame] = []

    def take(self, rest: pl.DataFrame) -> None:
        """All arguments of all events, `event` being the row of the scan."""
        for piece in rest.select("event", "json").iter_slices(_ROWS_AT_ONCE):
            self._take_piece(piece["event"].to_list(), piece["json"].to_list())

    def notes(self) -> pl.DataFrame:
        """row, id, kind, role and step of each event that we marked."""
        return pl.concat(self._notes) if self._notes else pl.DataFrame(schema=_NOTES)

    def rest(self) -> pl.DataFrame:
        """event and json: what the events said beyond our tables."""
        return (
            pl.concat(self._rest)
            if self._rest
            else pl.DataFrame(schema={"event": pl.UInt32, "json": pl.Binary})
        )

    def _take_piece(self, rows: list[int], texts: list[bytes]) -> None:
        notes: list[tuple[int, int, str, str | None, int | None]] = []
        found: dict[str, tuple[list[int | None], list[bytes]]] = {table: ([], []) for table in EVENT_TABLES}
        rest: list[tuple[int, bytes]] = []
        for row, text in zip(rows, texts, strict=True):
            ours, others = self._split(text)
            if others is not None:
                rest.append((row, others))
            if ours is None:
                continue
            notes.append((row, ours.id, ours.kind, ours.role, ours.step))
            for table, (events, values) in found.items():
                value = getattr(ours, table)
                if value is not _NO_ROW:
                    events.append(row)
                    values.append(bytes(value))
        written: Columns = {**_NOTES, "kind": pl.String, "role": pl.String}
        frame = pl.DataFrame(notes, schema=written, orient="row")
        self._notes.append(
            frame.select(pl.col(name).cast(dtype, strict=False) for name, dtype in _NOTES.items())
        )
        self._rest.append(pl.DataFrame(rest, schema={"event": pl.UInt32, "json": pl.Binary}, orient="row"))
        for table, (events, values) in found.items():
            self.rows[table].add(events, values)

    def _split(self, text: bytes) -> tuple[_Reserved | None, bytes | None]:
        """Our part of an event's arguments, and the rest of them."""
        try:
            members = _arguments(text)
            ours = _reserved(members.pop(RESERVED))
        except KeyError:
            return None, text
        except (msgspec.MsgspecError, UnicodeError):
            self.bad += 1
            return None, text
        return ours, msgspec.json.encode(members) if members else None


def _in_order(scanned: pl.DataFrame, notes: pl.DataFrame) -> pl.DataFrame:
    """The events in the order of their ids; those that were added later come last."""
    marked = scanned.join(notes, on="row", how="left", maintain_order="left")
    return marked.sort("id", nulls_last=True, maintain_order=True).with_row_index("place")


class _Places:
    """From the ids of the export, and from the rows of the scan, to rows of the draft."""

    def __init__(self, events: pl.DataFrame) -> None:
        self._by_id = (
            events.select("id", "place").drop_nulls().unique("id", keep="first", maintain_order=True)
        )
        self._by_row = events.select(id="row", place="place")

    def of_ids(self, ids: pl.Series) -> pl.Series:
        """The row of the draft for each id; null where there is none."""
        return self._looked_up(ids, self._by_id)

    def of_rows(self, rows: pl.Series) -> pl.Series:
        """The same for rows of the scan."""
        return self._looked_up(rows, self._by_row)

    @staticmethod
    def _looked_up(keys: pl.Series, table: pl.DataFrame) -> pl.Series:
        wanted = keys.cast(pl.UInt32, strict=False).alias("id").to_frame()
        found: pl.DataFrame = wanted.join(table, on="id", how="left", maintain_order="left")
        return found["place"]


def _event_columns(events: pl.DataFrame) -> pl.DataFrame:
    return events.select(
        "track",
        "name",
        pl.col("kind").fill_null("span"),
        "role",
        source_category="category",
        start_ns="start",
        dur_ns="dur",
        # Only markers tell their number; all others get theirs from the markers again.
        step=pl.when(pl.col("role") == "step").then(pl.col("step")),
    )


def _links(flows: pl.DataFrame, places: _Places) -> pl.DataFrame:
    """Each arrow is identified by the id of its start."""
    starts = flows.filter((pl.col("ph") == ord("s")) & (pl.col("id") >= 0))
    return pl.DataFrame(
        {
            "from": places.of_ids(starts["id"] // 2**32),
            "to": places.of_ids(starts["id"] % 2**32),
            "why": starts["category"].cast(pl.String).cast(LinkReason, strict=False),
        }
    ).drop_nulls()


def _counters(samples: pl.DataFrame, values: Rows) -> pl.DataFrame:
    """The samples, each with the value in its arguments."""
    told = values.frame().select("value", row="event").unique("row", keep="first")
    found = samples.join(told, on="row", how="left", maintain_order="left")
    return found.select("track", "value", time_ns="start")


def _loose_rows(header: dict[str, Any], table: str) -> Rows:
    """Rows of no event, from the end of the file."""
    rows = Rows(table)
    tables = header.get(f"{RESERVED}Tables")
    found = tables.get(table) if isinstance(tables, dict) else None
    if isinstance(found, list):
        rows.add([None] * len(found), [msgspec.json.encode(row) for row in found])
    return rows


def _referring(rows: Rows, loose: Rows, places: _Places) -> pl.DataFrame:
    """The table with its events as rows of the draft; what names an event that is not there names none."""
    frame = pl.concat([rows.frame(), loose.frame()])
    named = [name for name in ("python_parent", "op") if name in frame.columns]
    return frame.with_columns(
        places.of_rows(frame["event"]).alias("event"),
        *(places.of_ids(frame[name]).alias(name) for name in named),
    )


def _cold(read: _Arguments, places: _Places) -> dict[str, pl.DataFrame]:
    """Arguments beyond our tables. The scanner keeps all of an event's arguments where one of them is new to it."""
    rest = read.rest()
    rest = rest.with_columns(places.of_rows(rest["event"]).alias("event")).drop_nulls("event")
    return {"rest": rest} if len(rest) else {}


def _tell_bad(draft: Draft, found: JsonEvents, read: _Arguments) -> None:
    """What was wrong with the export itself, beside the problems of the original."""
    for each in found.problems.all():
        draft.problems.add(each)
    bad = read.bad + sum(rows.bad for rows in read.rows.values())
    if bad:
        draft.problems.add(
            problem(
                "edited-export",
                "{count} events or rows do not have the form that stepscope exports.",
                count=bad,
            )
        )
