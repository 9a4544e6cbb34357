"""Where the steps of real recordings begin and end, against what is known of them, and what must hold for all of them."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import polars as pl
import pytest

from stepscope.analysis.context import RankContext
from stepscope.analysis.device.use import device_use
from stepscope.analysis.options import Options
from stepscope.analysis.parts import BUSY_PARTS
from stepscope.analysis.steps.known_annotations import owner_of
from stepscope.errors import StepscopeError
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.frames import take_smallest
from tests.corpus.recordings import context_of, some
from tests.sample import spread

CORPORA = [Path(os.environ.get(name, "/nonexistent")) for name in ("STEPSCOPE_CORPUS", "STEPSCOPE_CORPUS_2")]
KINETO, XPLANE = "*.json.gz", "*.xplane.pb*"
# Formats that later versions read.
REFUSED = (".parquet",)
EVERYTHING = [path for corpus in CORPORA for path in sorted(corpus.rglob("*")) if path.is_file()]
FILES = [
    path
    for corpus in CORPORA
    for pattern in (KINETO, XPLANE)
    for path in sorted(corpus.rglob(pattern))
    if not path.name.endswith(REFUSED) and not path.name.startswith("vm.trace")
]
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not FILES, reason="no corpus is set")]
each_file = pytest.mark.parametrize("path", some(FILES), ids=lambda path: path.name[:40])

# file, steps, all of them together in ms, device busy in percent: as computed from the raw files
TRUTH = [
    ("sglang_Qwen3-8B_decode", 1, 465.0, 2.1),
    ("graph_execution", 1, 10.7, 99.8),
    ("b200_vllm_eager", 1, 87.4, 13.3),
    ("h100_qwen_chat", 1, 35.2, 90.7),
    ("mi300_qwen_chat", 1, 33.8, 88.1),
    ("h100_timesformer", 1, 382.5, 41.4),
    ("resnet_input_bound", 4, 767.0, None),
    ("dqn_launch_bound", 20, None, 4.0),
    ("jax_gpu", 8, None, None),
    ("custom_loop", 10, None, None),
    ("keras_callback", 11, None, None),
    ("rocprofv3_908", 49, None, None),  # of 50, of which the first is the end of the start-up
]


def known(part: str) -> Path:
    """The file whose path holds this; the test is skipped without it."""
    found = next((path for path in FILES if part in str(path)), None)
    if found is None:
        pytest.skip(f"no corpus with {part}")
    return found


def union(work: pl.DataFrame) -> int:
    """The length of intervals (device, start_ns, end_ns), each moment of a device once."""
    total = 0
    for _, rows in work.group_by("device"):
        reached = -(2**62)
        for start, end in rows.sort("start_ns").select("start_ns", "end_ns").iter_rows():
            total += max(0, end - max(start, reached))
            reached = max(reached, end)
    return total


def device_work(context: RankContext) -> pl.DataFrame:
    """id, device, start_ns, end_ns of all that ran on devices."""
    trace = context.whole_trace
    tracks = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").is_not_null())
    work = trace.events.filter(pl.col("kind").is_in(["kernel", "copy", "memset"]))
    return work.join(tracks.select("device", track="id"), on="track").select(
        "id", "kind", "device", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )


def busy_ns(context: RankContext) -> int:
    """Device time in the account."""
    return int(context.parts.filter(pl.col("part").is_in(BUSY_PARTS))["ns"].sum())


@pytest.mark.parametrize(("part", "count", "ms", "busy"), TRUTH, ids=[row[0] for row in TRUTH])
def test_steps_are_those_of_the_job(part: str, count: int, ms: float | None, busy: float | None) -> None:
    context = context_of(known(part))
    steps = context.steps
    length = int((steps.windows["end_ns"] - steps.windows["start_ns"]).sum())
    assert not steps.is_whole
    assert steps.windows["step"].n_unique() == count
    if ms is not None:
        assert length / 1e6 == pytest.approx(ms, rel=0.02)
    if busy is not None:
        assert 100 * busy_ns(context) / length == pytest.approx(busy, abs=0.2)


def test_all_formats_are_read_or_known_to_be_refused() -> None:
    profiles = [path for path in EVERYTHING if path.name.endswith((".gz", ".pb", ".pickle", ".parquet"))]
    refused = []
    for path in profiles:
        if path in FILES:
            continue
        try:
            read(Source(str(path)))
        except StepscopeError:
            refused.append(path.name)
    assert all(name.endswith(REFUSED) for name in refused)


@each_file
def test_no_step_is_empty_and_each_has_one_window_on_a_device(path: Path) -> None:
    windows = context_of(path).steps.windows
    assert (windows["end_ns"] > windows["start_ns"]).all()
    assert not windows.select("device", "step").is_duplicated().any()
    by_device = windows.sort("device", "start_ns").select(
        (pl.col("start_ns") < pl.col("end_ns").shift(1)).over("device").any()
    )
    assert not by_device.item()


@each_file
def test_steps_cover_the_device_time_that_was_launched_in_the_recording(path: Path) -> None:
    context = context_of(path)
    work = device_work(context)
    launched = context.whole_trace.links.filter(pl.col("why") == "launch")["to"]
    if work.is_empty():
        pytest.skip("no device")
    if len(launched):
        known_ones = work.filter(pl.col("id").is_in(launched.implode()))
        first = take_smallest(known_ones["start_ns"])
        work = work.filter((pl.col("start_ns") >= first) | pl.col("id").is_in(launched.implode()))
    elif context.steps.source == "inferred":  # by kernels alone: what comes before the steps is the start-up
        work = work.filter(pl.col("start_ns") >= take_smallest(context.steps.windows["start_ns"]))
    assert busy_ns(context) >= 0.9 * union(work)


@each_file
def test_kernels_take_the_time_of_the_breakdown(path: Path) -> None:
    context = context_of(path)
    calls = context.kernel_calls.filter(pl.col("device").is_not_null() & (pl.col("dur_ns") > 0))
    if calls.is_empty():
        pytest.skip("no kernels")
    running = union(calls.select("device", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")))
    parts = context.parts.filter(pl.col("part").is_in(["compute", "collective"]))
    assert running == int(parts["ns"].sum())
    use = device_use(context.work, context.windows, context.account, context.kernel_calls)
    assert use.concurrency is not None
    assert use.concurrency >= 1.0


def test_work_launched_before_the_recording_is_in_no_table() -> None:
    calls = context_of(known("h100_qwen_chat")).kernel_calls
    assert int(calls["dur_ns"].sum()) / 1e6 == pytest.approx(31.9, rel=0.01)


def test_a_program_that_ran_on_two_devices_is_counted_on_both() -> None:
    calls = context_of(known("bert_8xV100")).kernel_calls
    assert calls.group_by("device").len().sort("device")["len"].to_list() == [665, 665]


def renamed(path: Path, folder: Path) -> Path:
    """A copy in which the annotations that mark steps have names that nothing knows."""
    document = json.loads(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
    events = document["traceEvents"] if isinstance(document, dict) else document
    numbers: dict[str, int] = {}
    for event in events:
        name = str(event.get("name", ""))
        if event.get("ph") == "X" and owner_of(name) and event.get("cat") != "cpu_op":
            event["name"] = f"run_model_{numbers.setdefault(name, len(numbers)) + 7}"
    target = folder / path.name
    target.write_bytes(gzip.compress(json.dumps(document).encode(), 1))
    return target


@pytest.mark.parametrize(
    "path",
    spread([path for path in FILES if path.name.endswith(".json.gz") and path.stat().st_size < 1_300_000], 6),
    ids=lambda path: path.name[:40],
)
def test_steps_do_not_depend_on_the_names_of_annotations(path: Path, tmp_path: Path) -> None:
    context = context_of(path)
    again = RankContext(0, read(Source(str(renamed(path, tmp_path)))), Options(), alone=True).steps
    if again.source == "whole":
        return
    windows = context.steps.windows
    assert again.windows["step"].n_unique() == windows["step"].n_unique()
    length, wanted = (int((each["end_ns"] - each["start_ns"]).sum()) for each in (again.windows, windows))
    assert length == pytest.approx(wanted, rel=0.02)
