"""Every trace JSON of the corpus against a plain reading of it, and against what is known of it."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.trace.trace import Trace
from tests.builders.documents import told
from tests.corpus.naive_json import Document, Event, decode
from tests.corpus.recordings import some, trace_of

CORPUS = Path(os.environ.get("STEPSCOPE_CORPUS", "/nonexistent"))
FILES = sorted(str(path.relative_to(CORPUS)) for path in CORPUS.rglob("*.json.gz"))
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not FILES, reason="STEPSCOPE_CORPUS has no trace JSON")]
# Of the scope of the module, so that the tests of one file come one after the other.
each_file = pytest.mark.parametrize("name", some(FILES), scope="module")


def ours(name: str) -> Trace:
    """The file as we read it."""
    return trace_of(CORPUS / name)


@lru_cache(maxsize=1)
def naive(name: str) -> Document:
    """The file as the standard library reads it: millions of objects, which are let go before the next."""
    return decode(CORPUS / name)


def known(part: str) -> Trace:
    """The one file of the corpus with this in its path."""
    (name,) = [name for name in FILES if part in name]
    return ours(name)


# --- nothing lost -------------------------------------------------------------------------------------------------


@each_file
def test_events_and_durations_per_category(name: str) -> None:
    counts: Counter[str | None] = Counter()
    sums: Counter[str | None] = Counter()
    for event in naive(name).events:
        counts[event.category] += 1
        sums[event.category] += event.dur_ns
    found = ours(name).events.group_by("source_category").agg(pl.len(), pl.col("dur_ns").sum())
    assert {category: (count, sums[category]) for category, count in counts.items()} == {
        category: (count, total) for category, count, total in found.iter_rows()
    }


@each_file
def test_every_name_start_and_duration(name: str) -> None:
    expected = Counter(event.row for event in naive(name).events)
    found = ours(name).events.select("source_category", "name", "start_ns", "dur_ns")
    assert Counter(found.rows()) == expected


@each_file
def test_nothing_was_left_out(name: str) -> None:
    left_out = {
        "bad-events",
        "truncated",
        "untimed-events",
        "no-phase",
        "time-out-of-range",
        "unmatched-ends",
    }
    assert set(ours(name).problems["code"]).isdisjoint(left_out)


@each_file
def test_arguments_are_found_again(name: str) -> None:
    """Of each category some events, each argument in the tables or with the event."""
    trace = ours(name)
    unique = _unique_events(naive(name).events)
    ids = {
        row[:4]: row[4]
        for row in trace.events.select("source_category", "name", "start_ns", "dur_ns", "id").rows()
    }
    for event in _sample(unique):
        found = told(trace, ids[event.row])
        for key, value in event.args.items():
            assert key == "Device Type" or _is_in(value, found), (
                f"{key}: {value!r} of {event.name} in {found}"
            )


def _unique_events(events: list[Event]) -> list[Event]:
    seen = Counter(event.row for event in events)
    return [event for event in events if event.args and seen[event.row] == 1]


def _sample(events: list[Event]) -> list[Event]:
    """Some of each category and set of arguments, the same every time."""
    groups: dict[tuple[Any, ...], list[Event]] = {}
    for event in events:
        groups.setdefault((event.category, *sorted(event.args)), []).append(event)
    chosen = random.Random(7)
    return [event for group in groups.values() for event in chosen.sample(group, min(6, len(group)))]


def _is_in(value: Any, found: dict[str, Any]) -> bool:
    extents = [[found.get(f"arguments.{what}_{axis}") for axis in "xyz"] for what in ("grid", "block")]
    return any(_same(value, other) for other in (*found.values(), *extents))


def _same(value: Any, other: Any) -> bool:
    if isinstance(other, str) and not isinstance(value, str):
        try:
            return bool(json.loads(other) == value)
        except ValueError:
            return False
    if isinstance(value, str) and isinstance(other, int | float):
        return value == str(other)
    if isinstance(other, float):
        return (
            abs(float(value) - other) <= 1e-6 * max(1.0, abs(other))
            if not isinstance(value, list | dict)
            else False
        )
    return bool(value == other)


@each_file
def test_launches_and_arrows(name: str) -> None:
    """Each kernel whose correlation a runtime call has is linked to such a call, and to one only."""
    calls, work = set(), Counter[int]()
    for event in naive(name).events:
        correlation = event.args.get("correlation", 0)
        if event.category in ("cuda_runtime", "cuda_driver", "Runtime"):
            calls.add(correlation)
        elif event.category in (
            "kernel",
            "Kernel",
            "gpu_memcpy",
            "Memcpy",
            "gpu_memset",
            "Memset",
            "cuda_sync",
        ):
            work[correlation] += 1
    expected = sum(count for correlation, count in work.items() if correlation > 0 and correlation in calls)
    launches = ours(name).links.filter(pl.col("why") == "launch")
    assert len(launches) == expected
    assert launches["to"].n_unique() == len(launches)


# --- what holds of every trace ------------------------------------------------------------------------------------


@each_file
def test_nesting(name: str) -> None:
    events = ours(name).events
    assert events["id"].to_list() == list(range(len(events)))
    ordered = events.sort("track", "start_ns", -pl.col("dur_ns"), maintain_order=True)
    assert ordered["id"].equals(events["id"])
    inner = events.filter(pl.col("parent").is_not_null())
    outer = events.select(pl.all().gather(inner["parent"]))
    assert (outer["id"] < inner["id"]).all()
    assert (outer["track"] == inner["track"]).all()
    assert (outer["depth"] + 1 == inner["depth"]).all()
    assert (outer["start_ns"] <= inner["start_ns"]).all()
    assert (outer["start_ns"] + outer["dur_ns"] >= inner["start_ns"] + inner["dur_ns"]).all()


@each_file
def test_self_times_sum_to_the_whole(name: str) -> None:
    """Of each thread without overlaps: what its events spend themselves is what its outermost events last."""
    trace = ours(name)
    events = trace.events
    inside = (
        events.filter(pl.col("parent").is_not_null()).group_by("parent").agg(inside=pl.col("dur_ns").sum())
    )
    own = events.join(
        inside, left_on="id", right_on="parent", how="left", maintain_order="left"
    ).with_columns(own=pl.col("dur_ns") - pl.col("inside").fill_null(0))
    begun = events.filter(pl.col("dur_ns") > 0).sort("track", "parent", "start_ns", maintain_order=True)
    end_before = (pl.col("start_ns") + pl.col("dur_ns")).shift(1).over("track", "parent")
    assert (own["own"] < 0).sum() <= len(begun.filter(pl.col("start_ns") < end_before))
    outermost = events.filter(pl.col("depth") == 0).group_by("track").agg(whole=pl.col("dur_ns").sum())
    per_track = own.group_by("track").agg(pl.col("own").sum()).join(outermost, on="track")
    assert (per_track["own"] == per_track["whole"]).all()


@each_file
def test_every_step_once(name: str) -> None:
    steps = ours(name).events.filter(pl.col("role") == "step")
    assert steps["step"].n_unique() == len(steps)
    assert steps.filter(pl.col("step").is_null()).is_empty()


@each_file
def test_no_more_is_freed_than_was_allocated(name: str) -> None:
    """Of blocks that were allocated in the window: each free gives back what the allocation before it took."""
    taken: dict[tuple[Any, ...], int] = {}
    for device, address, size in ours(name).memory.select("device", "address", "bytes").iter_rows():
        if size > 0:
            taken[device, address] = size
        elif (device, address) in taken and address is not None:
            assert taken.pop((device, address)) == -size


# --- what is known of each --------------------------------------------------------------------------------------


STEPS = {
    "resnet_input_bound": [3, 4, 5, 6],
    "dqn_launch_bound": list(range(1, 21)),
    "gpt_bf16_eager": [1, 2, 3],
    "ddp_rank0": [1, 2, 3],
    "ddp_rank1": [1, 2, 3],
    "jax_gpu": list(range(8)),
    "jax_cupti_conflict": list(range(8)),
    "kineto_resnet50_workers0": [5, 6, 7, 8, 9, 10],
    "kineto_resnet50_workers4": [5, 6, 7, 8, 9, 10],
    "a100x2_nccl": [4, 5, 6],
    "worker0_step": [10],
    "gloo_rank34": [551],
    "mi250_toy": [1, 2],
}


@pytest.mark.parametrize("part", STEPS)
def test_steps(part: str) -> None:
    markers = known(part).events.filter(pl.col("role") == "step").sort("start_ns")
    assert markers["step"].to_list() == STEPS[part]


@pytest.mark.parametrize(
    ("part", "rank", "world", "device"),
    [
        ("ddp_rank0", 0, 2, "NVIDIA H200"),
        ("ddp_rank1", 1, 2, "NVIDIA H200"),
        ("a100x2_nccl", 0, 2, "NVIDIA A100-PG509-200"),
        ("gloo_rank34", 34, 300, None),
        *((f"worker{rank}_step", rank, 8, "Tesla V100-SXM2-32GB") for rank in range(8)),
        ("kineto_resnet50_workers0", None, None, "Tesla V100-DGXS-32GB"),
        ("mi250_toy", None, None, "AMD Instinct MI250/MI210"),
        ("gpt_bf16", None, None, "NVIDIA H200"),
    ],
)
def test_ranks_and_devices(part: str, rank: int | None, world: int | None, device: str | None) -> None:
    info = known(part).info
    names = {found["name"] for found in info.devices}
    assert (info.rank, info.world_size, names) == (rank, world, {device} if device else set())


@pytest.mark.parametrize("part", ["gloo_rank34", "jax_cupti_conflict"])
def test_no_device_events(part: str) -> None:
    trace = known(part)
    assert set(trace.events["kind"]).isdisjoint({"kernel", "copy", "memset"})
    assert "device" not in set(trace.tracks["what"])


@pytest.mark.parametrize(
    ("part", "share"),
    [("a100x2_nccl", 28.8), ("worker0_step", 84.9), ("worker7_step", 62.2)],
)
def test_share_of_collectives(part: str, share: float) -> None:
    kernels = known(part).events.filter(pl.col("kind") == "kernel")
    collective = kernels.filter(pl.col("role") == "collective")
    assert _percent(collective["dur_ns"], kernels["dur_ns"]) == share


@pytest.mark.parametrize(
    ("part", "share"),
    [("resnet_input_bound", 79.4), ("kineto_resnet50_workers0", 39.6), ("kineto_resnet50_workers4", 1.0)],
)
def test_share_of_the_data_loader(part: str, share: float) -> None:
    events = known(part).events
    loads = events.filter(pl.col("name").cast(pl.String).str.starts_with("enumerate(DataLoader)"))
    steps = events.filter(pl.col("role") == "step")
    assert _percent(loads["dur_ns"], steps["dur_ns"]) == share


def _percent(part: pl.Series, whole: pl.Series) -> float:
    share: float = 100 * sum(part.to_list()) / sum(whole.to_list())
    return round(share, 1)


def test_capture_options() -> None:
    options = known("resnet_input_bound").info.capture_options
    assert [options[name] for name in ("with_stack", "record_shapes", "profile_memory", "with_flops")] == [
        True
    ] * 4
    assert known("gpt_bf16").info.capture_options["with_modules"] is True
    assert known("gpt_bf16").ops["scope"].null_count() < len(known("gpt_bf16").ops)


def test_rocm_knows_no_registers() -> None:
    kernels = known("mi250_toy").kernels
    assert len(kernels) > 0
    assert kernels["registers"].null_count() == kernels["occupancy"].null_count() == len(kernels)
    assert kernels["grid"].null_count() == 0  # told by the launch
    assert known("mi250_toy").copies["bytes"].null_count() == 0


def test_waits_across_streams() -> None:
    links = known("a100_event_sync").links
    assert len(links.filter(pl.col("why") == "record-wait")) == 3


def test_a_triton_kernel_is_launched_by_the_driver() -> None:
    trace = known("a100_triton")
    launcher = trace.events.select(pl.all().gather(trace.links["from"]))
    assert launcher["source_category"].to_list() == ["cuda_driver"]


def test_collectives_carry_their_arguments() -> None:
    collectives = known("a100x2_nccl").collectives
    assert collectives["bytes"].null_count() < len(collectives)
    assert set(collectives["group_size"].drop_nulls()) == {1, 2}
