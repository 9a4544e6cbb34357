"""What one run does in every step and the other in none: ops below a new scope, a Python function.

That is no matter of chance, however busy the machine is and however little time it takes. It needs enough steps on both sides, and runs that mostly do
the same: of other code, of other versions or of recordings of which only one has Python functions everything would be new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import polars as pl

from stepscope.diffs.data.model import Row
from stepscope.diffs.data.samples import CELL, Samples
from stepscope.diffs.noise.judge import Ground

FEWEST_STEPS = 3
SAME_CODE = 0.5  # of what either run does in every step, the other has so much as well
BETWEEN = "/"
# Linear_13: modules are numbered in the order they were made, so that one more gives all later ones another number.
NUMBER_OF_MODULE = r"_\d+(/|\)|$)"


def functions_of_one(ground: Ground) -> list[Row]:
    """The outermost functions that only one run calls; the longest first. `a` and `b` are calls a step."""
    every = [_in_every_step(side.functions, len(side.cells), "name") for side in (ground.a, ground.b)]
    if not _enough_steps(ground) or not _same_code(*every):
        return []
    found: list[tuple[float, Row]] = []
    for side, names, other in ((ground.a, every[0], ground.b), (ground.b, every[1], ground.a)):
        new = names - set(other.functions["name"].unique())
        # What only a new function calls goes with it.
        outer = side.functions.filter(
            pl.col("name").is_in(list(new)), ~pl.col("inside").is_in(list(new)).fill_null(False)
        )
        for name, ns, calls in _per_step(outer, ["name"], "ns", side):
            if ns >= ground.least_ns:
                found.append((ns, _row(name, calls, side is ground.b)))
    return [row for _, row in sorted(found, key=lambda each: (-each[0], each[1].name))]


def scopes_of_one(ground: Ground, measure: str, passing: Collection[str]) -> list[Row]:
    """The outermost scopes that only one run has ops in; the longest first. `note` names their ops, `a` and `b` are calls a step."""
    known = [
        side.ops.filter(
            pl.col("scope").is_not_null(), pl.col("calls") > 0, ~pl.col("name").is_in(list(passing))
        ).with_columns(pl.col("scope").str.replace_all(NUMBER_OF_MODULE, "$1"))
        for side in (ground.a, ground.b)
    ]
    every = [
        _in_every_step(ops, len(side.cells), "scope")
        for ops, side in zip(known, (ground.a, ground.b), strict=True)
    ]
    if not _enough_steps(ground) or not _same_code(*every):
        return []
    found: list[tuple[float, Row]] = []
    for place, (side, other) in enumerate(((ground.a, 1), (ground.b, 0))):
        theirs = set(_prefixes(known[other]["scope"].unique().to_list()))
        new = {scope: _first_new(scope, theirs) for scope in every[place] if scope not in theirs}
        rows = known[place].filter(pl.col("scope").is_in(list(new)))
        rows = rows.with_columns(outermost=pl.col("scope").replace_strict(new, default=None))
        for scope, ns, calls in _per_step(rows, ["outermost"], f"{measure}_ns", side):
            if ns >= ground.least_ns:
                row = _row(scope, calls, side is ground.b)
                row.note = _ops_in(rows.filter(pl.col("outermost") == scope), measure)
                found.append((ns, row))
    return [row for _, row in sorted(found, key=lambda each: (-each[0], each[1].name))]


def _enough_steps(ground: Ground) -> bool:
    return min(len(ground.a.cells), len(ground.b.cells)) >= FEWEST_STEPS


def _in_every_step(rows: pl.DataFrame, steps: int, column: str) -> set[str]:
    seen = rows.group_by(column).agg(steps=pl.struct(*CELL).n_unique())
    return set(seen.filter(pl.col("steps") == steps)[column].drop_nulls())


def _same_code(a: Collection[str], b: Collection[str]) -> bool:
    both = len(set(a) & set(b))
    return bool(a) and bool(b) and both >= SAME_CODE * max(len(a), len(b))


def _per_step(
    rows: pl.DataFrame, key: list[str], time: str, side: Samples
) -> Iterator[tuple[str, float, float]]:
    """Of each key its time and its calls, in a step."""
    steps = len(side.cells)
    yield from rows.group_by(*key).agg(pl.col(time).sum() / steps, pl.col("calls").sum() / steps).iter_rows()


def _prefixes(scopes: Collection[str]) -> Iterator[str]:
    for scope in scopes:
        words = scope.split(BETWEEN)
        yield from (BETWEEN.join(words[:count]) for count in range(1, len(words) + 1))


def _first_new(scope: str, theirs: Collection[str]) -> str:
    return next(prefix for prefix in _prefixes([scope]) if prefix not in theirs)


def _ops_in(rows: pl.DataFrame, measure: str) -> str:
    names = rows.group_by("name").agg(ns=pl.col(f"{measure}_ns").sum())
    return ", ".join(names.sort("ns", "name", descending=[True, False])["name"])


def _row(name: str, calls: float, is_b: bool) -> Row:
    return Row(
        name=name,
        a=0.0 if is_b else calls,
        b=calls if is_b else 0.0,
        difference=calls if is_b else -calls,
        unit="calls",
        significant=True,
        matched_by="b" if is_b else "a",
    )
