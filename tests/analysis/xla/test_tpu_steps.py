"""Steps of TPUs: their account, what the file says of their work, and the findings of each class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from stepscope.analysis.context import RankContext
from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.host.place import Place
from stepscope.analysis.kernels.mfu import matrix_products, utilisation
from stepscope.analysis.options import Options
from stepscope.analysis.xla.file_work import instruction_facts
from tests.builders.files import load
from tests.builders.tpu import BEGIN_FETCH, PREFETCH, Op, fusion, product, tpu_job, wait


def context(folder: Path, ops: Sequence[Op], copies: Sequence[Op] = ()) -> RankContext:
    """Four steps of 1,000 ns each."""
    return RankContext(0, load(tpu_job(ops, copies), folder), Options(), alone=True)


def parts(found: RankContext) -> dict[str, int]:
    """Time of all steps by part."""
    return dict(found.account.parts.group_by("part").agg(pl.col("ns").sum()).cast({"part": pl.String}).rows())


def findings(found: RankContext) -> list[Finding]:
    """What holds the steps up; a case asks its context, which has to live as long."""
    return apply_rules(found.case)


def test_copies_are_waits_and_what_overlaps_is_not_added(tmp_path: Path) -> None:
    shown = [Op("async-copy", 0, 900, BEGIN_FETCH, {"hlo_category": "copy-start"})]
    found = context(tmp_path, [fusion(0, 300), wait(300, 600), fusion(900, 100, "fusion.2")], shown)
    assert len(found.steps.windows) == 4
    assert parts(found) == {"compute": 1_600, "copy": 2_400}


def test_a_loop_owns_what_nothing_inside_it_has(tmp_path: Path) -> None:
    found = context(tmp_path, [Op("while.1", 0, 1_000), fusion(100, 300), wait(400, 500)])
    assert parts(found) == {"compute": 2_000, "copy": 2_000}


def test_a_hidden_copy_costs_nothing(tmp_path: Path) -> None:
    shown = [Op("async-copy", 0, 900, BEGIN_FETCH, {"hlo_category": "copy-start"})]
    found = context(tmp_path, [fusion(0, 1_000)], shown)
    assert parts(found) == {"compute": 4_000}
    assert findings(found) == []


def test_what_the_file_says_of_its_work(tmp_path: Path) -> None:
    found = context(tmp_path, [fusion(0, 500), wait(500, 500)])
    facts = instruction_facts(found.trace)
    assert facts.select("category", "op", "flops", "bytes", "shapes", "source").unique().sort(
        "op"
    ).rows() == [
        ("loop fusion", "add", 1_000, 8_192, "[[8,128]]", "train.py:29"),
        ("copy-done", "copy-done", None, 4_096, None, None),
    ]


def test_mfu_is_of_the_peak_in_the_file(tmp_path: Path) -> None:
    flops = 91_800_000  # 100 ns at the peak
    found = context(tmp_path, [product(0, 1_000, flops)])
    products = matrix_products(found.work, found.op_calls, found.kernel_calls)
    used = utilisation(found.trace, products, 4_000)
    assert used is not None
    assert used.best == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("ops", "code"),
    [
        ([fusion(0, 200), wait(200, 800)], "host-offload"),
        ([fusion(0, 200), Op("infeed.1", 200, 800, stats={"hlo_category": "infeed"})], "infeed"),
        ([fusion(0, 200), wait(200, 800, PREFETCH)], "exposed-copy"),
        ([fusion(0, 200), Op("all-reduce.1", 200, 800)], "exposed-collective"),
        ([fusion(0, 200), fusion(200, 800, "copy.3", hlo_category="copy")], "layout-conversion"),
        ([product(0, 1_000, 91_800_000)], "low-mxu"),
        ([product(0, 1_000, 642_600_000)], None),
        ([fusion(0, 985), wait(985, 15)], None),
    ],
)
def test_findings_by_class(tmp_path: Path, ops: list[Op], code: str | None) -> None:
    found = findings(context(tmp_path, ops))
    assert [finding.code for finding in found] == ([code] if code else [])


def test_an_offload_names_its_lines_and_promises_what_computation_can_hide(tmp_path: Path) -> None:
    (found,) = findings(context(tmp_path, [wait(0, 800), fusion(800, 200)]))
    assert found.where == [Place("train.py", 29, "add")]
    assert found.share == pytest.approx(0.8)
    assert found.speedup.low < 1.5 < found.speedup.mid < 5 < found.speedup.high
    assert "4.00 KiB" in found.detail


def test_an_offload_that_could_save_nothing_or_nearly_all_promises_nothing(tmp_path: Path) -> None:
    (found,) = findings(context(tmp_path, [wait(0, 960), fusion(960, 40)]))
    assert (found.code, found.class_, found.speedup.high) == ("host-offload", "advice", 1.0)
    assert "1.00–2" in found.detail
