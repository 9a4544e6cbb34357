"""The families of rows that a diff compares: each is measured, judged and completed by one function, in the order of FAMILIES."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from stepscope.diffs.case import Case
from stepscope.diffs.data.judged import JudgedRows
from stepscope.diffs.data.match import EXACT, KERNELS, NAMES, OPS, Pair
from stepscope.diffs.data.model import Row
from stepscope.diffs.explain.call_counts import compare_calls, compare_waits
from stepscope.diffs.explain.one_sided import find_one_sided_functions, find_one_sided_scopes
from stepscope.diffs.figures import compare_figures, compare_memory
from stepscope.diffs.noise.host_device_link import make_op_noise, make_part_noise
from stepscope.diffs.noise.judge import (
    Ground,
    Measure,
    Measured,
    Vectors,
    average,
    collect_vectors,
    judge_rows,
    measure_rows,
    sum_vectors,
)
from stepscope.diffs.noise.machine_speed import DEVICE, HOST, NEITHER, find_clock
from stepscope.registers.policy.diffs import DIFF_SCOPES

_OP = ("name", "scope", "shapes")
_KERNEL = ("name", "op", "precision")


def _always(case: Case) -> bool:
    return True


@dataclass(frozen=True)
class Family:
    """Rows of one kind, by the field of `JudgedRows` that holds them. `applies`: whether the two runs can be compared by them."""

    name: str
    judge: Callable[[Case], list[Row]]
    applies: Callable[[Case], bool] = _always


def judge_families(case: Case) -> JudgedRows:
    """The rows of all families; none where a family does not apply."""
    return JudgedRows(
        **{family.name: family.judge(case) if family.applies(case) else [] for family in FAMILIES}
    )


def _judge_figures(case: Case) -> list[Row]:
    return compare_figures(case.a.report, case.b.report, case.batch)


def _judge_memory(case: Case) -> list[Row]:
    return compare_memory(case.a.samples, case.b.samples)


def _judge_parts(case: Case) -> list[Row]:
    """The step and its parts are one family: they are tested together."""
    rows = measure_rows(
        case.ground,
        Measure(
            "parts",
            ["part"],
            "ns",
            EXACT,
            lambda key: find_clock(str(key[0])),
            make_part_noise(case.ground),
            has_limits=True,
        ),
    )
    if case.compares_steps:
        judge_rows(case.ground, [case.step, *(rows if case.compares_parts else [])])
    return _list_rows(rows)


def _judge_names(case: Case) -> list[Row]:
    """What the parts went to."""
    rows = measure_rows(
        case.ground,
        Measure(
            "names",
            ["name", "part"],
            "ns",
            NAMES,
            lambda key: find_clock(str(key[1])),
            lambda key, larger: case.ground.runs.of_name(str(key[1]), larger),
        ),
    )
    if case.compares_parts:
        judge_rows(case.ground, rows)
    for each in rows:
        each.row.part = each.pair.key[1]
    return _list_rows(rows)


def _judge_ops(case: Case) -> list[Row]:
    ground, measure = _merge_scopes(case.ground), case.measure
    noise = make_op_noise(ground, _OP, measure)
    rows = measure_rows(ground, Measure("ops", _OP, f"{measure}_ns", OPS, lambda _: measure, noise))
    judge_rows(ground, _skip_sporadic(case, rows))
    calls = [collect_vectors(side.ops, _OP, "calls", side.cells) for side in (ground.a, ground.b)]
    for each in rows:
        _, scope, shapes = each.pair.key
        is_alone = each.pair.by in ("a", "b")
        each.row.scope = scope if is_alone or "scope" in each.pair.by else None
        each.row.shapes = shapes if is_alone or "shapes" in each.pair.by else None
        _count_calls(each.row, each.pair, calls, ground)
    return _list_rows(rows)


def _merge_scopes(ground: Ground) -> Ground:
    """The same with one scope for ops that have more than DIFF_SCOPES of them."""
    both = pl.concat([side.ops.select("name", "scope") for side in (ground.a, ground.b)])
    many = both.group_by("name").agg(pl.col("scope").n_unique()).filter(pl.col("scope") > DIFF_SCOPES)
    if many.is_empty():
        return ground
    scope = pl.when(~pl.col("name").is_in(many["name"].implode())).then("scope").alias("scope")
    a, b = (replace(side, ops=side.ops.with_columns(scope)) for side in (ground.a, ground.b))
    return replace(ground, a=a, b=b)


def _judge_ops_by_name(case: Case) -> list[Row]:
    measure = case.measure
    noise = make_op_noise(case.ground, ["name"], measure)
    rows = measure_rows(
        case.ground, Measure("ops", ["name"], f"{measure}_ns", EXACT, lambda _: measure, noise)
    )
    judge_rows(case.ground, _skip_sporadic(case, rows))
    return _list_rows(rows)


def _has_other_host_time(case: Case) -> bool:
    """In one recording, where ops are compared by device time."""
    return case.compares_ops and case.ground.is_exact and case.measure != HOST


def _judge_ops_on_host(case: Case) -> list[Row]:
    rows = measure_rows(case.ground, Measure("ops", ["name"], "host_ns", EXACT, lambda _: HOST))
    judge_rows(case.ground, rows)
    return _list_rows(rows)


def _judge_kernels(case: Case) -> list[Row]:
    ground = case.ground
    rows = measure_rows(ground, Measure("kernels", _KERNEL, "ns", KERNELS, lambda _: DEVICE))
    judge_rows(ground, rows)
    exchanged = _find_exchanged_ops(ground, rows)
    calls = [collect_vectors(side.kernels, _KERNEL, "calls", side.cells) for side in (ground.a, ground.b)]
    for each in rows:
        each.row.op = each.pair.key[1]
        each.row.significant &= each.row.op not in exchanged
        _count_calls(each.row, each.pair, calls, ground)
        if each.pair.by == "op" and each.pair.a and each.pair.b:
            each.row.note = f"in A: {each.pair.a[0][0]}"
    return _list_rows(rows)


def _find_exchanged_ops(ground: Ground, rows: Sequence[Measured]) -> set[str]:
    """Ops that take as long with other kernels: libraries choose theirs by trial, in each process anew."""
    by_op = measure_rows(ground, Measure("kernels", ["op"], "ns", EXACT, lambda _: DEVICE))
    judge_rows(ground, by_op)
    as_long = {each.row.name for each in by_op if not each.row.significant}
    changed = {each.pair.key[1] for each in rows if each.pair.by in ("op", "a", "b")}
    return {op for op in changed if op is not None and op in as_long}


def _judge_precision(case: Case) -> list[Row]:
    """The time of matrix products by number format."""
    ground = case.ground
    clock = DEVICE if all(side.kernels["ns"].sum() for side in (ground.a, ground.b)) else HOST
    rows = measure_rows(ground, Measure("products", ["precision"], "ns", EXACT, lambda _: clock))
    if case.compares_steps:
        judge_rows(ground, rows)
    return _list_rows(rows)


def _judge_collectives(case: Case) -> list[Row]:
    rows = measure_rows(
        case.ground, Measure("collectives", ["name", "dtype"], "ns", EXACT, lambda _: NEITHER)
    )
    if case.compares_steps:
        judge_rows(case.ground, rows)
    return _list_rows(rows)


def _skip_sporadic(case: Case, rows: Sequence[Measured]) -> list[Measured]:
    return [each for each in rows if each.row.name not in case.sporadic]


def _count_calls(row: Row, pair: Pair, calls: Sequence[Vectors], ground: Ground) -> None:
    sides = (pair.a, ground.a), (pair.b, ground.b)
    row.a_calls, row.b_calls = (
        round(average(sum_vectors(vectors, keys, len(side.cells))), 3) if keys else 0.0
        for vectors, (keys, side) in zip(calls, sides, strict=True)
    )


def _list_rows(rows: Sequence[Measured]) -> list[Row]:
    return [each.row for each in rows]


FAMILIES = (
    Family("figures", _judge_figures),
    Family("parts", _judge_parts),
    Family("names", _judge_names),
    Family("ops", _judge_ops, lambda case: case.compares_ops),
    Family("ops_by_name", _judge_ops_by_name, lambda case: case.compares_ops),
    Family("ops_on_host", _judge_ops_on_host, _has_other_host_time),
    Family("kernels", _judge_kernels, lambda case: case.compares_ops),
    Family("precision", _judge_precision),
    Family("collectives", _judge_collectives),
    Family("memory", _judge_memory),
    Family("waits", lambda case: compare_waits(case.ground), lambda case: case.compares_parts),
    Family(
        "calls",
        lambda case: compare_calls(case.ground, case.sporadic, case.measure),
        lambda case: case.compares_ops,
    ),
    Family(
        "scopes",
        lambda case: find_one_sided_scopes(case.ground, case.measure, case.sporadic),
        lambda case: case.compares_code,
    ),
    Family("functions", lambda case: find_one_sided_functions(case.ground), lambda case: case.compares_code),
)
