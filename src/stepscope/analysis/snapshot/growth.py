"""What stays from one pass over a line to the next: the lines that keep memory alive, and how much.

A line is passed again and again. The allocations of a pass come in the same order each time, so a stack that occurs once in a pass
marks it. What is live from before the last pass was kept, unless releases show that such a tensor lives for several passes anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.registers.policy.snapshot import (
    FEWEST_GROWING,
    FEWEST_PASSES,
    GROWN,
    KEPT_BEYOND,
    LOOP_ENDED,
    ONE_LINE,
    SITE_SHARE,
    USUAL_LIFE,
)

SITE = ("site_file", "site_line", "site_function")
INNER = ("inner_file", "inner_line", "inner_function")
_LASTING = ["parameter", "optimizer state", "gradient", "workspace"]  # they stay by design


@dataclass(frozen=True)
class Kept:
    """What one line keeps."""

    file: str
    line: int
    function: str
    kind: str
    bytes: int
    passes: int  # whose memory is still there
    blocks: int
    inner: tuple[str, int, str] | None = None  # the line that allocates it, where that is one line further in

    @property
    def bytes_per_pass(self) -> int:
        """What each pass adds."""
        return self.bytes // max(1, self.passes)


def find_kept(live: pl.DataFrame, allocations: pl.DataFrame, stacks: pl.DataFrame, end: int) -> list[Kept]:
    """The lines that keep memory from pass to pass, the largest first; `end` is the place at which the history is looked at."""
    total = int(live["bytes"].sum())
    lasting = live.filter(pl.col("place").is_not_null(), ~pl.col("kind").is_in(_LASTING)).drop_nulls(
        "site_file"
    )
    groups = lasting.group_by(SITE).agg(pl.col("bytes").sum(), pl.len())
    large = groups.filter(pl.col("bytes") >= SITE_SHARE * total, pl.col("len") >= FEWEST_PASSES)
    named = allocations.join(stacks.select("stack", *SITE), on="stack")
    found = []
    for site in large.sort("bytes", descending=True).select(SITE).iter_rows():
        at_site = [pl.col(name) == value for name, value in zip(SITE, site, strict=True)]
        kept = _kept_at(site, lasting.filter(at_site), named.filter(at_site).sort("place"), end)
        if kept is not None and kept.bytes >= SITE_SHARE * total:
            found.append(kept)
    return sorted(found, key=lambda each: -each.bytes)


_QUARTERS = ("first", "second", "third", "last")


@dataclass(frozen=True)
class Growing:
    """Lines of one function whose allocations become larger and larger, such as a cache of keys and values."""

    lines: tuple[tuple[str, int, str], ...]
    kind: str
    bytes: int
    first_bytes: int
    last_bytes: int


def find_growing(live: pl.DataFrame, allocations: pl.DataFrame, stacks: pl.DataFrame) -> list[Growing]:
    """The functions with such lines, the one that holds most first."""
    total = int(live["bytes"].sum())
    groups = (
        live.drop_nulls("site_file")
        .group_by("kind", *SITE)
        .agg(pl.col("bytes").sum())
        .filter(pl.col("bytes") >= SITE_SHARE * total, ~pl.col("kind").is_in(_LASTING))
    )
    named = allocations.join(stacks.select("stack", *SITE), on="stack").sort("place")
    passed = pl.concat(
        [
            named.select(*SITE, "bytes").clear(),
            *map(_size_passes, named.partition_by(SITE, maintain_order=True)),
        ]
    )
    sizes = (
        passed.group_by(SITE, maintain_order=True)
        .agg(
            pl.len().alias("count"),
            *(_quarter(number).alias(name) for number, name in enumerate(_QUARTERS)),
        )
        .filter(pl.col("count") >= FEWEST_GROWING, pl.col("last") >= GROWN * pl.col("first"))
        # One jump is another batch; what grows does so all the time.
        .filter(pl.col("second") > pl.col("first"), pl.col("third") > pl.col("second"))
    )
    grown = groups.join(sizes, on=SITE).sort("site_line")
    by_function = grown.group_by("kind", "site_file", "site_function", maintain_order=True)
    return sorted((_grown(rows) for _, rows in by_function), key=lambda each: -each.bytes)


def _size_passes(history: pl.DataFrame) -> pl.DataFrame:
    """The bytes of the largest allocation of each pass over a line. Layers differ in size; only passes show a trend."""
    starts = find_passes(history["stack"])
    number = starts.search_sorted(pl.int_range(len(history), eager=True), side="right")
    sizes = history.with_columns(number=number).filter(pl.col("number").is_between(1, len(starts) - 1))
    return (
        sizes.group_by("number", *SITE, maintain_order=True).agg(pl.col("bytes").max()).select(*SITE, "bytes")
    )


def _quarter(number: int) -> pl.Expr:
    return pl.col("bytes").slice(number * pl.len() // 4, pl.len() // 4).median()


def _grown(rows: pl.DataFrame) -> Growing:
    lines = tuple((file, int(line), function) for file, line, function in rows.select(SITE).iter_rows())
    first, last = (int(rows[name].sum()) for name in ("first", "last"))
    return Growing(lines, rows["kind"][0], int(rows["bytes"].sum()), first, last)


def _kept_at(site: tuple[str, int, str], live: pl.DataFrame, history: pl.DataFrame, end: int) -> Kept | None:
    starts = find_passes(history["stack"])
    if len(starts) < FEWEST_PASSES:
        return None
    begins = history["place"].gather(starts)
    if _has_ended(begins, end):
        return None
    numbered = live.with_columns(number=begins.search_sorted(live["place"], side="right").cast(pl.Int64))
    older = numbered.filter(pl.col("number") < len(starts))
    passes = older["number"].n_unique()
    if passes < FEWEST_PASSES or passes < KEPT_BEYOND * _usual_life(history, begins):
        return None
    kept = numbered if _is_complete(numbered, len(starts)) else older
    inner = _inner(kept, site)
    if inner is not None:
        kept = kept.filter(pl.col("inner_file") == inner[0], pl.col("inner_line") == inner[1])
    kind = kept.group_by("kind").agg(pl.col("bytes").sum()).sort("bytes", descending=True)["kind"][0]
    return Kept(*site, kind, int(kept["bytes"].sum()), kept["number"].n_unique(), len(kept), inner)


def _has_ended(begins: pl.Series, end: int) -> bool:
    """Whether the loop over this line is over: data that was loaded before the training stays and does not grow."""
    return end - int(begins[-1]) > LOOP_ENDED * int(begins.diff().max() or 0)  # type: ignore[arg-type]


def _is_complete(numbered: pl.DataFrame, last: int) -> bool:
    """Whether the last pass has released what it will: no more of it is live than of the one before, and no less."""
    held = dict(numbered.group_by("number").agg(pl.col("bytes").sum()).iter_rows())
    return bool(held.get(last)) and held.get(last) == held.get(last - 1)


def _inner(kept: pl.DataFrame, site: tuple[str, int, str]) -> tuple[str, int, str] | None:
    """The place further in that allocates nearly all of it by one call; several calls are a graph, and the site makes that."""
    stacks = kept.group_by("stack", *INNER).agg(pl.col("bytes").sum()).sort("bytes", descending=True)
    _, file, line, function, size = stacks.row(0)
    if file is None or (file, line) == site[:2] or size < ONE_LINE * int(kept["bytes"].sum()):
        return None
    return file, int(line), function or ""


def find_passes(stack: pl.Series) -> pl.Series:
    """The rows with which each pass over a line begins; none where nothing marks them."""
    rows = pl.DataFrame({"stack": stack}).with_row_index("row")
    marks = (
        rows.group_by("stack")
        .agg(pl.len().alias("count"), first=pl.col("row").first(), last=pl.col("row").last())
        .filter(pl.col("count") >= FEWEST_PASSES)
        .with_columns(period=(pl.col("last") - pl.col("first")) / (pl.col("count") - 1))
        .filter(
            pl.col("first") <= 2 * pl.col("period"), len(stack) - pl.col("last") <= 2 * pl.col("period") + 1
        )
    )
    if marks.is_empty():
        return pl.Series("row", [], dtype=pl.Int64)
    fewest = int(marks["count"].min())  # type: ignore[arg-type]
    mark = marks.filter(pl.col("count") <= fewest + 1).sort("first").row(0, named=True)
    places = rows.filter(pl.col("stack") == mark["stack"])["row"].cast(pl.Int64)
    starts: pl.Series = (places - min(mark["first"], round(mark["period"]) - 1)).clip(lower_bound=0)
    following = int(starts[-1]) + round(mark["period"])
    more = [following] if following < len(stack) else []
    return pl.concat([starts, pl.Series(more, dtype=pl.Int64)])


def _usual_life(history: pl.DataFrame, begins: pl.Series) -> float:
    """For how many passes a released allocation of this line lived, in nine of ten cases at most."""
    released = history.drop_nulls("freed_place")
    if released.is_empty():
        return 0.0
    born = begins.search_sorted(released["place"], side="right").cast(pl.Int64)
    gone = begins.search_sorted(released["freed_place"], side="right").cast(pl.Int64)
    return float((gone - born).quantile(USUAL_LIFE) or 0)
