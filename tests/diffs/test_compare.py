"""Diff truth by construction: what was planted is the first line, and a job recorded twice does not differ."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest

import stepscope
from benchmarks.diff.plant import slower_op
from stepscope.analysis.options import Options
from stepscope.diffs.build import diff_sides
from stepscope.diffs.data.model import Diff
from stepscope.diffs.data.samples import Side, combine_recordings
from stepscope.diffs.side import read_side
from stepscope.gate.budget import Baseline, Limit
from stepscope.gate.check import check_diff
from stepscope.gate.wording import OTHER_FRAMEWORK
from tests.diffs.recordings import FIXTURES, SAME, SUFFIX, path_of, recorded, side
from tests.sample import of_each

pytestmark = pytest.mark.thorough

PAIRS = of_each(
    [(job, *pair) for job, numbers in SAME.items() for pair in combinations(numbers, 2)], lambda pair: pair[0]
)


def test_a_job_recorded_again_does_not_differ() -> None:
    """Of ten pairs of recordings (one of each job in make test), though hosts differed in speed by up to 65 %: 95 % of pairs is all of them."""
    wrong = []
    for job, first, second in PAIRS:
        found = diff_sides(recorded(f"{job}.none.{first}"), recorded(f"{job}.none.{second}"))
        if found.significant or found.lines:
            wrong.append((job, first, second, [line.title for line in found.lines]))
    assert wrong == []


def test_halves_of_a_recording_do_not_differ() -> None:
    path = path_of("wide.none.0")
    steps = recorded("wide.none.0").samples.cells["step"].sort().to_list()
    found = diff_sides(side(path, (steps[0], steps[2])), side(path, (steps[3], steps[5])))
    assert not found.significant
    assert found.lines == []


def test_a_run_against_itself_differs_in_nothing() -> None:
    found = diff_sides(recorded("busy.none.0"), recorded("busy.none.0"))
    rows = [found.step, *found.parts, *found.names.rows, *found.ops.rows, *found.kernels.rows, *found.memory]
    assert all(
        row.difference == 0 and row.at_equal_speed in (0, None) and not row.significant for row in rows
    )
    assert not found.gained
    assert not found.lost


@pytest.mark.parametrize("base", ["busy.none.0", "busy.none.3"])
@pytest.mark.parametrize(
    ("changed", "kind", "words"),
    [
        ("busy.batch.1", "batch", "B's batch is 2× A's"),
        ("busy.fp32.0", "precision", "matrix products run in fp32 instead of bf16"),
        # A host that is hardly ahead of its device loses little by waiting for it.
        (
            "busy.sync.1",
            "sync",
            "cudaStreamSynchronize (waits for the device) is called 3 times per step, only in B",
        ),
    ],
)
def test_what_was_changed_is_the_first_line(base: str, changed: str, kind: str, words: str) -> None:
    first = diff_sides(recorded(base), recorded(changed)).lines[0]
    assert (first.kind, first.title) == (kind, words)
    assert first.difference > 0


@pytest.mark.parametrize(
    ("base", "other", "op"),
    [
        ("wide.none.0", "wide.none.1", "aten::mm"),
        ("conv.none.6", "conv.none.5", "aten::convolution_backward"),
        ("torch_metrics.mended", "torch_sleep.mended", "aten::gelu_backward"),
    ],
)
def test_an_op_slower_by_a_tenth_is_the_first_line(base: str, other: str, op: str, tmp_path: Path) -> None:
    """Planted into another recording of the same job."""
    target = tmp_path / f"planted{SUFFIX}"
    added_us = slower_op(path_of(other), target, op, 1.1)
    found = diff_sides(recorded(base), side(target))
    assert found.lines[0].title == op
    assert found.lines[0].kind == "op"
    per_step = 1e3 * added_us / len(found.steps["b"])
    assert found.lines[0].difference == pytest.approx(per_step, rel=0.35)


@pytest.mark.parametrize(
    ("job", "kind", "says"),
    [
        ("torch_item", "sync", "_local_scalar_dense"),
        ("torch_loader", "input", "DataLoader"),
        ("torch_metrics", "python", "compute_metrics"),
        ("torch_pageable", "copy", "Pageable"),
        ("torch_few_blocks", "kernel", "scale_kernel"),
        ("torch_pressure", "memory", "peak memory"),
    ],
)
def test_bottlenecks_are_named(job: str, kind: str, says: str) -> None:
    first = diff_sides(recorded(f"{job}.mended"), recorded(f"{job}.slow")).lines[0]
    assert first.kind == kind
    assert says in first.title


@pytest.mark.parametrize("back", [False, True])
def test_what_is_rarely_slow_is_said_to_be_so(back: bool) -> None:
    """A checkpoint in every fifth step: the mean drowns in it, the median does not see it."""
    sides = [recorded(f"torch_checkpoint.{name}") for name in ("mended", "slow")]
    found = diff_sides(*(reversed(sides) if back else sides))
    most, few = "AB" if back else "BA"
    assert found.lines[0].kind == "tail"
    assert (
        found.lines[0].title == f"2 of 10 steps in {most} take 91 times as long as usual ({few}: none of 10)"
    )
    assert found.lines[0].detail == "mostly file access: save_checkpoint"
    assert found.verdict.startswith("A few slow steps changed the mean step: ")
    assert found.tail is not None
    assert found.tail.significant


def test_one_interrupted_step_may_be_chance() -> None:
    """The same ops as in all others, for longer."""
    base = recorded("torch_checkpoint.mended")
    cells = base.samples.cells.with_columns(
        ns=pl.when(pl.col("step") == base.samples.cells["step"][3]).then(5).otherwise(1) * pl.col("ns")
    )
    found = diff_sides(base, Side(replace(base.samples, cells=cells), base.report))
    assert found.tail is not None
    assert (found.tail.b_slow, found.tail.significant) == (1, False)
    said = "1 of 10 steps in B takes 4.98 times as long as usual (A: none of 10): too few to be significant."
    assert said in found.verdict


def test_what_was_mended_is_told_as_lost() -> None:
    there, back = (
        diff_sides(recorded(f"torch_item.{a}"), recorded(f"torch_item.{b}"))
        for a, b in (("mended", "slow"), ("slow", "mended"))
    )
    assert (
        [change.code for change in there.gained] == ["device-sync"] == [change.code for change in back.lost]
    )
    assert back.step.difference == pytest.approx(-there.step.difference)
    assert back.lines[0].difference < 0


def test_parts_sum_to_the_step() -> None:
    found = diff_sides(recorded("torch_item.mended"), recorded("torch_item.slow"))
    for read in (lambda row: row.a or 0, lambda row: row.b or 0, lambda row: row.difference):
        total: Callable[..., float] = read
        assert sum(total(row) for row in found.parts) == pytest.approx(total(found.step))


def test_the_same_twice_is_the_same() -> None:
    """The bootstrap has a seed."""
    first, second = (diff_sides(recorded("conv.none.0"), recorded("conv.none.5")) for _ in range(2))
    assert first == second


def test_per_sample_where_the_batch_differs() -> None:
    found = diff_sides(recorded("busy.none.3"), recorded("busy.batch.1"))
    assert found.batch is not None
    assert found.batch.ratio == 2
    figures = {row.name: row for row in found.figures}
    assert figures["median step per batch of A's size"].b == pytest.approx(
        (figures["median step"].b or 0) / 2
    )


def test_recordings_of_each_side_tell_what_chance_does() -> None:
    """Twice three of one job do not differ; a planted wait is found, and figures are means over all recordings."""
    ours, theirs = (
        combine_recordings([recorded(f"conv.none.{number}") for number in each]) for each in ((0, 5), (6,))
    )
    found = diff_sides(ours, theirs)
    assert (len(found.a.paths), found.b.paths) == (2, [])
    assert not found.significant
    assert len(found.steps["a"]) == 12
    both = combine_recordings([recorded("busy.none.0"), recorded("busy.none.3")])
    assert diff_sides(both, recorded("busy.sync.1")).lines[0].kind == "sync"
    assert diff_sides(both, recorded("busy.fp32.0")).lines[0].kind == "precision"


def test_memory_of_many_devices_is_that_of_the_fullest() -> None:
    base = recorded("torch_pressure.mended")
    one = base.samples.memory.filter(pl.col("name") == "gpu 0")
    many = pl.concat(
        one.with_columns(name=pl.lit(f"gpu {number}"), peak_bytes=pl.lit(number + 1 << 30, dtype=pl.Int64))
        for number in range(8)
    )
    found = diff_sides(base, Side(replace(base.samples, memory=many), base.report)).memory
    assert [(row.name, row.b) for row in found if row.b] == [("the fullest gpu", 8 << 30)]


def test_the_speed_of_the_host_is_told() -> None:
    found = diff_sides(recorded("small.none.0"), recorded("small.none.1"))
    host = next(speed for speed in found.speed if speed.what == "host")
    assert host.ratio == pytest.approx(1.7, abs=0.1)
    assert "That is the machine, not the code" in found.verdict


@cache
def across_frameworks() -> Diff:
    jax = side(FIXTURES / "diagnosis" / "jax_input.mended.xplane.pb.gz")
    return diff_sides(recorded("torch_item.mended"), jax)


def test_other_frameworks_are_said_not_to_compare() -> None:
    found = across_frameworks()
    assert any("A is PyTorch and B is JAX" in remark for remark in found.not_comparable)
    assert found.ops.total == found.kernels.total == 0
    assert found.parts
    assert all(
        line.kind in ("precision", "memory", "tail") or line.title == line.kind.replace("_", " ")
        for line in found.lines
    )
    assert check_diff(found, Baseline(step_time=Limit(0.05, "share"))).remarks == [OTHER_FRAMEWORK]


def test_other_world_sizes_compare_per_rank() -> None:
    ddp = FIXTURES / "capture_gpu" / "torch_ddp"
    both, one = side(ddp), read_side(stepscope.load(ddp, rank=0), Options(limit=0))
    found = diff_sides(both, one)
    assert (found.a.ranks, found.b.ranks) == (2, 1)
    assert len(found.steps["a"]) == 2 * len(found.steps["b"])
    assert found.collectives.rows[0].name == "all_reduce"
    assert (found.step.a or 0) == pytest.approx(found.step.b or 0, rel=0.5)


def test_steps_that_are_not_marked_are_said_to_be_inferred(tmp_path: Path) -> None:
    with gzip.open(path_of("torch_pageable.slow"), "rt") as file:
        whole = json.load(file)
    events = whole["traceEvents"]
    marks = sorted(each["ts"] for each in events if str(each.get("name")).startswith("ProfilerStep"))
    whole["traceEvents"] = [
        each
        for each in events
        if "ProfilerStep" not in str(each.get("name"))
        and float(each.get("ts", 0)) < marks[len(marks) // 2]
        and each.get("cat") != "kernel"
    ]
    target = tmp_path / f"stepless{SUFFIX}"
    target.write_bytes(gzip.compress(json.dumps(whole).encode()))
    found = diff_sides(recorded("torch_pageable.mended"), side(target))
    assert found.b.step_source == "inferred"
    assert found.not_comparable == [
        "Only A has device kernels: ops are compared by host time.",
        "B marks no steps: they are inferred from what repeats, and may be wrong.",
    ]


def test_flame_graph_of_both() -> None:
    found = diff_sides(recorded("torch_item.mended"), recorded("torch_item.slow")).flame
    tops = [node for node in found.nodes if node.parent == -1]
    assert sum(node.a_self_ns for node in found.nodes) == pytest.approx(
        sum(node.a_total_ns for node in tops), rel=1e-3
    )
    assert all(node.parent < number for number, node in enumerate(found.nodes))
