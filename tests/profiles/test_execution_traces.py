"""An execution trace beside a Kineto trace: shapes and process groups, joined by the id of each call."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.profiles.answers import identify_run
from stepscope.profiles.find.catalog import scan
from stepscope.trace.trace import Trace

REAL = Path(__file__).parents[1] / "fixtures" / "execution_trace"
PROFILE, EXECUTION = "rank0.pt.trace.json.gz", "et_rank0.json.gz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A real job of two ranks with gloo, one of them."""
    shutil.copytree(REAL, tmp_path / "run")
    return tmp_path / "run"


def load(folder: Path) -> Trace:
    return stepscope.load(folder, cache=False).traces[0]


def test_all_calls_get_their_shapes(folder: Path) -> None:
    trace = load(folder)
    assert trace.ops["shapes"].null_count() == 0
    names = trace.events["name"].gather(trace.ops["event"]).cast(pl.String)
    product = trace.ops.filter(names == "aten::addmm").row(0, named=True)
    assert (product["shapes"], product["dtypes"]) == (
        "[[128],[32,64],[64,128],[],[]]",
        '["float","float","float","Scalar","Scalar"]',
    )
    assert trace.info.capture_options["execution_trace"] == EXECUTION


def test_collectives_get_their_size_and_group(folder: Path) -> None:
    found = load(folder).collectives.select("name", "dtype", "bytes", "group", "group_size", "group_ranks")
    assert set(found.rows()) == {("all_reduce", "float", 38_440, "0", 2, "[0,1]")}
    assert len(found) == 3


def test_without_it_nothing_is_known(folder: Path) -> None:
    (folder / EXECUTION).unlink()
    trace = load(folder)
    assert trace.ops["shapes"].count() == 0
    assert trace.collectives.is_empty()


@pytest.mark.parametrize("change", ["process", "names", "empty", "other"])
def test_one_of_another_run_is_left_alone(folder: Path, change: str) -> None:
    document = json.loads(gzip.decompress((folder / EXECUTION).read_bytes()))
    if change == "process":
        document["pid"] += 1
    if change == "names":
        for node in document["nodes"]:
            node["name"] = f"other {node['name']}"
    if change == "empty":
        document["nodes"] = []
    data = b"{" if change == "other" else json.dumps(document).encode()
    (folder / EXECUTION).write_bytes(gzip.compress(data))
    assert load(folder).ops["shapes"].count() == 0


def test_shapes_of_the_profiler_stay(folder: Path) -> None:
    profile = json.loads(gzip.decompress((folder / PROFILE).read_bytes()))
    for event in profile["traceEvents"]:
        if event.get("name") == "aten::addmm":
            event["args"] |= {"Input Dims": [[1]], "Input type": ["double"]}
    (folder / PROFILE).write_bytes(gzip.compress(json.dumps(profile).encode()))
    trace = load(folder)
    names = trace.events["name"].gather(trace.ops["event"]).cast(pl.String)
    assert set(trace.ops.filter(names == "aten::addmm")["shapes"].cast(pl.String)) == {"[[1]]"}


def test_one_that_comes_later_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept tables and answers are those of the profile alone."""
    monkeypatch.setenv("STEPSCOPE_CACHE", str(folder.parent / "cache"))
    kept = folder / EXECUTION
    data = kept.read_bytes()
    kept.unlink()
    catalog = scan(folder)
    before = identify_run(catalog.runs[0])
    assert stepscope.load(folder).traces[0].ops["shapes"].count() == 0
    kept.write_bytes(data)
    assert stepscope.load(folder).traces[0].ops["shapes"].null_count() == 0
    assert identify_run(catalog.runs[0]) != before
