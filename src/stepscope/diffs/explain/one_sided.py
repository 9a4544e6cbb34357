"""What one run does in every step and the other in none: ops below a new scope, a Python function.

That is certain, however busy the machine is and however little time it takes. It needs enough steps on both sides, and runs that
mostly do the same: with other code, other versions, or Python functions recorded in one run only, everything would be new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import polars as pl

from stepscope.diffs.data.model import Row
from stepscope.diffs.data.samples import CELL, SCHEMAS, Samples
from stepscope.diffs.noise.judge import Ground
from stepscope.registers.levels import FEWEST_STEPS
from stepscope.registers.policy.diffs import SAME_CODE
from stepscope.trace.frames import conform

BETWEEN = "/"
# Linear_13: modules are numbered in the order they were made, so that one more gives all later ones another number.
NUMBER_OF_MODULE = r"_\d+(/|\)|$)"
# Ops that were called in a scope, without the numbers of modules.
SCOPED_OPS = SCHEMAS["ops"]


def find_one_sided_functions(ground: Ground) -> list[Row]:
    """The outermost functions that only one run calls; the longest first. `a` and `b` are calls per step."""
    every = [_list_in_every_step(side.functions, len(side.cells), "name") for side in (ground.a, ground.b)]
    if not _has_enough_steps(ground) or not _is_mostly_same_code(*every):
        return []
    timed: list[tuple[float, Row]] = []
    for side, names, other in ((ground.a, every[0], ground.b), (ground.b, every[1], ground.a)):
        new = names - set(other.functions["name"].unique())
        # What only a new function calls goes with it.
        outer = side.functions.filter(
            pl.col("name").is_in(list(new)), ~pl.col("inside").is_in(list(new)).fill_null(False)
        )
        for name, ns, calls in _iterate_per_step(outer, "name", "ns", side):
            if ns >= ground.least_ns:
                timed.append((ns, _make_row(name, calls, side is ground.b)))
    return _sort_by_time(timed)


def find_one_sided_scopes(ground: Ground, measure: str, sporadic: Collection[str]) -> list[Row]:
    """The outermost scopes that only one run has ops in; the longest first. `note` names their ops, `a` and `b` are calls per step."""
    sides = ground.a, ground.b
    ops = [_list_scoped_ops(side, sporadic) for side in sides]
    every = [
        _list_in_every_step(each, len(side.cells), "scope") for each, side in zip(ops, sides, strict=True)
    ]
    if not _has_enough_steps(ground) or not _is_mostly_same_code(*every):
        return []
    timed: list[tuple[float, Row]] = []
    for place, side in enumerate(sides):
        others = set(_iterate_prefixes(ops[1 - place]["scope"].unique().to_list()))
        new = {scope: _find_first_new(scope, others) for scope in every[place] if scope not in others}
        rows = ops[place].filter(pl.col("scope").is_in(list(new)))
        rows = rows.with_columns(pl.col("scope").replace_strict(new, default=None, return_dtype=pl.String))
        for scope, ns, calls in _iterate_per_step(rows, "scope", f"{measure}_ns", side):
            if ns >= ground.least_ns:
                row = _make_row(scope, calls, side is ground.b)
                row.note = _name_ops(rows.filter(pl.col("scope") == scope), measure)
                timed.append((ns, row))
    return _sort_by_time(timed)


def _list_scoped_ops(side: Samples, sporadic: Collection[str]) -> pl.DataFrame:
    """SCOPED_OPS of a run, without those that are recorded only sporadically."""
    ops = side.ops.filter(
        pl.col("scope").is_not_null(), pl.col("calls") > 0, ~pl.col("name").is_in(list(sporadic))
    )
    return conform(ops.with_columns(pl.col("scope").str.replace_all(NUMBER_OF_MODULE, "$1")), SCOPED_OPS)


def _has_enough_steps(ground: Ground) -> bool:
    return min(len(ground.a.cells), len(ground.b.cells)) >= FEWEST_STEPS


def _list_in_every_step(rows: pl.DataFrame, steps: int, column: str) -> set[str]:
    seen = rows.group_by(column).agg(steps=pl.struct(*CELL).n_unique())
    return set(seen.filter(pl.col("steps") == steps)[column].drop_nulls())


def _is_mostly_same_code(a: Collection[str], b: Collection[str]) -> bool:
    both = len(set(a) & set(b))
    return bool(a) and bool(b) and both >= SAME_CODE * max(len(a), len(b))


def _iterate_per_step(
    rows: pl.DataFrame, key: str, time: str, side: Samples
) -> Iterator[tuple[str, float, float]]:
    """Each key with its time and its calls per step."""
    steps = len(side.cells)
    yield from rows.group_by(key).agg(pl.col(time).sum() / steps, pl.col("calls").sum() / steps).iter_rows()


def _iterate_prefixes(scopes: Collection[str]) -> Iterator[str]:
    for scope in scopes:
        words = scope.split(BETWEEN)
        yield from (BETWEEN.join(words[:count]) for count in range(1, len(words) + 1))


def _find_first_new(scope: str, others: Collection[str]) -> str:
    return next(prefix for prefix in _iterate_prefixes([scope]) if prefix not in others)


def _name_ops(rows: pl.DataFrame, measure: str) -> str:
    names = rows.group_by("name").agg(ns=pl.col(f"{measure}_ns").sum())
    return ", ".join(names.sort("ns", "name", descending=[True, False])["name"])


def _sort_by_time(timed: Collection[tuple[float, Row]]) -> list[Row]:
    return [row for _, row in sorted(timed, key=lambda each: (-each[0], each[1].name))]


def _make_row(name: str, calls: float, is_b: bool) -> Row:
    return Row(
        name=name,
        a=0.0 if is_b else calls,
        b=calls if is_b else 0.0,
        difference=calls if is_b else -calls,
        unit="calls",
        significant=True,
        matched_by="b" if is_b else "a",
    )
