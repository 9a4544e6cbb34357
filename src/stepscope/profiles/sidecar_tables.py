"""What a sidecar adds to the tables of its trace: who recorded it, what was custom code, and which step never ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import polars as pl

from stepscope.profiles.cache.stored import LazyFrames
from stepscope.profiles.find.runs import RING, Entry
from stepscope.profiles.find.sidecars import ENDING, Sidecar, read_sidecar, step_figures
from stepscope.trace.header import checked
from stepscope.trace.problems import Problem, Problems, problem, quoted
from stepscope.trace.schema import TABLES, Kind, conform
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace


def attach(trace: Trace, item: Entry) -> Trace:
    """The trace with what its sidecar adds: `info.capture`, rank, world size and host where unknown, and its problems."""
    if item.format_hint == RING:
        return _with_step_figures(trace)
    data = read_sidecar(item)
    if data is None:
        return trace
    try:
        found = msgspec.json.decode(data, type=Sidecar)
        everything = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError) as error:
        return _with(trace, None, {}, [_unreadable(str(error))])
    problems = [
        quoted(Problem(each.code, each.title, each.detail, each.fix, each.severity))
        for each in found.problems
    ]
    return _with(trace, found, everything | step_figures(found), problems)


def _with_step_figures(trace: Trace) -> Trace:
    """A ring has no sidecar: what it would say is in the ring itself."""
    capture = trace.info.capture
    try:
        found = msgspec.convert(capture, Sidecar)
    except msgspec.ValidationError:
        return trace
    return _with(trace, found, capture | step_figures(found), ())


def _with(trace: Trace, found: Sidecar | None, capture: dict[str, Any], problems: Iterable[Problem]) -> Trace:
    info = trace.info
    info.capture = capture
    if found is not None:
        info.rank = found.rank if info.rank is None else info.rank
        info.world_size = found.world_size if info.world_size is None else info.world_size
        info.host = info.host or found.host
    noted = Problems()
    for each in problems:
        noted.add(each)
    info = checked(info, noted)
    changed = {"traces": info.frame(), "problems": pl.concat([trace.problems, noted.frame()])}
    own = trace.tables
    tables = LazyFrames(tuple(TABLES), lambda name: changed[name] if name in changed else own[name], own)
    return Trace.over(tables if found is None else _corrected(tables, found), trace.cold)


def _corrected(tables: Mapping[str, pl.DataFrame], found: Sidecar) -> Mapping[str, pl.DataFrame]:
    """What collectors do not record: which annotations came from `stepscope.op`, and that the last step never ended."""

    def read(name: str) -> pl.DataFrame:
        if name == "events":
            return _whole_steps(_custom_ops(tables[name], tables["tracks"], found), found)
        if name == "ops" and found.ops:
            return _with_custom_ops(tables[name], tables["events"], tables["tracks"], found)
        if name == "kernels" and found.ops:
            return _launched_by_custom_ops(tables, found)
        return tables[name]

    return LazyFrames(tuple(TABLES), read, tables)


def _is_custom(events: pl.DataFrame, tracks: pl.DataFrame, found: Sidecar) -> pl.Series:
    """On the host: PyTorch draws each annotation a second time, over the kernels that it launched."""
    hosts = tracks.filter(pl.col("what") == "host")["id"]
    named = events["name"].cast(pl.String).is_in(list(found.ops))
    is_custom: pl.Series = (events["kind"] == "annotation") & named & events["track"].is_in(hosts.implode())
    return is_custom


def _custom_ops(events: pl.DataFrame, tracks: pl.DataFrame, found: Sidecar) -> pl.DataFrame:
    if not found.ops:
        return events
    is_custom = _is_custom(events, tracks, found)
    kind = pl.when(is_custom).then(pl.lit("op", dtype=Kind)).otherwise(pl.col("kind"))
    return events.with_columns(kind=kind)


def _with_custom_ops(
    ops: pl.DataFrame, events: pl.DataFrame, tracks: pl.DataFrame, found: Sidecar
) -> pl.DataFrame:
    added = conform("ops", events.filter(_is_custom(events, tracks, found)).select(event="id"))
    return pl.concat([ops, added.join(ops, on="event", how="anti")]).sort("event")


def _launched_by_custom_ops(tables: Mapping[str, pl.DataFrame], found: Sidecar) -> pl.DataFrame:
    """Of PyTorch the innermost op launched a kernel; programs of JAX and TensorFlow name their kernels' ops themselves."""
    kernels, events = tables["kernels"], _custom_ops(tables["events"], tables["tracks"], found)
    launches = tables["links"].filter(pl.col("why") == "launch")
    innermost = ancestors(events, events["kind"] == "op").gather(launches["from"])
    custom = events.filter(_is_custom(tables["events"], tables["tracks"], found))["id"]
    launched = launches.select(event="to", custom=innermost).filter(pl.col("custom").is_in(custom.implode()))
    order = ("custom", "op") if found.backend == "torch" else ("op", "custom")
    joined = kernels.join(launched.unique("event"), on="event", how="left", maintain_order="left")
    return joined.with_columns(op=pl.coalesce(*order)).select(kernels.columns)


def _whole_steps(events: pl.DataFrame, found: Sidecar) -> pl.DataFrame:
    """PyTorch also writes the marker of the step that was open when recording stopped, often a moment after the last step."""
    last = found.last_step if found.last_step is not None else -1
    never_ended = pl.col("step") > last
    if found.backend != "torch" or not events.select(never_ended.any()).item():
        return events
    role = pl.when(never_ended & (pl.col("role") == "step")).then(None).otherwise(pl.col("role"))
    return events.with_columns(role=role, step=pl.when(~never_ended).then(pl.col("step")))


def _unreadable(why: str) -> Problem:
    return problem("sidecar-unreadable", f"The file ending in {ENDING} is damaged: {why}.")
