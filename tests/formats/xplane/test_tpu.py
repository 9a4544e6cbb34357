"""TPUs: which instructions compute, wait and communicate, what they move, and which planes are devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.trace.trace import Trace
from tests.builders.files import load
from tests.builders.tpu import (
    BEGIN_FETCH,
    BEGIN_STORE,
    FETCH,
    PREFETCH,
    STORE,
    Op,
    core_plane,
    fusion,
    host_plane,
    tpu_job,
    wait,
)
from tests.builders.xspace_bytes import PlaneBytes, space
from tests.formats.xplane.test_draft import rows


def on_core(trace: Trace, *columns: str) -> list[tuple[object, ...]]:
    """Columns of the first step's instructions."""
    core = trace.tracks.filter(pl.col("thread") == "XLA Ops")["id"]
    first = trace.events.filter(pl.col("track").is_in(core.implode()), pl.col("start_ns") < 1_000)
    return rows(first, *columns)


@pytest.mark.parametrize(
    ("op", "kind", "role"),
    [
        (wait(0, 10), "copy", None),
        (Op("copy-start.7", 0, 10), "copy", None),
        (Op("copy.7", 0, 10, stats={"hlo_category": "copy"}), "kernel", None),
        (Op("slice-done.2", 0, 10), "copy", None),
        (Op("infeed.1", 0, 10, stats={"hlo_category": "infeed"}), "copy", None),
        (
            Op("send-done.1", 0, 10, "%send-done.1 = token[] send-done(…), is_host_transfer=true"),
            "copy",
            None,
        ),
        (Op("send-done.1", 0, 10, stats={"hlo_category": "send-done"}), "kernel", "collective"),
        (Op("all-reduce.1", 0, 10), "kernel", "collective"),
        (Op("fusion.9", 0, 10, stats={"hlo_category": "all-gather fusion"}), "kernel", "collective"),
        (Op("async-collective-done.2", 0, 10, stats={"hlo_category": "async-done"}), "kernel", "collective"),
        (Op("fusion.9", 0, 10, stats={"hlo_category": "convolution fusion"}), "kernel", None),
        (Op("while.3", 0, 10), "kernel", None),
    ],
)
def test_what_an_instruction_is(tmp_path: Path, op: Op, kind: str, role: str | None) -> None:
    trace = load(tpu_job([op]), tmp_path)
    assert on_core(trace, "name", "kind", "role") == [(op.name, kind, role)]


def test_a_loop_that_shows_its_content_is_a_scope(tmp_path: Path) -> None:
    trace = load(tpu_job([Op("while.3", 0, 100), fusion(10, 20), wait(30, 60)]), tmp_path)
    assert on_core(trace, "name", "kind", "depth") == [
        ("while.3", "scope", 0),
        ("fusion.1", "kernel", 1),
        ("copy-done.1", "copy", 1),
    ]


def test_copies_know_their_memories_and_move_their_bytes_once(tmp_path: Path) -> None:
    ops = [wait(0, 1, BEGIN_FETCH), wait(10, 5, FETCH), wait(20, 5, STORE), wait(30, 5, PREFETCH)]
    shown = [Op("async-copy", 0, 15, BEGIN_FETCH, {"hlo_category": "copy-start", "bytes_accessed": 4_096})]
    trace = load(tpu_job(ops, shown, steps=1), tmp_path)
    found = trace.copies.with_columns(name=trace.events["name"].gather(trace.copies["event"]))
    assert rows(found, "name", "direction", "source", "target", "bytes") == [
        ("copy-start.1", "HtoD", "host", "device", None),
        ("copy-done.1", "HtoD", "host", "device", None),
        ("copy-done.2", "DtoH", "device", "host", None),
        ("copy-done.3", "DtoD", "device", "device", None),
        ("async-copy", "HtoD", "host", "device", 4_096),
    ]
    alone = load(tpu_job([wait(0, 1, BEGIN_STORE), wait(20, 5, STORE)], steps=1), tmp_path)
    assert alone.copies["bytes"].to_list() == [None, 4_096]


def test_what_overlaps_is_no_op(tmp_path: Path) -> None:
    shown = [Op("async-copy", 0, 15, BEGIN_FETCH, {"hlo_category": "copy-start", "tf_op": "jit(f)/x:"})]
    trace = load(tpu_job([fusion(0, 10), wait(10, 5)], shown, steps=1), tmp_path)
    names = trace.events["name"].gather(trace.ops["event"]).cast(pl.String)
    assert names.to_list() == ["fusion.1", "copy-done.1"]


def test_parts_of_a_device_are_no_devices(tmp_path: Path) -> None:
    sparse, slow = PlaneBytes("/device:TPU:0 SparseCore 1"), PlaneBytes("/device:CUSTOM:Megascale Trace")
    sparse.line("Sparse Core Modules", [sparse.event("jit_f(7)", 0, 9_000)])
    sparse.line("Sparse Core Ops", [sparse.event("gather.1", 0, 5_000)])
    slow.line("graph", [slow.event("all-reduce", 0, 5_000)])
    trace = load(space(host_plane(), core_plane([fusion(0, 10)]), sparse, slow), tmp_path)
    assert [device["plane"] for device in trace.info.devices] == ["/device:TPU:0"]
    beside = trace.tracks.filter(pl.col("process").str.contains("SparseCore|Megascale"))
    assert rows(beside, "process", "thread", "what", "device") == [
        ("/device:TPU:0 SparseCore 1", "Sparse Core Modules", "derived", 0),
        ("/device:TPU:0 SparseCore 1", "Sparse Core Ops", "device", 0),
        ("/device:CUSTOM:Megascale Trace", "graph", "derived", None),
    ]
    kinds = trace.events.filter(pl.col("track").is_in(beside["id"].implode()))
    assert rows(kinds, "name", "kind") == [
        ("jit_f(7)", "scope"),
        ("gather.1", "kernel"),
        ("all-reduce", "span"),
    ]


def test_memory_of_a_tpu(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    stats: dict[str, Any] = {
        "index_on_host": 2,
        "allocation_bytes": 64,
        "requested_bytes": 60,
        "bytes_allocated": 64,
        "addr": 9,
    }
    host.line(
        "t",
        [host.event("MemoryAllocation", 0, 0, **stats), host.event("MemoryDeallocation", 9_000, 0, **stats)],
    )
    trace = load(space(host, core_plane([fusion(0, 10)])), tmp_path)
    assert rows(trace.memory, "device", "device_kind", "bytes", "requested", "total_allocated") == [
        (2, "tpu", 64, 60, 64),
        (2, "tpu", -64, 60, 64),
    ]


def test_unsigned_ids_of_programs(tmp_path: Path) -> None:
    facts = PlaneBytes("/host:metadata")
    facts.describe("jit_f(12190760917235803885)", hlo_proto=b"\x0a\x00")
    trace = load(space(facts, core_plane([fusion(0, 10)])), tmp_path)
    assert rows(trace.modules, "name", "program_id") == [("jit_f", 12190760917235803885 - 2**64)]
