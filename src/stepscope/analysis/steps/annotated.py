"""Steps that annotations mark: those of engines and trainers, which may come once, and those of users, which repeat."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import polars as pl

from stepscope.analysis.host.names import FRAMEWORK_ANNOTATION, INPUT_WORDS
from stepscope.analysis.steps.candidate import NO_STEPS, Candidate
from stepscope.analysis.steps.known_annotations import TRAINER, is_warm_up, owner_of
from stepscope.errors import StepscopeError
from stepscope.registers.policy.steps import ANNOTATION_FILLS
from stepscope.trace.lookup import by_name, distinct
from stepscope.trace.trace import Trace

COUNTER = re.compile(r"[#\s_:/-]*\d+$")


def marked(trace: Trace) -> Iterator[Candidate]:
    """Steps by the markers of a capture or a framework."""
    found = trace.events.filter(pl.col("role") == "step")
    if len(found):
        base = found["name"].cast(pl.String).str.replace(COUNTER.pattern, "").value_counts(sort=True)
        host = trace.tracks.filter(pl.col("what") == "host")["id"]
        # Some files mark the steps of a device only, by when it worked on them.
        on_device = not found["track"].is_in(host.implode()).any()
        yield Candidate("marker", str(base["name"][0]) or None, "high", _marked(found), on_device=on_device)


def _marked(found: pl.DataFrame) -> pl.DataFrame:
    """One row for each marker; numbered in time order if the markers' own numbers are not unique."""
    rows = _outermost(found.select("step", "track", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")))
    if rows["step"].null_count() or rows["step"].n_unique() < len(rows):
        return rows.with_columns(step=pl.int_range(pl.len(), dtype=pl.Int32))
    return rows


def known(trace: Trace) -> Iterator[Candidate]:
    """Steps of the engines and trainers that are known, the innermost of nested annotations first."""
    found = _host_annotations(trace)
    names = distinct(found["name"])
    owners = names.to_frame("name").with_columns(
        owner=pl.Series([owner_of(name or "") for name in names.cast(pl.String)], dtype=pl.String)
    )
    owners = owners.drop_nulls("owner")
    if owners.is_empty():
        return
    mine = found.with_columns(owner=by_name(found["name"], owners["name"], owners["owner"])).drop_nulls(
        "owner"
    )
    levels = [
        (_spans(rows), owner, rows)
        for (owner,), all_of_it in mine.group_by("owner", maintain_order=True)
        for rows in _by_level(_on_busiest_track(all_of_it))
    ]
    for spans, owner, rows in sorted(levels, key=lambda level: _typical_length(level[0])):
        name = _shown_name(rows, str(owner))
        yield Candidate(
            "annotation",
            name,
            "high",
            spans,
            _with_leads(trace, spans),
            once=True,
            least_fill=ANNOTATION_FILLS,
            may_hold_loop=owner == TRAINER and len(spans) == 1,
        )


def _shown_name(rows: pl.DataFrame, owner: str) -> str:
    """The annotation's own name if all share it; else whose it is, for the numbers in it differ."""
    bases = rows["base"].unique()
    return str(bases[0]) if len(bases) == 1 else f"{owner} {_common_start(bases.to_list())}".strip()


def _common_start(names: list[str]) -> str:
    first, last = min(names), max(names)
    shared = next(
        (at for at, letter in enumerate(first) if at >= len(last) or last[at] != letter), len(first)
    )
    return re.sub(r"[\W\d_]*$", "", first[:shared])


def _by_level(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The annotations by how many others of them each is in."""
    ordered = rows.sort("start_ns", "end_ns", descending=[False, True], maintain_order=True)
    open_ends: list[int] = []
    depth = []
    for start, end in ordered.select("start_ns", "end_ns").iter_rows():
        while open_ends and open_ends[-1] < end:
            open_ends.pop()
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        depth.append(len(open_ends))
        open_ends.append(end)
    for _, level in ordered.with_columns(depth=pl.Series(depth, dtype=pl.Int32)).group_by(
        "depth", maintain_order=True
    ):
        yield level


def repeated(trace: Trace, fills: float = ANNOTATION_FILLS) -> Iterator[Candidate]:
    """Steps of a user's annotation that repeats and fills most of the time from its first to its last."""
    found = _repeated_annotations(trace).filter(pl.col("fills") >= fills)
    for base in found["base"].unique(maintain_order=True):
        if not is_warm_up(base):
            yield _of_base(trace, base)


def _of_base(trace: Trace, base: str) -> Candidate:
    spans = _named(trace, lambda name: COUNTER.sub("", name) == base)
    return Candidate("annotation", base, "medium", spans, _with_leads(trace, spans))


def loosely_repeated(trace: Trace) -> Iterator[Candidate]:
    """The same of one that fills less, where nothing else shows the steps."""
    yield from repeated(trace, 0.0)


def warming_up(trace: Trace) -> Iterator[Candidate]:
    """Passes that say that they only warm up: steps, where nothing else is."""
    for base in _repeated_annotations(trace)["base"].unique(maintain_order=True):
        if is_warm_up(base):
            yield _of_base(trace, base)


def by_hand(trace: Trace, wanted: str) -> Candidate:
    """The annotations whose name, or name without its number, is the wanted one; else those that match it as a pattern."""
    try:
        pattern = re.compile(wanted)
    except re.error as error:
        raise StepscopeError(
            f"--step-name {wanted!r} is not a regular expression: {error}.",
            fix="Write the annotation's name, or a pattern such as 'train_step.*'.",
        ) from None
    spans = _named(trace, lambda name: wanted in (name, COUNTER.sub("", name)))
    if spans.is_empty():
        spans = _named(trace, lambda name: pattern.search(name) is not None)
    host = _with_leads(trace, spans) if len(spans) else spans
    return Candidate("annotation", wanted, "high", spans, host, chosen=True)


def warm_ups(trace: Trace) -> pl.DataFrame:
    """name, start_ns, end_ns of the annotations that say that they only warm up."""
    found = _host_annotations(trace)
    names = found["name"].cast(pl.String)
    says_so = names.unique().drop_nulls()
    says_so = says_so.filter(pl.Series([is_warm_up(name) for name in says_so], dtype=pl.Boolean))
    if says_so.is_empty():
        return pl.DataFrame(schema={"name": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64})
    return found.filter(names.is_in(says_so.implode())).select(
        pl.col("name").cast(pl.String), "start_ns", "end_ns"
    )


def _host_annotations(trace: Trace) -> pl.DataFrame:
    """name, base (without its number), track, start_ns, end_ns of the annotations on the host that last."""
    host = trace.tracks.filter(pl.col("what") == "host")["id"]
    found = trace.events.filter(
        (pl.col("kind") == "annotation") & pl.col("track").is_in(host.implode()) & (pl.col("dur_ns") > 0)
    )
    return found.select(
        "name",
        "track",
        "start_ns",
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
        base=pl.col("name").cast(pl.String).str.replace(COUNTER.pattern, ""),
    )


def _repeated_annotations(trace: Trace) -> pl.DataFrame:
    """base, fills: the user's annotations that repeat and are not input, those that fill most of the time first."""
    base = pl.col("base")
    found = _host_annotations(trace).filter(
        (base != "") & ~base.str.contains(FRAMEWORK_ANNOTATION) & ~base.str.contains(INPUT_WORDS)
    )
    length = (pl.col("end_ns") - pl.col("start_ns")).sum()
    return (
        found.group_by("base", "track")
        .agg(pl.len(), ns=length, extent=pl.col("end_ns").max() - pl.col("start_ns").min())
        .filter((pl.col("len") > 1) & (pl.col("extent") > 0))
        .with_columns(fills=(pl.col("ns") / pl.col("extent")).clip(upper_bound=1.0))
        .sort("ns", "len", "base", descending=[True, False, False])
    )


def _named(trace: Trace, matches: Callable[[str], bool]) -> pl.DataFrame:
    """The spans of the annotations whose names match, on the thread that has most of their time."""
    found = _host_annotations(trace)
    names = found["name"].cast(pl.String)
    chosen = names.unique().drop_nulls()
    chosen = chosen.filter(pl.Series([matches(name) for name in chosen], dtype=pl.Boolean))
    return _spans(_on_busiest_track(found.filter(names.is_in(chosen.implode()))))


def _on_busiest_track(found: pl.DataFrame) -> pl.DataFrame:
    if found.is_empty():
        return found
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns")
    busiest = found.group_by("track").agg(length).sort("ns", "track")["track"][-1]
    return found.filter(pl.col("track") == busiest)


def _spans(found: pl.DataFrame) -> pl.DataFrame:
    """The outermost of the annotations, numbered in time order."""
    if found.is_empty():
        return NO_STEPS
    rows = _outermost(found.select("track", "start_ns", "end_ns"))
    return rows.select(pl.int_range(pl.len(), dtype=pl.Int32).alias("step"), "track", "start_ns", "end_ns")


def _outermost(spans: pl.DataFrame) -> pl.DataFrame:
    """The spans in time order, without those that are (mostly) inside one before them: a step that is marked twice."""
    ordered = spans.sort("start_ns", "end_ns", descending=[False, True], maintain_order=True)
    middle = (pl.col("start_ns") + pl.col("end_ns")) // 2
    reached = pl.col("end_ns").cum_max().shift(1, fill_value=-(2**62))
    return ordered.filter((middle >= reached) & (pl.col("end_ns") > reached))


def _typical_length(spans: pl.DataFrame) -> float:
    length = (spans["end_ns"] - spans["start_ns"]).median()
    return float(length) if isinstance(length, int | float) else 0.0


def _with_leads(trace: Trace, spans: pl.DataFrame) -> pl.DataFrame:
    """The spans with what happens before each: the time between two of them leads up to the second."""
    begin = _first_start(trace, spans)
    return spans.with_columns(start_ns=pl.col("end_ns").shift(1, fill_value=begin))


def _first_start(trace: Trace, rows: pl.DataFrame) -> int:
    """What leads up to the first step, as far as it was recorded, takes no longer than it does before the others."""
    first, track = int(rows["start_ns"][0]), rows["track"][0]
    lead = (rows["start_ns"] - rows["end_ns"].shift(1)).median()
    earliest = first - int(lead if isinstance(lead, int | float) else 0)
    begun = trace.events.filter(
        pl.col("track") == track, pl.col("start_ns") >= earliest, pl.col("dur_ns") > 0
    )["start_ns"]  # fmt: skip
    return min(first, int(begun[0])) if len(begun) else first
