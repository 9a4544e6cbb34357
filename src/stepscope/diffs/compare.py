"""What changed between two runs, per step and rank, and which of it is no accident."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from stepscope.analysis.parts import PARTS
from stepscope.diffs.comparable import (
    remarks,
    run_of,
    same_frameworks,
    same_measure,
    same_versions,
    steps_wait,
)
from stepscope.diffs.data.match import EXACT, KERNELS, NAMES, OPS, Key, Pair
from stepscope.diffs.data.model import Batch, Diff, Row, Rows
from stepscope.diffs.data.samples import Samples, Side
from stepscope.diffs.explain.batch import batch_of
from stepscope.diffs.explain.call_counts import calls_that_differ, now_and_then, waits_that_differ
from stepscope.diffs.explain.lines import Evidence, explain
from stepscope.diffs.explain.one_sided import functions_of_one, scopes_of_one
from stepscope.diffs.explain.ranks import rank_changes
from stepscope.diffs.explain.slow_steps import tail_of
from stepscope.diffs.figures import figures, memory_rows, other_peaks
from stepscope.diffs.findings import findings
from stepscope.diffs.flame import flame
from stepscope.diffs.noise import host_device_link as link
from stepscope.diffs.noise.judge import Ground, Measured, judge, mean, measured, step_row, summed, vectors
from stepscope.diffs.noise.machine_speed import DEVICE, HOST, NEITHER, Speeds, clock_of, speeds
from stepscope.diffs.noise.same_recording import one_recording
from stepscope.diffs.verdict import verdict

ROWS = 200
_OP = ("name", "scope", "shapes")
_KERNEL = ("name", "op", "precision")


def diff(a: Side, b: Side, limit: int = ROWS) -> Diff:
    """B against A; lists of rows have at most `limit`, 0 for all."""
    runs = run_of(a), run_of(b)
    by_step = same_measure(*runs)
    waits = steps_wait(a, b) and by_step
    comparable = same_frameworks(*runs) and waits
    is_alike = comparable and same_versions(*runs)
    batch = batch_of(a, b) if comparable else None
    ground = _ground(a.samples, b.samples, batch)
    step = step_row(ground, {part: clock_of(part) for part in PARTS})
    parts = measured(
        ground,
        "parts",
        ["part"],
        "ns",
        EXACT,
        lambda key: clock_of(str(key[0])),
        link.of_parts(ground),
    )
    judge(ground, [step, *(parts if waits else [])] if by_step else [])
    names = measured(
        ground,
        "names",
        ["name", "part"],
        "ns",
        NAMES,
        lambda key: clock_of(str(key[1])),
        lambda key, larger: ground.runs.of_name(str(key[1]), larger),
    )
    judge(ground, names if waits else [])
    measure = _measure(ground)
    passing = now_and_then(ground, runs[0].framework, measure)
    ops = _ops(ground, measure, passing) if comparable else []
    by_name = (
        measured(
            ground,
            "ops",
            ["name"],
            f"{measure}_ns",
            EXACT,
            lambda _: measure,
            link.of_ops(ground, ["name"], measure),
        )
        if comparable
        else []
    )
    judge(ground, [each for each in by_name if each.row.name not in passing])
    kernels = _kernels(ground) if comparable else []
    precision = _precision(ground, by_step)
    collectives = measured(ground, "collectives", ["name", "dtype"], "ns", EXACT, lambda _: NEITHER)
    judge(ground, collectives if by_step else [])
    memory = memory_rows(a.samples, b.samples)
    tail = tail_of(a.samples, b.samples) if waits else None
    for each in names:
        each.row.part = (each.pair.b or each.pair.a)[0][1]
    evidence = Evidence(
        step=step.row,
        parts=_plain(parts),
        names=_plain(names) if same_frameworks(*runs) else [],
        ops=_plain(ops),
        ops_by_name=_plain(by_name),
        kernels=_plain(kernels),
        collectives=_plain(collectives),
        memory=memory,
        precision=precision,
        calls=calls_that_differ(ground, passing, measure) if comparable else [],
        scopes=scopes_of_one(ground, measure, passing) if is_alike else [],
        functions=functions_of_one(ground) if is_alike else [],
        batch=batch,
        tail=tail,
        ranks=rank_changes(ground, step.row, _plain(parts)) if waits else [],
        waits=waits_that_differ(ground) if waits else [],
        ops_on_host=_on_host(ground, measure) if comparable else [],
        is_exact=ground.is_exact,
    )
    lines = explain(evidence)
    families = (parts, names, ops, kernels, collectives)
    significant = step.row.significant or any(row.row.significant for rows in families for row in rows)
    significant = significant or any(row.significant for row in (*memory, *precision)) or bool(lines)
    gained, lost, kept = findings(a.report, b.report, significant)
    found = Diff(
        a=runs[0],
        b=runs[1],
        verdict="",
        significant=significant,
        step=step.row,
        lines=lines,
        not_comparable=list(remarks(*runs, a, b)),
        one_recording=ground.is_exact,
        speed=ground.speeds.found,
        batch=batch,
        tail=tail,
        figures=figures(a.report, b.report, batch),
        parts=_plain(parts),
        names=_rows(names, limit),
        ops=_rows(ops, limit),
        ops_measure=measure,
        kernels=_rows(kernels, limit),
        precision=precision,
        collectives=_rows(collectives, limit),
        memory=memory,
        gained=gained,
        lost=lost,
        kept=kept,
        steps={name: side.samples.cells["ns"].to_list() for name, side in (("a", a), ("b", b))},
        flame=flame(a.samples, b.samples, measure),
    )
    other_peaks(found.figures, lines)
    found.explained_share = _explained(found)
    found.verdict = verdict(found)
    return found


def _ground(a: Samples, b: Samples, batch: Batch | None) -> Ground:
    """Of one recording host and device were as fast on both sides."""
    is_exact = one_recording(a, b)
    found = Speeds({}, {}, [], {}) if is_exact else speeds(a, b, same_work=batch is None)
    return Ground(a, b, found, is_exact)


def _on_host(ground: Ground, measure: str) -> list[Row]:
    """Of one recording, ops by their time on the host, where that is not what they are compared by."""
    if not ground.is_exact or measure == HOST:
        return []
    rows = measured(ground, "ops", ["name"], "host_ns", EXACT, lambda _: HOST)
    judge(ground, rows)
    return _plain(rows)


def _measure(ground: Ground) -> str:
    """Device time where both runs have some, else host time."""
    has = [bool(side.ops["device_ns"].sum()) for side in (ground.a, ground.b)]
    return DEVICE if all(has) else HOST


def _ops(ground: Ground, measure: str, passing: Collection[str]) -> list[Measured]:
    noise = link.of_ops(ground, _OP, measure)
    rows = measured(ground, "ops", _OP, f"{measure}_ns", OPS, lambda _: measure, noise)
    judge(ground, [each for each in rows if each.row.name not in passing])
    calls = [vectors(side.ops, _OP, "calls", side.cells) for side in (ground.a, ground.b)]
    for each in rows:
        key = (each.pair.b or each.pair.a)[0]
        each.row.scope = key[1] if "scope" in each.pair.by or each.pair.by in ("a", "b") else None
        each.row.shapes = key[2] if "shapes" in each.pair.by or each.pair.by in ("a", "b") else None
        _count(each.row, each.pair, calls, ground)
    return rows


def _kernels(ground: Ground) -> list[Measured]:
    rows = measured(ground, "kernels", _KERNEL, "ns", KERNELS, lambda _: DEVICE)
    judge(ground, rows)
    traded = _traded(ground, rows)
    calls = [vectors(side.kernels, _KERNEL, "calls", side.cells) for side in (ground.a, ground.b)]
    for each in rows:
        key = (each.pair.b or each.pair.a)[0]
        each.row.op = key[1]
        each.row.significant &= key[1] not in traded
        _count(each.row, each.pair, calls, ground)
        if each.pair.by == "op" and each.pair.a and each.pair.b:
            each.row.note = f"in A it was {each.pair.a[0][0]}"
    return rows


def _traded(ground: Ground, rows: Sequence[Measured]) -> set[str]:
    """Ops that take as long with other kernels: libraries choose among theirs by trial, in each process again."""
    by_op = measured(ground, "kernels", ["op"], "ns", EXACT, lambda _: DEVICE)
    judge(ground, by_op)
    as_long = {each.row.name for each in by_op if not each.row.significant}
    others = {(each.pair.b or each.pair.a)[0][1] for each in rows if each.pair.by in ("op", "a", "b")}
    return {op for op in others if op is not None and op in as_long}


def _count(row: Row, pair: Pair, calls: Sequence[Mapping[Key, list[float]]], ground: Ground) -> None:
    sides = (pair.a, ground.a), (pair.b, ground.b)
    counts = [
        round(mean(summed(dict(found), keys, len(side.cells))), 3) if keys else 0.0
        for found, (keys, side) in zip(calls, sides, strict=True)
    ]
    row.a_calls, row.b_calls = counts


def _precision(ground: Ground, by_step: bool) -> list[Row]:
    """Time of matrix products by their number format."""
    clock = DEVICE if all(side.kernels["ns"].sum() for side in (ground.a, ground.b)) else HOST
    rows = measured(ground, "products", ["precision"], "ns", EXACT, lambda _: clock)
    judge(ground, rows if by_step else [])
    return _plain(rows)


def _plain(rows: Sequence[Measured]) -> list[Row]:
    return [each.row for each in rows]


def _rows(rows: Sequence[Measured], limit: int) -> Rows:
    kept = rows[:limit] if limit else rows
    return Rows(
        total=len(rows),
        significant=sum(each.row.significant for each in rows),
        rows=_plain(kept),
    )


def _explained(found: Diff) -> float | None:
    """Of the step's change: by the lines that were told first, each at most once."""
    timed = [line for line in found.lines if line.unit == "ns"]
    step = found.step.difference
    if not timed or not step:
        return None
    first = [line for line in timed if line.kind in ("batch", "precision") or line.ranks] or timed
    return round(sum(line.difference for line in first) / step, 4)
