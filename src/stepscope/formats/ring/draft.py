"""The ring of a recording that never came to its end: steps, annotations and telemetry up to the last moment.

The frameworks hand over what they recorded when a window ends, so their part is missing, and a problem says so.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.formats.reader import Progress
from stepscope.formats.ring import FORMAT, areas
from stepscope.formats.ring.areas import RingBytes
from stepscope.formats.ring.facts import Facts, durations, is_running, read_facts, step_ends, telemetry
from stepscope.formats.ring.names import Names, read_names
from stepscope.formats.ring.problems import End, ring_problems
from stepscope.formats.ring.words import pair_words, read_words
from stepscope.formats.source import Source
from stepscope.ring_layout import ALIVE, KINDS, PYTHON, STEP
from stepscope.trace.draft import Draft
from stepscope.trace.problems import Problems
from stepscope.trace.schema import Kind, Role
from stepscope.trace.trace import TraceInfo

_FRAMEWORKS = {
    "torch": "pytorch",
    "tensorflow": "tensorflow",
    "session": "tensorflow",
    "jax": "jax",
    "host": "python",
}
_MEMORY = "resident memory"
_KEPT_BEFORE = 64
_SPANS = {
    "thread": pl.Int64,
    "name": pl.String,
    "kind": pl.String,
    "start": pl.Int64,
    "end": pl.Int64,
    "step": pl.Int32,
}
# Steps are told by the loop's thread, which is the first that a window hears of.
_LOOP = 1


def read(source: Source, progress: Progress) -> Draft:
    """Everything that the ring holds."""
    with memoryview(source.content()) as data:
        draft = _draft(areas.opened(data, source.path), source.path)
    progress(source.size())
    return draft


def _draft(ring: RingBytes, path: str) -> Draft:
    facts = read_facts(ring)
    known = facts.known
    ends = step_ends(ring, known)
    names = read_names(ring)
    words = read_words(ring) if known.window is not None else pl.DataFrame()
    samples = telemetry(ring, known)
    last = _last_moment(ring, words, ends, samples, known)
    spans = pl.concat([_spans(words, names, known), _steps(ends, known, last)])
    still_open = spans.filter(pl.col("end").is_null()).sort("start")
    spans = spans.with_columns(
        is_open=pl.col("end").is_null(), end=pl.max_horizontal(pl.col("end").fill_null(last), "start")
    )
    end = End(
        unix_ns=last - ring.zero_ns + ring.unix_ns,
        step=max(ends, default=-1) + 1,
        inside=still_open.filter(pl.col("kind") != STEP)["name"].to_list(),
        overwritten=_overwritten(words, known),
        is_running=is_running(ring, known),
    )
    tracks = _tracks(ring, spans, names, samples)
    events = _events(spans, tracks, ring.zero_ns)
    problems = Problems()
    for problem in ring_problems(known, end):
        problems.add(problem)
    return Draft(
        info=_info(
            ring,
            path,
            known,
            facts.everything | _as_sidecar(known, ends, samples, end) | _regions(words, names, known),
        ),
        events=events,
        tracks=tracks.drop("key"),
        ops=events.with_row_index("event").filter(pl.col("kind") == "op").select("event"),
        counters=_memory(samples, tracks, ring.unix_ns),
        problems=problems,
    )


def _info(ring: RingBytes, path: str, known: Facts, capture: dict[str, Any]) -> TraceInfo:
    return TraceInfo(
        path=path,
        format=FORMAT.name,
        framework=_FRAMEWORKS.get(known.backend),
        rank=known.rank,
        world_size=known.world_size,
        host=known.host or None,
        base_unix_ns=ring.unix_ns,
        versions=known.versions,
        capture=capture,
    )


def _last_moment(
    ring: RingBytes, words: pl.DataFrame, ends: dict[int, int], samples: list[dict[str, Any]], known: Facts
) -> int:
    """The last that is known to have happened."""
    seen = [known.at_ns, known.base_ns, known.began_ns, *list(ends.values())[-1:]]
    seen += [row["unix_ns"] - ring.unix_ns + ring.zero_ns for row in samples[-1:]]
    if len(words):
        seen.append(known.base_ns + int(words["time"][-1]))
    return max(seen) or ring.zero_ns


def _spans(words: pl.DataFrame, names: Names, known: Facts) -> pl.DataFrame:
    """What began, with its end where that came; steps of regions are numbered as they come."""
    if words.is_empty():
        return pl.DataFrame(schema=_SPANS)
    found = pair_words(words).join(names.frame, on="name", how="left")
    is_step = pl.col("kind") == STEP
    return (
        found.filter(pl.col("kind").is_null() | (pl.col("kind") != ALIVE))
        .with_columns(kind=pl.col("kind").fill_null("a"), text=pl.col("text").fill_null("(name not kept)"))
        .with_columns(step=pl.when(is_step).then(is_step.cum_sum() - 1).cast(pl.Int32))
        .select(
            "thread",
            pl.when(is_step).then(pl.format("step {}", "step")).otherwise("text").alias("name"),
            "kind",
            pl.col("start") + known.base_ns,
            pl.col("end") + known.base_ns,
            "step",
        )
    )


def _regions(words: pl.DataFrame, names: Names, known: Facts) -> dict[str, Any]:
    """The region of each of its steps, as the sidecar has it; older rings have regions without names."""
    if not known.has_regions or words.is_empty():
        return {}
    found = pair_words(words).join(names.frame, on="name", how="left").filter(pl.col("kind") == STEP)
    texts = found["text"].to_list()
    if not all(texts):
        return {}
    order = list(dict.fromkeys(texts))
    return {"regions": {"names": order, "first": 0, "which": [order.index(text) for text in texts]}}


def _steps(ends: dict[int, int], known: Facts, last: int) -> pl.DataFrame:
    """Steps of the window, each from the end of the one before; without a window all that are known. The last one never ended."""
    if known.has_regions and known.window is not None:
        return pl.DataFrame(schema=_SPANS)
    opened = known.began_ns if known.window is None else known.base_ns
    rows: list[tuple[Any, ...]] = []
    begins = opened if known.window is not None or 0 in ends else None
    for number, moment in ends.items():
        if moment >= opened:
            begins = ends.get(number - 1, begins if not rows else None)
            if begins is not None:
                rows.append((_LOOP, f"step {number}", STEP, max(begins, opened), moment, number))
    if known.window is not None:
        number = max(ends, default=known.number - 1) + 1
        begins = rows[-1][4] if rows else opened
        if begins <= last:
            rows.append((_LOOP, f"step {number}", STEP, begins, None, number))
    return pl.DataFrame(rows, schema=_SPANS, orient="row")


def _tracks(
    ring: RingBytes, spans: pl.DataFrame, names: Names, samples: list[dict[str, Any]]
) -> pl.DataFrame:
    """One per thread, another one for what was sampled of it, and one for memory. `key` is thread and whether it was sampled."""
    rows: list[dict[str, Any]] = []
    there = spans.select("thread", sampled=pl.col("kind") == PYTHON).unique().sort("thread", "sampled")
    for thread, is_sampled in there.iter_rows():
        name = names.threads.get(thread, f"thread {thread}") + (" (sampled)" if is_sampled else "")
        key = 2 * thread + is_sampled
        rows.append({"id": len(rows), "key": key, "thread": name, "device_kind": "cpu", "what": "host"})
    if any(isinstance(row.get("rss_bytes"), int) for row in samples):
        rows.append({"id": len(rows), "key": -1, "thread": _MEMORY, "what": "counter"})
    schema = {
        "id": pl.UInt32,
        "key": pl.Int64,
        "thread": pl.String,
        "device_kind": pl.String,
        "what": pl.String,
    }
    return pl.DataFrame(rows, schema=schema).with_columns(process=pl.lit(f"python ({ring.pid})"))


def _memory(samples: list[dict[str, Any]], tracks: pl.DataFrame, unix_ns: int) -> pl.DataFrame:
    track = tracks.filter(pl.col("key") == -1)["id"].to_list()
    rows = [
        (track[0], row["unix_ns"] - unix_ns, float(row["rss_bytes"]))
        for row in samples
        if track and isinstance(row.get("rss_bytes"), int) and abs(row["rss_bytes"]) < 2**62
    ]
    schema = {"track": pl.UInt32, "time_ns": pl.Int64, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _events(spans: pl.DataFrame, tracks: pl.DataFrame, zero_ns: int) -> pl.DataFrame:
    key = 2 * pl.col("thread") + (pl.col("kind") == PYTHON).cast(pl.Int64)
    placed = spans.with_columns(key=key).join(tracks.select("key", track="id"), on="key", how="left")
    is_step = (pl.col("kind") == STEP) & ~pl.col("is_open")
    unfinished = (pl.col("kind") == STEP) & pl.col("is_open")
    kind = pl.lit(None, dtype=pl.String)
    for letter, known in KINDS.items():
        kind = pl.when(pl.col("kind") == letter).then(pl.lit(known)).otherwise(kind)
    return placed.select(
        "track",
        name=pl.when(unfinished).then(pl.col("name") + " (unfinished)").otherwise("name"),
        kind=kind.fill_null("annotation").cast(Kind),
        role=pl.when(is_step).then(pl.lit("step")).otherwise(None).cast(Role),
        source_category=pl.lit(FORMAT.name),
        start_ns=pl.col("start") - zero_ns,
        dur_ns=pl.col("end") - pl.col("start"),
        step=pl.when(is_step).then("step"),
    )


def _overwritten(words: pl.DataFrame, known: Facts) -> int:
    """Events of the window that newer ones took the place of: each is two words."""
    if known.laps == 0 or words.is_empty():
        return 0
    newest = int(words["slot"][-1])
    return max(0, known.laps * known.slots + newest + 1 - len(words)) // 2


def _as_sidecar(
    known: Facts, ends: dict[int, int], samples: list[dict[str, Any]], end: End
) -> dict[str, Any]:
    """What the sidecar of this window would have said, as far as it is known."""
    is_open = known.window is not None
    in_window = [number for number, moment in ends.items() if is_open and moment > known.base_ns]
    first = in_window[0] if in_window else (known.number if is_open else end.step)
    before = range(max(0, first - _KEPT_BEFORE), first)
    return {
        "end_unix_ns": end.unix_ns,
        "last_step": in_window[-1] if in_window else None,
        "steps": {
            "before": durations(ends, before, known.began_ns if before.start == 0 else None),
            "inside": durations(ends, range(first, end.step), known.base_ns) if in_window else {},
            "after": {},
        },
        "telemetry": {"interval_ns": 250_000_000, "gpus": known.gpus, "samples": samples},
    }
