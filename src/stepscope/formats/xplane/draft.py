"""XPlane, the profile of XLA, JAX, TensorFlow and torch_xla: an XSpace as a draft of a trace."""

from __future__ import annotations

from array import array
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import polars as pl

from stepscope.errors import UnreadableFile
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.formats.xplane.annotations import with_annotations, with_markers
from stepscope.formats.xplane.decode import (
    Decoded,
    Events,
    Meaning,
    NameTable,
    decode,
    decode_stats,
    name_unnamed,
)
from stepscope.formats.xplane.derived_lines import derive
from stepscope.formats.xplane.device_clock import by_device_clock
from stepscope.formats.xplane.index import Index, index
from stepscope.formats.xplane.info import info, line_times
from stepscope.formats.xplane.kinds import kind_table, name_classes, stat_tables, unpack_names
from stepscope.formats.xplane.links import links
from stepscope.formats.xplane.problems import note_problems
from stepscope.formats.xplane.programs import modules
from stepscope.formats.xplane.scopes import scopes
from stepscope.formats.xplane.stats import Stats
from stepscope.formats.xplane.tables import collectives, copies, counters, kernels, memory, ops
from stepscope.formats.xplane.tpu import instruction_classes, lines_of, moves, with_classes, with_roles
from stepscope.formats.xplane.tracks import ASYNC_OPS, CORE_OPS, tracks, with_lanes
from stepscope.native.checks import ROW_LIMIT
from stepscope.trace.draft import Draft
from stepscope.trace.schema import KINDS, Kind, Text

_WITHOUT_FACTS = "/host:__ScopeRangeCallStack__"


def read(source: Source, progress: Progress) -> Draft:
    """The file as a draft."""
    data = source.content()
    progress(source.size())
    if not len(data):
        raise UnreadableFile(
            f"{source.path} is empty.", fix="The recording ended before it wrote anything: record again."
        )
    space = index(data)
    if not space.planes and not space.errors and not space.warnings:
        raise UnreadableFile(
            f"{source.path} holds no planes.",
            fix="It is not an XPlane profile, or damaged from its start on.",
        )
    if space.events >= ROW_LIMIT:
        raise UnreadableFile(f"{source.path} holds {space.events:,} events, more than can be numbered.")
    draft = _draft(space, source.path)
    for problem in source.problems.all():
        draft.problems.add(problem)
    return draft


def _draft(space: Index, path: str) -> Draft:
    names = NameTable(space)
    _read_plane_stats(space, names)
    line_tracks, line_classes = tracks(space)
    shown, packed = unpack_names(space.event_names)
    name_stats = decode_stats(space, names, space.name_stats).with_rows(packed)
    meaning = _meaning(space, names, shown, line_classes)
    meaning.name_class = with_classes(meaning.name_class, instruction_classes(space, shown, name_stats))
    decoded = decode(space, names, meaning)
    with ThreadPoolExecutor(1) as pool:  # what does not depend on each other is found meanwhile
        found = pool.submit(links, decoded, line_tracks)
        known, events = _named_events(decoded, shown, line_tracks, line_classes, name_stats)
        events = by_device_clock(events, known, decoded.stats)
        plane_of = pl.Series([space.planes[plane].name for plane in space.lines["plane"]], dtype=Text)
        events = events.with_columns(source_category=plane_of.gather(events["track"]))
        cold = pool.submit(_cold, decoded, known)
        events = with_annotations(with_markers(events, known), known)
        events = with_roles(events, known, meaning.name_class)
        moved = moves(events, known, meaning.name_class)
        events, all_tracks = with_lanes(events, line_tracks, line_classes)
        lanes = pl.concat([lines_of(known, ASYNC_OPS), all_tracks["id"][len(line_tracks) :]])
        of_kernels, of_memory = (pool.submit(table, events, decoded.stats) for table in (kernels, memory))
        scope = scopes(events, known, meaning.name_class)
        draft = Draft(
            info=info(space, path),
            events=events,
            tracks=all_tracks,
            ops=ops(events, scope, lines_of(known, CORE_OPS), lanes),
            copies=copies(events, decoded.stats, moved),
            collectives=collectives(events, decoded.stats),
            counters=counters(events, line_tracks, decoded.stats),
            modules=_modules(space, name_stats),
        )
        draft.links, draft.cold = found.result(), cold.result()
        draft.kernels, draft.memory = of_kernels.result(), of_memory.result()
    _add_derived(draft, known)
    note_problems(space, decoded, line_tracks, draft.problems)
    return draft


def _modules(space: Index, name_stats: Stats) -> pl.DataFrame:
    if name_stats.blobs.is_empty():
        return pl.DataFrame()
    return modules(space.event_names.select("name", "id").rows(), name_stats.by_owner())


def _read_plane_stats(space: Index, names: NameTable) -> None:
    wanted = [i for i, plane in enumerate(space.planes) if plane.name != _WITHOUT_FACTS]
    spans = space.plane_stats.filter(pl.col("owner").is_in(wanted))
    for owner, stats in decode_stats(space, names, spans).by_owner().items():
        space.planes[owner].stats = stats


def _meaning(space: Index, names: NameTable, shown: pl.DataFrame, line_classes: list[int]) -> Meaning:
    stat_part, stat_flag = stat_tables(names.stat_names)
    return Meaning(
        line_class=bytes(line_classes),
        line_time=array("q", line_times(space)),
        stat_part=stat_part,
        stat_flag=stat_flag,
        name_class=name_classes(shown),
        kinds=kind_table(),
    )


def _named_events(
    decoded: Decoded,
    shown: pl.DataFrame,
    line_tracks: pl.DataFrame,
    line_classes: list[int],
    name_stats: Stats,
) -> tuple[Events, pl.DataFrame]:
    """The events with their names and kinds, and what is known of them."""
    texts = shown["name"].to_list()
    name_rows = name_unnamed(decoded.events["name"], texts, "event")
    raw = shown["raw"].to_list() + texts[len(shown) :]
    names = pl.DataFrame(
        {"name": texts, "raw": raw}, schema={"name": pl.String, "raw": pl.String}
    ).with_row_index("row")
    events = decoded.events.select("track", "start_ns", "dur_ns").with_columns(
        name=pl.Series(texts, dtype=Text).gather(name_rows),
        kind=pl.Series(KINDS, dtype=Kind).gather(decoded.events["kind"].cast(pl.UInt32)),
    )
    return Events(names, name_rows, line_tracks, line_classes, decoded.stats, name_stats), events


def _cold(decoded: Decoded, known: Events) -> dict[str, pl.DataFrame]:
    """All stats of events; those of their names as JSON, written once for each name."""
    found = decoded.stats.cold()
    for name, frame, columns in (
        ("producers", decoded.producers, ("_pt", "_p")),
        ("consumers", decoded.consumers, ("_ct", "_c")),
    ):
        if len(frame):
            found[name] = frame.select(
                event="owner",
                **{columns[0]: pl.col("key"), columns[1]: pl.col("value").reinterpret(signed=False)},
            )
    inherited = known.inherited_json()
    if inherited is not None:
        found["of_name"] = inherited
    return found


def _add_derived(draft: Draft, known: Events) -> None:
    launches = draft.links.filter(pl.col("why") == "launch")
    derived = derive(draft.events, replace(known, tracks=draft.tracks), launches)
    if derived is not None:
        events = derived.events.with_columns(source_category=pl.lit("derived", dtype=Text))
        draft.events = pl.concat([draft.events, events], how="diagonal")
        draft.tracks = pl.concat([draft.tracks, derived.tracks])
