"""What a diff does not claim: one step, two programs, more than the change, rows for every turn of a loop."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.diffs.build import Diff, diff_sides
from stepscope.diffs.data.model import Line, Row
from stepscope.diffs.data.samples import CELL, Samples, Side
from stepscope.diffs.explain.lines import _order_by_direction, _share_change
from stepscope.diffs.noise.same_recording import is_one_recording
from stepscope.gate.budget import Baseline, Limit
from stepscope.gate.check import check_diff
from stepscope.reports.model.report import Profile, Report, Steps
from tests.builders.jobs.rank_samples import rank_samples

LAYERS = ["mm", "gelu", "softmax", "layer_norm", "sum", "add", "mul", "dropout", "embedding"]
Ops = dict[str, tuple[str, str, float]]


def layers(batch: int = 16, us: float = 1_000, names: list[str] | None = None) -> Ops:
    """Ops of a model by name."""
    return {
        f"aten::{name}": (f"[[{batch}, 64]]", f"{place + 1}x1x1", 1e3 * us * (place + 1))
        for place, name in enumerate(names or LAYERS)
    }


def side(samples: Samples, name: str = "run") -> Side:
    report = Report(
        profile=Profile(path=name, framework="pytorch", ranks=[0]),
        steps=Steps(source="marker", count=len(samples.cells)),
    )
    return Side(samples, report)


def compared(a: Ops, b: Ops, steps: int = 6) -> Diff:
    return diff_sides(side(rank_samples(a, steps=steps), "a"), side(rank_samples(b, steps=steps), "b"))


def test_one_step_cannot_tell_and_leads_with_the_device() -> None:
    found = compared(layers(), layers(us=590), steps=1)
    assert not found.step.significant
    assert found.step.noise is None
    assert found.verdict.startswith("The device computed 45.0 ms → 26.6 ms (−41 %). Cannot say from one step")
    assert "within noise" not in found.verdict and "Nothing else" not in found.verdict


def test_a_gate_does_not_judge_one_step() -> None:
    limit = Baseline(step_time=Limit(0.05, "share"))
    gate = check_diff(compared(layers(), layers(us=1_500), steps=1), limit)
    assert (gate.checks[0].verdict, gate.passed) == ("unknown", False)
    assert "one step on a side shows no noise" in gate.checks[0].message
    assert check_diff(compared(layers(), layers(us=900), steps=1), limit).passed


def test_two_programs_are_said_to_be_two() -> None:
    found = compared(layers(), layers(us=1_400, names=[f"conv{number}" for number in range(9)]))
    assert found.verdict.startswith("A and B are two programs.")
    assert found.not_comparable[0].startswith(
        "A and B are two programs: they have 0 % of their calls in common"
    )
    assert found.speed == [] and "machine, not the code" not in found.verdict


def test_other_shapes_by_no_common_factor_are_another_program() -> None:
    other = {
        name: (f"[[{17 + 13 * at}, 99]]", *rest) for at, (name, (_, *rest)) in enumerate(layers().items())
    }
    assert "two programs" in compared(layers(), other).verdict  # type: ignore[arg-type]
    assert "two programs" not in compared(layers(), layers(batch=32)).verdict
    assert "two programs" not in compared(layers(), layers(us=1_300)).verdict


def test_a_doubled_batch_is_found_beside_an_optimizer_of_many_calls() -> None:
    """Whose shapes stay: nine of ten calls."""

    def job(batch: int) -> Samples:
        optimizer = {f"aten::_foreach_{at}": ("[[64, 64]]", "1x1x1", 1e4) for at in range(81)}
        return rank_samples(layers(batch, 50.0 * batch) | optimizer, steps=6)

    found = diff_sides(side(job(16), "a"), side(job(32), "b"))
    assert found.batch is not None and found.batch.ratio == 2
    assert found.lines[0].kind == "batch"
    assert found.explained_share is not None and found.explained_share <= 1


def test_one_doubled_op_is_no_batch() -> None:
    one = layers() | {"aten::mm": ("[[32, 64]]", "1x1x1", 2e6)}
    assert compared(layers(), one).batch is None


def test_an_op_in_thousands_of_scopes_is_one_row() -> None:
    sides = []
    for name, longer in (("a", 1), ("b", 2)):
        samples = rank_samples(layers(), steps=6)
        mm, rest = (samples.ops.filter((pl.col("name") == "aten::mm") == wanted) for wanted in (True, False))
        scopes = pl.DataFrame({"scope": [f"loop/turn {at}" for at in range(3_000)]})
        looped = mm.drop("scope").join(scopes, how="cross").with_columns(pl.col("device_ns") * longer)
        ops = pl.concat([rest, looped.select(rest.columns)])
        sides.append(side(replace(samples, ops=ops), name))
    rows = [row for row in diff_sides(sides[0], sides[1], limit=0).ops.rows if row.name == "aten::mm"]
    assert len(rows) == 1
    assert (rows[0].a_calls, rows[0].scope, rows[0].significant) == (3_000, None, True)


def line(difference: float, kind: str = "op") -> Line:
    return Line(title=kind, kind=kind, difference=difference)


def test_lines_never_add_up_to_more_than_the_change() -> None:
    step = Row(name="step", a=100.0, b=110.0, difference=10.0, significant=True)
    lines = _order_by_direction([line(-9.0), line(8.0), line(9.0), line(2.0), line(6.6)], step)
    _share_change(lines, step)
    assert [each.difference for each in lines] == [8.0, 9.0, 2.0, 6.6, -9.0]
    assert [each.share for each in lines] == [0.8, None, pytest.approx(0.2), None, -0.9]
    batch = [line(23.6, "batch"), line(9.0)]
    _share_change(batch, step)
    assert [each.share for each in batch] == [1.0, None]


def test_different_runs_with_constant_times_are_not_one_recording() -> None:
    """As a simulator writes them: equal to the nanosecond, and no evidence of a copy."""
    varying = rank_samples(layers(), steps=6)
    first = varying.ops.group_by("name").agg(pl.col("device_ns").first())
    constant = replace(varying, ops=varying.ops.drop("device_ns").join(first, on="name"))
    assert is_one_recording(varying, varying)
    assert not is_one_recording(constant, constant)
    assert set(CELL) <= set(constant.ops.columns)
