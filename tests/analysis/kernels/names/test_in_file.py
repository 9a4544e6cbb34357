"""Formats that other kernels of the same file decide."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.kernels.names.in_file import told_by_others

SCHEMA = {"name": pl.String, "precision": pl.String, "tensor_cores": pl.Boolean, "family": pl.String}


def formats(*rows: tuple[str, str, bool | None, str]) -> list[tuple[str, bool | None]]:
    """What each of the labels has in the end."""
    found = told_by_others(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    assert found["name"].to_list() == [row[0] for row in rows]
    return list(found.select("precision", "tensor_cores").iter_rows())


def test_the_same_kernel_with_an_op() -> None:
    """A kernel that was launched before the recording has no op; its namesake has."""
    found = formats(("a", "bf16", True, "attention"), ("a", "unknown", None, "attention"))
    assert found == [("bf16", True), ("bf16", True)]


def test_namesakes_that_differ_decide_nothing() -> None:
    """A Triton kernel is compiled for several formats under one name."""
    found = formats(
        ("a", "bf16", None, "unknown"), ("a", "fp32", None, "unknown"), ("a", "unknown", None, "unknown")
    )
    assert found[2] == ("unknown", None)


def test_attention_reads_the_only_format_of_16_bits() -> None:
    """Elementwise work that nothing describes stays unknown."""
    found = formats(
        ("mm", "bf16", True, "gemm"),
        ("softmax", "fp32", False, "reduction"),
        ("attn", "unknown", None, "attention"),
        ("poi", "unknown", False, "elementwise"),
    )
    assert found[2:] == [("bf16", True), ("unknown", False)]


def test_attention_beside_several_formats_stays_unknown() -> None:
    """Nothing is said where fp16 and bf16 occur, where fp8 does, or where nothing has 16 bits."""
    attention = ("attn", "unknown", None, "attention")
    for others in (["bf16", "fp16"], ["bf16", "fp8"], ["fp32"]):
        rows = [(name, name, True, "gemm") for name in others]
        assert formats(*rows, attention)[-1] == ("unknown", None)
