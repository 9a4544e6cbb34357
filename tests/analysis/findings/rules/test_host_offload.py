"""Weights that are kept in pinned memory of the host and sent layer by layer."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.trace.frames import conform
from tests.builders.cases import HEAD, case_of, gemm, steps
from tests.builders.inline import trace_of

MIB = 1 << 20


def found_in(
    count: int, computing: int, mib: int = 160, source: str = "Pinned", framework: str = "pytorch"
) -> dict[str, Finding]:
    """Steps of 1 ms that send so many arrays of that size and then compute; the host waits."""
    length = (960 - computing) // count
    rows = []
    for k in range(count):
        rows += [
            f"main  {5 * k}  4  cudaMemcpyAsync  runtime  Memcpy HtoD",
            f"stream 7  {10 + length * k}  {length}  Memcpy HtoD  copy  -",
        ]
    rows += [*gemm(5 * count, computing, 10 + length * count)]
    rows += [f"main  {5 * count + 12}  {980 - 5 * count}  cudaStreamSynchronize  runtime  -"]
    trace = trace_of("\n".join([HEAD, *steps(*rows, count=4)]), framework=framework)
    copies = trace.events.filter(pl.col("kind") == "copy").select(
        event="id",
        bytes=pl.lit(mib * MIB),
        direction=pl.lit("HtoD"),
        source=pl.lit(source),
        target=pl.lit("Device"),
    )
    tables = {**trace.tables, "copies": conform(copies, trace.copies.schema)}
    return {each.code: each for each in apply_rules(case_of(trace.over(tables, trace.cold)))}


def test_no_more_is_promised_than_computation_can_hide() -> None:
    """200 µs of 1 ms: with all of it hidden, 800 are left."""
    found = found_in(8, 200)
    offload = found["host-offload"]
    assert "exposed-copy" not in found
    assert offload.class_ == "time"
    assert 1.0 <= offload.speedup.low < offload.speedup.mid < offload.speedup.high <= 1.26
    assert "1.25 GiB" in offload.detail
    assert "Keep weights on the device" in offload.fix and "pin_memory" not in offload.fix


def test_with_hardly_any_computation_it_is_advice() -> None:
    offload = found_in(8, 20)["host-offload"]
    assert (offload.class_, offload.speedup.high) == ("advice", 1.0)
    assert offload.share > 0.9


@pytest.mark.parametrize(
    "other",
    [
        {"count": 5},  # a graph: features, edges, weights, labels and masks
        {"mib": 4},
        {"source": "Pageable"},
        {"computing": 600},
        {"framework": "jax"},
    ],
)
def test_batches_are_not_taken_for_weights(other: dict[str, int | str]) -> None:
    arguments = {"count": 8, "computing": 200, **other}
    assert "host-offload" not in found_in(**arguments)  # type: ignore[arg-type]


def test_weights_in_pageable_memory_are_kept_on_the_device() -> None:
    """Sent in other ways, they still take most of the step: at best, only the computation is left."""
    sent = found_in(8, 200, source="Pageable")["exposed-copy"]
    assert "Keep weights on the device" in sent.fix and "pinned memory" in sent.fix
    assert "DataLoader" not in sent.fix
    assert sent.speedup.high > 2
    assert sent.evidence["weights"]


@pytest.mark.parametrize("other", [{"count": 5}, {"mib": 4}])
def test_batches_in_pageable_memory_are_sent_ahead(other: dict[str, int]) -> None:
    sent = found_in(other.get("count", 8), 200, mib=other.get("mib", 160), source="Pageable")["exposed-copy"]
    assert "DataLoader" in sent.fix
    assert "weights" not in sent.evidence
