"""Budgets as people write them, right and wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.errors import StepscopeError
from stepscope.gate.budget import Limit, budget, growth, read_budget
from stepscope.reports.ranks.rules import all_rules

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.parametrize(
    ("text", "amount"),
    [("120 ms", 120e6), ("1.5s", 1.5e9), ("80 µs", 80e3), ("80us", 80e3), ("2 min", 120e9)],
)
def test_times(text: str, amount: float) -> None:
    assert budget({"step_time": text}, "x").step_time == Limit(amount, "ns")


@pytest.mark.parametrize(
    ("text", "amount"), [("24 GB", 24e9), ("24 gb", 24e9), ("24 GiB", 24 * 2**30), ("512MiB", 2**29)]
)
def test_sizes(text: str, amount: float) -> None:
    assert budget({"peak_memory": text}, "x").peak_memory == Limit(amount, "bytes")


@pytest.mark.parametrize(
    ("given", "what", "fix"),
    [
        ({"step_tiem": "1 ms"}, "x: unknown key step_tiem.", "Did you mean step_time? Known: step_time, "),
        ({"step_time": "1 GB"}, "x: step_time: invalid amount '1 GB'.", 'such as "120 ms".'),
        ({"step_time": 120}, "x: step_time: invalid amount 120.", 'such as "120 ms".'),
        ({"step_time": "-1 ms"}, "x: step_time: invalid amount '-1 ms'.", "such as"),
        ({"parts": {"inputs": "5 %"}}, "x: parts: unknown key inputs.", "Did you mean input?"),
        ({"parts": "5 %"}, "x: parts must be a table, not '5 %'.", "Its keys may be compute,"),
        ({"findings": "device-sync"}, "x: findings must be a list of codes, not 'device-sync'.", "Such as"),
        ({"findings": ["device-sink"]}, "x: findings: unknown finding device-sink.", "Did you mean device-sync?"),
        ({"baseline": {"step": "5 %"}}, "x: baseline: unknown key step.", "Did you mean step_time?"),
        ({"baseline": {"path": 3}}, "x: baseline: path must be a path in quotes, or a list of them, not 3.", "Such as"),
        ({"baseline": {"findings": 1}}, "x: baseline: findings must be true or false, not 1.", "true fails"),
        ({}, "x sets no limits.", "Write for instance"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_one_message(given: dict[str, Any], what: str, fix: str) -> None:
    with pytest.raises(StepscopeError) as caught:
        budget(given, "x")
    assert caught.value.what == what
    assert fix in (caught.value.fix or "")


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "budgets.toml"
    with pytest.raises(StepscopeError, match="No such file or folder"):
        read_budget(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StepscopeError, match="is not a text file"):
        read_budget(file)
    file.write_text("step_time = 120 ms")
    with pytest.raises(StepscopeError, match="is not valid TOML"):
        read_budget(file)
    file.write_text('[baseline]\npath = "main"\nstep_time = "5 %"')
    found = read_budget(file).baseline
    assert found is not None
    assert found.paths == (str(tmp_path / "main"),)
    file.write_text('baseline = ["main-1", "s3://bucket/main-2"]')
    several = read_budget(file).baseline
    assert several is not None
    assert several.paths == (str(tmp_path / "main-1"), "s3://bucket/main-2")
    assert several.step_time == Limit(0.05, "share")


def test_fail_on() -> None:
    found = growth(["5%", "peak_memory=1 GB", "compute=10 %"])
    assert found.step_time == Limit(0.05, "share")
    assert found.peak_memory == Limit(1e9, "bytes")
    assert found.parts == {"compute": Limit(0.1, "share")}
    with pytest.raises(StepscopeError, match="--fail-on comput=5%: unknown limit comput"):
        growth(["comput=5%"])
    with pytest.raises(StepscopeError, match="--fail-on: step_time: invalid amount 'five'"):
        growth(["five"])


def test_all_findings_are_known() -> None:
    codes = [rule.code for rule in all_rules()]
    assert budget({"findings": codes}, "budget").findings == tuple(codes)
