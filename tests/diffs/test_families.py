"""Every family of rows is judged, and none where the two runs cannot be compared by it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import msgspec
import pytest

import stepscope
from stepscope.analysis.options import Options
from stepscope.diffs.case import Case
from stepscope.diffs.data.judged import JudgedRows
from stepscope.diffs.data.samples import Side
from stepscope.diffs.families import FAMILIES, judge_families
from stepscope.diffs.side import read_side

FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.fixture(scope="module")
def side() -> Side:
    path = FIXTURES / "diagnosis" / "torch_item.slow.pt.trace.json.gz"
    return read_side(stepscope.load(path), Options(limit=0))


def test_the_table_has_all_families() -> None:
    assert [family.name for family in FAMILIES] == [each.name for each in fields(JudgedRows)]


def with_framework(side: Side, framework: str) -> Side:
    profile = msgspec.structs.replace(side.report.profile, framework=framework)
    return Side(side.samples, msgspec.structs.replace(side.report, profile=profile))


def test_the_same_framework_compares_everything(side: Side) -> None:
    rows = judge_families(Case(side, side))
    assert rows.parts and rows.names and rows.ops and rows.kernels and rows.ops_on_host


def test_names_of_another_framework_do_not_match(side: Side) -> None:
    case = Case(side, with_framework(side, "jax"))
    rows = judge_families(case)
    assert (case.compares_parts, case.compares_ops, case.batch) == (True, False, None)
    assert rows.parts and rows.precision
    assert rows.ops == rows.ops_by_name == rows.kernels == rows.calls == rows.scopes == []


def test_steps_that_do_not_wait_have_no_comparable_ops(side: Side) -> None:
    case = Case(side, Side(side.samples, side.report, outside=0.9))
    assert (case.compares_steps, case.compares_parts, case.compares_ops) == (True, False, False)
    assert judge_families(case).ops == []
