"""Handles in the commands and tools that take one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from urllib.parse import parse_qs

import polars as pl
import pytest

import stepscope
from stepscope.assistant.behind import as_frame, cut_step, find_behind, page_link
from stepscope.errors import StepscopeError
from stepscope.profiles.profile import Profile
from tests.cli.run import FIXTURES
from tests.cli.run import stepscope as command

PATH = FIXTURES / "kineto" / "streams.pt.trace.json.gz"


@pytest.fixture(scope="module")
def profile() -> Profile:
    return stepscope.load(PATH)


def test_the_events_as_a_table(profile: Profile) -> None:
    report = profile.report()
    kernel = report.kernels.rows[0]
    frame = as_frame(find_behind(profile, report, f"kernel:{kernel.name}"))
    assert frame.columns == ["rank", "id", "name", "kind", "step", "start_ns", "dur_ns", "weight_ns"]
    assert set(frame["name"]) == {kernel.name}
    assert frame["weight_ns"].is_sorted(descending=True)


def test_a_step_as_a_trace_of_its_own(profile: Profile) -> None:
    trace, step = cut_step(find_behind(profile, profile.report(), "step:2"))
    assert step == 2
    assert 0 < len(trace.events) < len(profile.events)
    assert (
        trace.events.filter(pl.col("step") == 2).height == profile.events.filter(pl.col("step") == 2).height
    )


@pytest.mark.parametrize(
    "wanted", ["step:99", "event:123456789", "event:x", "kernel:none", "problem:x", "finding:77", "nonsense"]
)
def test_what_is_not_there_is_refused(profile: Profile, wanted: str) -> None:
    with pytest.raises(StepscopeError):
        find_behind(profile, profile.report(), wanted)


def test_the_page_opens_at_the_events(profile: Profile) -> None:
    report = profile.report()
    page, _, query = page_link(report, "finding:1", "a1").partition("?")
    assert page == "#/trace"
    assert parse_qs(query)["events"] == [f"finding:{report.findings[0].code}"]
    assert parse_qs(query)["run"] == ["a1"]


def test_query_and_export_take_a_handle(tmp_path: Path) -> None:
    listed = command("query", str(PATH), "step:1", "--format", "json", cwd=tmp_path)
    rows = json.loads(listed.stdout)
    assert rows[0]["step"] == 1
    assert command("export", str(PATH), "--to", "chrome", "--about", "step:1", cwd=tmp_path).returncode == 0
    (written,) = tmp_path.glob("*.step1.chrome.json.gz")
    assert json.loads(gzip.decompress(written.read_bytes()))["traceEvents"]
    refused = command("export", str(PATH), "--to", "parquet", "--about", "step:1", cwd=tmp_path)
    assert refused.returncode == 1
