"""Samples of one rank by construction."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.diffs.data.samples import Samples, conform_table

HOST_NS = 20_000


def rank_samples(
    ops: Mapping[str, tuple[str, str, float]], *, steps: int, rank: int = 0, shapes: bool = True
) -> Samples:
    """Of ops by name, each with shapes, the grid of its kernel and ns on the device; steps differ by a little."""
    rows = [
        {
            "recording": 0, "rank": rank, "step": step, "part": "compute", "name": name, "scope": None, "precision": "fp32",
            "shapes": shape if shapes else None, "host_ns": HOST_NS, "calls": 1,
            "device_ns": round(ns * (1 + step / 1000)), "ns": round(ns * (1 + step / 1000)),
            "op": name, "link_ns": 0, "link_bytes": 0, "launch": grid, "dtype": "float", "bytes": 0, "exposed_ns": 0, "peak_bytes": 0, "reserved_bytes": 0,
        }
        for step in range(steps)
        for name, (shape, grid, ns) in ops.items()
    ]  # fmt: skip
    frame = pl.DataFrame(rows, infer_schema_length=None)
    by_step = frame.group_by("recording", "rank", "step", maintain_order=True).agg(pl.col("ns").sum())
    return Samples(
        cells=conform_table("cells", by_step),
        parts=conform_table("parts", by_step.with_columns(part=pl.lit("compute"))),
        names=conform_table("names", frame.clear()),
        ops=conform_table("ops", frame),
        kernels=conform_table("kernels", frame.with_columns(name=pl.lit("kernel of ") + pl.col("name"))),
        products=conform_table("products", frame.clear()),
        collectives=conform_table("collectives", frame.clear()),
        memory=conform_table("memory", frame.clear()),
    )
