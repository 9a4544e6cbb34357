"""What stays from one pass over a line to the next: the lines that keep memory alive, and how much.

What is live from before the last pass over a line was kept, unless releases show that such a tensor lives for several passes anyway.
A graph that is kept has tensors of many lines. They grow together, so they are one cause: the line that holds most of it comes first.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.snapshot.growth import INNER, LASTING, SITE
from stepscope.analysis.snapshot.passes import find_passes, has_ended, number, usual_life
from stepscope.lazy import dataclass
from stepscope.registers.policy.snapshot import (
    FEWEST_PASSES,
    KEPT_BEYOND,
    ONE_LINE,
    SAME_COURSE,
    SITE_SHARE,
    TRIED_LINES,
)

Site = tuple[str, int, str]
_MODULE_CODE = "forward"  # what it allocates is not stored before it returns
_OF_BACKWARD = ["temporary", "gradient"]


@dataclass(frozen=True)
class Kept:
    """What is kept together. `bytes` are of all its lines, `line_bytes` of the first one."""

    file: str
    line: int
    function: str
    kind: str
    bytes: int
    passes: int  # whose memory is still there
    blocks: int
    inner: Site | None = None  # the line that allocates it, where that is one line further in
    line_bytes: int = 0
    others: tuple[Site, ...] = ()  # whose memory is kept along with it, the largest first
    current: int = 0  # bytes of the same calls in the pass that was not over, which may be kept already

    @property
    def bytes_per_pass(self) -> int:
        """What each pass adds."""
        return self.bytes // max(1, self.passes)


@dataclass(frozen=True)
class _Group:
    """What is kept of one line, as rows of what is live; `begins` are the places at which the passes over it begin."""

    rows: pl.DataFrame
    begins: pl.Series
    inner: Site | None = None
    current: int = 0

    @property
    def bytes(self) -> int:
        return int(self.rows["size"].sum())


def find_kept(
    live: pl.DataFrame, allocations: pl.DataFrame, stacks: pl.DataFrame, end: int
) -> tuple[list[Kept], pl.Series]:
    """What is kept from pass to pass, the largest first, and the `row` of all of it in `live`.

    `live` has row and size; `end` is the place at which the history is looked at.
    """
    total = int(live["size"].sum())
    numbers = stacks.select("stack", "path", "entry_line", "calls", site=_number_sites())
    history = allocations.select("place", "freed_place", "stack").join(
        numbers, on="stack", how="left", maintain_order="left"
    )
    groups = _find_groups(live.join(numbers.select("stack", "site"), on="stack", how="left"), history, end)
    found, rows = [], [live["row"].clear()]
    while groups:
        first, *groups = groups
        if first.bytes < SITE_SHARE * total:
            break
        together = [each for each in groups if _grow_together(first, each)]
        groups = [each for each in groups if not any(each is other for other in together)]
        whole = [first, *together, *_of_backward(first, live, history)]
        found.append(_describe(whole))
        rows += [each.rows["row"] for each in whole]
    return sorted(found, key=lambda each: -each.bytes), pl.concat(rows)


def _number_sites() -> pl.Expr:
    """Numbers for the places, which are shorter than their names: a history has millions of rows."""
    return pl.when(pl.col("site_file").is_not_null()).then(pl.struct(SITE).rank("dense"))


def _find_groups(live: pl.DataFrame, history: pl.DataFrame, end: int) -> list[_Group]:
    """The largest first. A function that several lines call is looked at for each of them, and where that shows nothing, as a whole."""
    found: list[_Group] = []
    forward = history.filter(pl.col("calls") | pl.col("stack").is_null())["place"]
    for keys in (["path"], ["site"]):
        rest = live.drop_nulls(["site_file", "path"])
        for each in found:
            rest = rest.filter(~pl.col("row").is_in(each.rows["row"].implode()))
        sizes = rest.group_by(keys).agg(pl.col("size").sum(), pl.len()).filter(pl.col("len") >= FEWEST_PASSES)
        largest = sizes.sort("size", *keys, descending=True).head(TRIED_LINES).select(keys)
        histories = history.join(largest, on=keys, how="semi").partition_by(keys, as_dict=True)
        for values, rows in rest.join(largest, on=keys, how="semi").partition_by(keys, as_dict=True).items():
            own = histories.get(values)
            group = _kept_at(rows, own, history["place"], forward, end) if own is not None else None
            found += [group] if group is not None else []
    return sorted(found, key=lambda each: -each.bytes)


def _kept_at(
    live: pl.DataFrame, history: pl.DataFrame, every: pl.Series, forward: pl.Series, end: int
) -> _Group | None:
    """`every` are the places of all allocations, `forward` of those that a module or the backward pass makes."""
    history = history.filter(pl.col("place") <= end)
    starts = find_passes(history["stack"])
    if len(starts) < FEWEST_PASSES:
        return None
    begins = history["place"].gather(starts)
    if has_ended(begins, end) or not _is_loop(history, begins, every):
        return None
    lasting = [kind for kind in LASTING if kind != "parameter" or not _trains_between(begins, forward)]
    numbered = live.with_columns(number=number(live["place"], begins)).filter(~pl.col("kind").is_in(lasting))
    older = numbered.filter(pl.col("place").is_not_null(), pl.col("number") < len(starts))
    passes = older["number"].n_unique()
    if passes < FEWEST_PASSES or passes < KEPT_BEYOND * usual_life(history, begins):
        return None
    before = numbered.filter(pl.col("place").is_null()).join(
        older.select("stack").unique(), on="stack", how="semi"
    )
    current = numbered.filter(pl.col("number") == len(starts))
    counted = current
    if not _is_complete(numbered, len(starts)):
        counted = current.filter(pl.col("stack").is_in(_stored_at_once(older)))
    kept = pl.concat([before, older, counted])
    inner = _inner(kept)
    if inner is not None:
        kept = kept.filter(pl.col("inner_file") == inner[0], pl.col("inner_line") == inner[1])
    alike = current.filter(~pl.col("row").is_in(counted["row"].implode())).join(
        kept.select("stack").unique(), on="stack", how="semi"
    )
    return _Group(kept, begins, inner, int(alike["size"].sum()))


def _is_loop(history: pl.DataFrame, begins: pl.Series, every: pl.Series) -> bool:
    """Whether the passes are calls of a line, and not the layers of a model within one call.

    Other lines allocate between calls. Where none does, the model is entered again and again.
    """
    entries = history["entry_line"]
    if entries.null_count() == len(entries):
        return True
    counts = [number(each, begins) for each in (every, history["place"])]
    inside = [each.filter(each.is_between(1, len(begins) - 1)).value_counts() for each in counts]
    both = inside[0].join(inside[1], on=inside[0].columns[0])
    others = int((both["count"] > both["count_right"]).sum())
    returns = int((entries.drop_nulls().diff() < 0).sum())
    return max(others, returns) >= FEWEST_PASSES - 1


def _trains_between(begins: pl.Series, forward: pl.Series) -> bool:
    """Whether modules are called between the passes: the layers of a model are made one by one, and copies of it while it trains."""
    between = number(forward, begins)
    inside: int = between.filter(between.is_between(1, len(begins) - 1)).n_unique()
    return inside >= FEWEST_PASSES - 1


def _is_complete(numbered: pl.DataFrame, last: int) -> bool:
    """Whether the last pass has released what it will: of each stack as much is live as of the pass before."""
    counts = [
        sorted(numbered.filter(pl.col("number") == each).group_by("stack").len().iter_rows())
        for each in (last - 1, last)
    ]
    return bool(counts[1]) and bool(counts[0] == counts[1])


def _stored_at_once(older: pl.DataFrame) -> list[int]:
    """The stack of a single tensor of each pass that something keeps from its allocation on, such as a cached table.

    What a module computes is usually stored once the step is over, and a graph (many stacks) once it is complete.
    """
    stacks = older.group_by("stack", *INNER).agg(pl.col("size").sum()).sort("size", descending=True)
    stack, _, _, function, size = stacks.row(0)
    is_one = size >= ONE_LINE * int(older["size"].sum())
    return [stack] if is_one and (function or "").rsplit(".", 1)[-1] != _MODULE_CODE else []


def _inner(kept: pl.DataFrame) -> Site | None:
    """The place further in that allocates nearly all of it by one call; several calls are a graph, and the site makes that."""
    stacks = kept.group_by("stack", *SITE, *INNER).agg(pl.col("size").sum()).sort("size", descending=True)
    _, at_file, at_line, _, file, line, function, size = stacks.row(0)
    if file is None or (file, line) == (at_file, at_line) or size < ONE_LINE * int(kept["size"].sum()):
        return None
    return file, int(line), function or ""


def _grow_together(first: _Group, other: _Group) -> bool:
    """Whether both have grown in the same way, from the same pass on: then they are parts of what one thing keeps."""
    return _differ(first, other.rows) <= SAME_COURSE + 1 / max(1, min(_passes(first), _passes(other)))


def _differ(first: _Group, rows: pl.DataFrame) -> float:
    """By how much the shares that were there after each pass differ at most."""
    courses = [_course(each, first.begins) for each in (first.rows, rows)]
    joined = courses[0].join(courses[1], on="number", how="full", coalesce=True).sort("number").fill_null(0.0)
    shares = joined.select(pl.col("share", "share_right").cum_sum())
    return float((shares["share"] - shares["share_right"]).abs().max() or 0.0)


def _course(rows: pl.DataFrame, begins: pl.Series) -> pl.DataFrame:
    numbered = rows.select("size", number=number(rows["place"], begins))
    return numbered.group_by("number").agg(share=pl.col("size").sum() / max(1, int(rows["size"].sum())))


def _passes(group: _Group) -> int:
    """Those of the history, and as many more as explain what is there from before it."""
    rows = group.rows
    inside = rows.filter(pl.col("place").is_not_null())
    passes = number(inside["place"], group.begins).n_unique()
    return passes + round((len(rows) - len(inside)) * passes / max(1, len(inside)))


def _of_backward(first: _Group, live: pl.DataFrame, history: pl.DataFrame) -> list[_Group]:
    """What the backward pass allocated, which has no line, where it stays from pass to pass as well: a graph of gradients."""
    rows = live.filter(
        pl.col("site_file").is_null(), pl.col("kind").is_in(_OF_BACKWARD), pl.col("place").is_not_null()
    )
    last = int(number(first.rows["place"], first.begins).max() or 0)  # type: ignore[arg-type]
    older = rows.with_columns(number=number(rows["place"], first.begins)).filter(
        pl.col("number").is_between(1, last)
    )
    group = _Group(older, first.begins)
    lives = usual_life(history.filter(pl.col("site").is_null()), first.begins)
    if _passes(group) < max(FEWEST_PASSES, KEPT_BEYOND * lives) or not _grow_together(first, group):
        return []
    return [group]


def _describe(groups: list[_Group]) -> Kept:
    """The line with the most first."""
    rows = pl.concat([each.rows for each in groups], how="diagonal_relaxed")
    lines = (
        rows.drop_nulls("site_file").group_by(SITE).agg(pl.col("size").sum()).sort("size", descending=True)
    )
    first = groups[0]
    file, line, function = first.rows.select(SITE).row(0)
    kind = rows.group_by("kind").agg(pl.col("size").sum()).sort("size", descending=True)["kind"][0]
    return Kept(
        file,
        int(line),
        function,
        kind,
        int(rows["size"].sum()),
        _passes(first),
        len(rows),
        first.inner,
        first.bytes,
        tuple((name, int(at), of) for name, at, of, _ in lines.iter_rows() if (name, at) != (file, line)),
        first.current,
    )
