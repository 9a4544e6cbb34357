"""Padded batches on a CPU, whose ops compute by themselves."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.useless.padding import find
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes"
PRODUCT = "[[128],[1536,128],[128,512]]"
ATTENTION = "aten::scaled_dot_product_attention"


def case(mask: str = "[8,1,1,192]", lengths: tuple[int, ...] = (192, 192, 192)) -> Case:
    """Steps of 1 ms on a CPU: a product takes 400 µs, attention 400, and the optimizer 100."""
    lines = [HEAD]
    for number, length in enumerate(lengths):
        qkv = f"[8,4,{length},32]"
        rows = [
            f"10  400  aten::addmm  op  -  {PRODUCT}  float",
            f"420  410  {ATTENTION}  op  -  [{qkv},{qkv},{qkv},{mask.replace('192', str(length))},[],[],[],[]]  float",
            f"425  400  aten::_scaled_dot_product_flash_attention_for_cpu  op  -  [{qkv},{qkv},{qkv}]  float",
            "840  120  Optimizer.step#SGD.step  annotation  -  -  -",
            "850  100  aten::addmm  op  -  [[8],[8,8],[8,8]]  float",
        ]
        lines.append(f"main  {1000 * number}  1000  ProfilerStep#{number}  annotation  -  -  -")
        for row in rows:
            start, rest = row.split("  ", 1)
            lines.append(f"main  {1000 * number + int(start)}  {rest}")
    return case_of(compute_trace("\n".join(lines), device={}))


def test_all_ops_but_the_optimizers_shrink_and_attention_by_the_square() -> None:
    made = case()
    found = find(made)
    assert found is not None
    assert found.evidence["length"] == 192
    assert found.share == pytest.approx(0.8, abs=0.02)
    most, least = (0.2 + 0.4 * left + 0.4 * left**2 for left in (0.8, 0.25))
    assert found.speedup.mid == pytest.approx(1 / (least * most) ** 0.5, rel=0.03)
    assert 1.2 < found.speedup.low < found.speedup.mid < found.speedup.high


def test_shared_masks_and_batches_of_their_own_lengths_are_not_padded() -> None:
    assert find(case("[192,192]")) is None
    assert find(case(lengths=(192, 160, 96))) is None
