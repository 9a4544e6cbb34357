"""Ops whose FLOPs and bytes are compared with counters: at sizes that no cache holds, and small ones that live in the L2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as nnf

from benchmarks.kernel_table.cases import Case, Run

BF16, FP32 = torch.bfloat16, torch.float32
LARGE = (65_536, 4_096)  # 512 MiB in bf16, 1 GiB in fp32: 10 and 20 times the L2 of an H200
SMALL = (1_024, 1_024)
Unary = Callable[[torch.Tensor], Any]

ELEMENTWISE: dict[str, Unary] = {
    "add": lambda x: x + x[:1],
    "gelu": nnf.gelu,
    "relu_": torch.relu_,
    "cast": lambda x: x.to(BF16 if x.dtype is FP32 else FP32),
    "compare": lambda x: x > 0,
}
REDUCTIONS: dict[str, Unary] = {
    "sum": lambda x: x.sum(),
    "mean_rows": lambda x: x.mean(0),
    "softmax": lambda x: torch.softmax(x, -1),
    "layer_norm": lambda x: nnf.layer_norm(x, x.shape[-1:]),
}
COPIES: dict[str, Unary] = {
    "clone": torch.clone,
    "cat": lambda x: torch.cat([x, x]),
    "fill": torch.zeros_like,
}
LAYOUTS: dict[str, Unary] = {"transpose": lambda x: x.t().contiguous()}


def _unary(run: Unary, shape: tuple[int, int], kind: torch.dtype) -> Run:
    data = torch.randn(shape, device="cuda", dtype=kind)
    return lambda: run(data)


def _families() -> list[Case]:
    found = []
    families = {"elementwise": ELEMENTWISE, "reduction": REDUCTIONS, "copy": COPIES, "layout": LAYOUTS}
    for family, runs in families.items():
        for name, run in runs.items():
            for size, shape in (("large", LARGE), ("small", SMALL)):
                for kind in ("bf16", "fp32"):
                    type_ = BF16 if kind == "bf16" else FP32
                    build = lambda run=run, shape=shape, type_=type_: _unary(run, shape, type_)  # noqa: E731
                    found.append(Case(f"{family}/{name}/{kind}/{size}", kind, build))
    return found


def _product(side: int, kind: torch.dtype) -> Run:
    left, right = (torch.randn(side, side, device="cuda", dtype=kind) for _ in range(2))
    return lambda: left @ right


def _linear() -> Run:
    data, weight = (torch.randn(shape, device="cuda", dtype=BF16) for shape in ((8192, 4096), (16_384, 4096)))
    bias = torch.randn(16_384, device="cuda", dtype=BF16)
    return lambda: nnf.linear(data, weight, bias)


def _batched() -> Run:
    left, right = (torch.randn(64, 1024, 1024, device="cuda", dtype=BF16) for _ in range(2))
    return lambda: torch.bmm(left, right)


def _convolution(size: int, kind: torch.dtype, backward: bool) -> Run:
    data = torch.randn(64, size, 56, 56, device="cuda", dtype=kind, requires_grad=backward)
    weight = torch.randn(256, size, 3, 3, device="cuda", dtype=kind, requires_grad=backward)
    data, weight = (
        x.detach().to(memory_format=torch.channels_last).requires_grad_(backward) for x in (data, weight)
    )
    if not backward:
        return lambda: nnf.conv2d(data, weight, padding=1)
    out = nnf.conv2d(data, weight, padding=1)
    grad = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, (data, weight), grad, retain_graph=True)


def _attention(length: int, causal: bool, backward: bool) -> Run:
    query, key, value = (
        torch.randn(2, 16, length, 64, device="cuda", dtype=BF16, requires_grad=backward) for _ in range(3)
    )
    if not backward:
        return lambda: nnf.scaled_dot_product_attention(query, key, value, is_causal=causal)
    out = nnf.scaled_dot_product_attention(query, key, value, is_causal=causal)
    grad = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, (query, key, value), grad, retain_graph=True)


def _embedding(rows: int, asked: int) -> Run:
    table = torch.randn(rows, 1024, device="cuda", dtype=BF16)
    index = torch.randint(0, rows, (asked,), device="cuda")
    return lambda: nnf.embedding(index, table)


def _batch_norm() -> Run:
    data = torch.randn(64, 256, 112, 112, device="cuda", dtype=BF16)
    norm = torch.nn.BatchNorm2d(256).cuda()
    return lambda: norm(data)


def _adam() -> Run:
    weights = [torch.randn(8192, 8192, device="cuda", requires_grad=True) for _ in range(2)]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    optimizer = torch.optim.AdamW(weights, fused=True)
    return lambda: optimizer.step()


def cases() -> list[Case]:
    """All of them; the class that is compared comes first in the name."""
    return [
        Case("matmul/square/bf16/large", "bf16", lambda: _product(8192, BF16)),
        Case("matmul/square/fp32/large", "fp32", lambda: _product(4096, FP32)),
        Case("matmul/square/bf16/small", "bf16", lambda: _product(1024, BF16)),
        Case("matmul/linear/bf16/large", "bf16", _linear),
        Case("matmul/batched/bf16/large", "bf16", _batched),
        Case("convolution/3x3/bf16/large", "bf16", lambda: _convolution(256, BF16, False)),
        Case("convolution/3x3_backward/bf16/large", "bf16", lambda: _convolution(256, BF16, True)),
        Case("attention/plain/bf16/large", "bf16", lambda: _attention(8192, False, False)),
        Case("attention/causal/bf16/large", "bf16", lambda: _attention(8192, True, False)),
        Case("attention/plain_backward/bf16/large", "bf16", lambda: _attention(8192, False, True)),
        Case("attention/causal_backward/bf16/large", "bf16", lambda: _attention(8192, True, True)),
        *_families(),
        Case("norm/batch_norm/bf16/large", "bf16", _batch_norm),
        Case("embedding/large_table/bf16/large", "bf16", lambda: _embedding(500_000, 300_000)),
        Case("embedding/small_table/bf16/small", "bf16", lambda: _embedding(1_000, 4_000)),
        Case("optimizer/adamw_fused/fp32/large", "fp32", _adam),
    ]
