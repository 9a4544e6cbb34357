"""Copies of the same bytes take longer in one recording than in the next; twice as long is a change."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.diffs.build import diff_sides
from stepscope.diffs.data.model import Diff
from stepscope.diffs.data.samples import Side
from tests.diffs.recordings import recorded

PINNED = "Memcpy HtoD (Pinned -> Device)"
COPY_NS, BYTES = 2_000_000, 1 << 26


def copying(ns: int, *, moved: int = BYTES, link: bool = True, name: str = PINNED, number: int = 0) -> Side:
    """With a copy in each step."""
    side = recorded(f"wide.none.{number}")
    samples = side.samples
    ops = samples.ops.unique(["rank", "step"], keep="first", maintain_order=True).with_columns(
        name=pl.lit("aten::copy_"), scope=pl.lit(None, pl.String), shapes=pl.lit("[[64]]"), calls=pl.lit(1, pl.Int64),
        host_ns=pl.lit(0, pl.Int64), device_ns=pl.lit(ns, pl.Int64),
        link_ns=pl.lit(ns if link else 0, pl.Int64), link_bytes=pl.lit(moved if link else 0, pl.Int64),
    )  # fmt: skip
    named = ops.select("recording", "rank", "step", part=pl.lit("copy"), name=pl.lit(name), ns="device_ns")
    more = replace(
        samples,
        cells=samples.cells.with_columns(pl.col("ns") + ns),
        parts=pl.concat([samples.parts, named.drop("name")]),
        names=pl.concat([samples.names, named]),
        ops=pl.concat([samples.ops, ops]),
    )
    return replace(side, samples=more)


def told(found: Diff) -> bool:
    copies = [row for row in (*found.parts, *found.ops.rows) if "copy" in row.name]
    return any(row.significant for row in copies) or any("cop" in line.title for line in found.lines)


def test_a_copy_as_fast_as_its_pages_lie() -> None:
    assert not told(diff_sides(copying(COPY_NS), copying(COPY_NS * 13 // 10, number=1)))


@pytest.mark.parametrize(
    "other",
    [
        lambda: copying(2 * COPY_NS),
        lambda: copying(3 * COPY_NS, name="Memcpy HtoD (Pageable -> Device)"),
        lambda: copying(COPY_NS * 13 // 10, moved=BYTES * 13 // 10),
    ],
    ids=["half the lanes", "pageable", "more bytes"],
)
def test_other_copies_are_seen(other: object) -> None:
    assert callable(other)
    assert told(diff_sides(copying(COPY_NS), other()))


def test_copies_on_the_device_are_steady() -> None:
    name = "Memcpy DtoD (Device -> Device)"
    sides = [copying(ns, link=False, name=name) for ns in (COPY_NS, COPY_NS * 13 // 10)]
    assert told(diff_sides(sides[0], sides[1]))
