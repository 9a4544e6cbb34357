"""What the rest of a file says of kernels whose name and op leave the format open.

The same kernel elsewhere in the file, launched by an op with types, decides. Attention that no name or op describes reads
the 16-bit format of the file where only one occurs: fused attention exists for 16 bits and less, and a model does not mix
fp16 with bf16. In a file with fp8 or without 16-bit work nothing is said.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.kernels.names.dtypes import SIXTEEN_BITS


def told_by_others(labels: pl.DataFrame) -> pl.DataFrame:
    """The labels (name, precision, tensor_cores, family …), unknown formats filled in where the file decides them."""
    if not (labels["precision"] == "unknown").any():
        return labels
    return _of_attention(_of_namesakes(labels))


def _of_namesakes(labels: pl.DataFrame) -> pl.DataFrame:
    known = labels.filter(pl.col("precision") != "unknown")
    alone = (
        known.group_by("name")
        .agg(pl.col("precision").n_unique().alias("formats"), pl.col("precision", "tensor_cores").first())
        .filter(pl.col("formats") == 1)
        .select("name", own="precision", used="tensor_cores")
    )
    joined = labels.join(alone, on="name", how="left", maintain_order="left")
    fills = (pl.col("precision") == "unknown") & pl.col("own").is_not_null()
    return joined.with_columns(
        precision=pl.when(fills).then("own").otherwise("precision"),
        tensor_cores=pl.when(fills).then(pl.coalesce("tensor_cores", "used")).otherwise("tensor_cores"),
    ).drop("own", "used")


def _of_attention(labels: pl.DataFrame) -> pl.DataFrame:
    formats = set(labels["precision"].unique().to_list())
    sixteen = formats & set(SIXTEEN_BITS)
    if len(sixteen) != 1 or "fp8" in formats:
        return labels
    fills = (pl.col("precision") == "unknown") & (pl.col("family") == "attention")
    only = pl.lit(sixteen.pop())
    return labels.with_columns(
        precision=pl.when(fills).then(only).otherwise("precision"),
        tensor_cores=pl.when(fills).then(pl.coalesce("tensor_cores", pl.lit(True))).otherwise("tensor_cores"),
    )
