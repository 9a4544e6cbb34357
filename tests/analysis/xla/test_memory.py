"""Memory of compiled programs, against XLA's own figures for the recorded ones."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.memory import program_memory
from tests.agreement.test_xla import COSTS, module_of
from tests.builders.protobuf import field


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: str(cost["name"]))
def test_same_sizes_as_the_memory_analysis(cost: dict[str, Any]) -> None:
    found = program_memory(module_of(cost["name"]))
    assert found is not None
    assert (found.argument_bytes, found.output_bytes) == (cost["argument"], cost["output"])
    assert (found.alias_bytes, found.temporary_bytes) == (cost["alias"], cost["temp"])


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: str(cost["name"]))
def test_what_is_live_sums_to_the_peak(cost: dict[str, Any]) -> None:
    found = program_memory(module_of(cost["name"]))
    assert found is not None
    assert int(found.at_peak["bytes"].sum()) == found.peak_bytes
    unknown = int(found.at_peak.filter(pl.col("kind") == "unknown")["bytes"].sum())
    assert unknown < 0.15 * found.peak_bytes


def test_kinds() -> None:
    """Donated arguments are weights; what the forward pass made for the backward pass is an activation."""
    found = program_memory(module_of("gpu_transformer_bf16"))
    assert found is not None
    kinds = dict(found.at_peak.group_by("kind").agg(pl.col("bytes").sum()).iter_rows())
    assert kinds["parameter"] == 6_815_744
    assert kinds["input"] == 8192
    assert kinds["activation"] > kinds["temporary"]
    weights = found.at_peak.filter(pl.col("kind") == "parameter")["scope"].to_list()
    assert "p['layers'][0]['qkv']" in weights


def block(*buffers: tuple[int, int, int, int]) -> bytes:
    """A program of five instructions, and one block with buffers of (instruction, offset, size, last reader)."""
    readers: dict[int, list[int]] = {}
    for maker, _, _, reader in buffers:
        readers.setdefault(reader, []).append(maker)
    body = b"".join(
        field(2, field(1, f"i.{n}") + field(2, "add") + field(35, n) + field(36, bytes(readers.get(n, []))))
        for n in range(1, 6)
    )
    logical = b"".join(
        field(1, field(1, maker) + field(2, size) + field(3, field(4, maker)))
        for maker, _, size, _ in buffers
    )
    assigned = b"".join(
        field(9, field(1, maker) + field(2, offset) + field(3, size)) for maker, offset, size, _ in buffers
    )
    module = field(1, field(3, field(1, "main") + body + field(5, 1)) + field(6, 1))
    return module + field(3, logical + field(3, field(1, 0) + field(2, 100) + assigned))


def live(*buffers: tuple[int, int, int, int]) -> int | None:
    """Bytes of the block of 100 that are known to be live at the peak."""
    found = program_memory(Module(block(*buffers)))
    return None if found is None else int(found.at_peak.filter(pl.col("kind") != "unknown")["bytes"].sum())


def test_live_from_maker_to_last_reader() -> None:
    assert live((1, 0, 40, 3), (2, 40, 30, 4), (4, 0, 20, 5)) == 70  # the third takes the first one's place


def test_a_buffer_whose_place_is_taken_is_not_live() -> None:
    """Written in place: the reader of the first is the maker of the second."""
    assert live((1, 0, 60, 2), (2, 0, 60, 5)) == 60


def test_no_buffer_assignment() -> None:
    assert program_memory(Module(field(1, field(1, "jit_f")))) is None
