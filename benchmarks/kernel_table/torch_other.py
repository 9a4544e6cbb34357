"""Everything in a training step that is no matrix product: elementwise, reductions, norms, indexing, optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as nnf

from benchmarks.kernel_table.cases import Case, Run
from benchmarks.kernel_table.torch_matmul import DEVICE, FORMATS, randn, under

Unary = Callable[[torch.Tensor], Any]
ELEMENTWISE: dict[str, Unary] = {
    "add": lambda x: x + x,
    "multiply_scalar": lambda x: x * 1.5,
    "fused_multiply": lambda x: torch.addcmul(x, x, x, value=0.5),
    "gelu": nnf.gelu,
    "silu": nnf.silu,
    "relu": nnf.relu,
    "exponential": torch.exp,
    "power": lambda x: x**3,
    "where": lambda x: torch.where(x > 0, x, -x),
    "dropout": lambda x: nnf.dropout(x, 0.1),
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "layer_norm": lambda x: nnf.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: nnf.rms_norm(x, x.shape[-1:]),
    "sum": lambda x: x.sum(),
    "mean_rows": lambda x: x.mean(0),
    "variance": lambda x: x.var(-1),
    "maximum": lambda x: x.max(-1),
    "norm": torch.linalg.vector_norm,
    "cumulative": lambda x: x.cumsum(-1),
}
MOVING: dict[str, Unary] = {
    "transpose": lambda x: x.t().contiguous(),
    "concatenate": lambda x: torch.cat([x, x]),
    "fill": torch.zeros_like,
    "copy": lambda x: x.clone(),
    "cast": lambda x: x.float() if x.dtype != torch.float32 else x.half(),
    "sort": lambda x: x.sort(-1),
    "top_k": lambda x: x.topk(8, -1),
    "gather": lambda x: x.gather(0, torch.zeros(4, x.shape[1], dtype=torch.long, device=DEVICE)),
    "select": lambda x: x[torch.arange(0, 64, 2, device=DEVICE)],
    "nonzero": lambda x: (x > 1).nonzero(),
    "arguments": lambda x: x.argmax(-1),
    "random": lambda x: (torch.randn_like(x), torch.rand_like(x), torch.bernoulli(torch.sigmoid(x))),
    "flip": lambda x: x.flip(0),
    "triangle": torch.tril,
}


def _unary(name: str, run: Unary) -> Run:
    x = randn(512, 1024, dtype=FORMATS[name])
    return lambda: run(x)


def _backward(name: str, run: Unary) -> Run:
    x = randn(512, 1024, dtype=FORMATS[name]).requires_grad_()
    return lambda: run(x).sum().backward()


def _module(name: str, module: nn.Module, *shape: int) -> Run:
    module.to(DEVICE, FORMATS[name])
    x = randn(*shape, dtype=FORMATS[name]).requires_grad_()
    return lambda: module(x).sum().backward()


def _embedding(name: str) -> Run:
    table = nn.Embedding(1000, 256).to(DEVICE, FORMATS[name])
    ids = torch.randint(0, 1000, (16, 128), device=DEVICE)
    return lambda: table(ids).sum().backward()


def _cross_entropy(name: str) -> Run:
    x = randn(256, 1000, dtype=FORMATS[name]).requires_grad_()
    labels = torch.randint(0, 1000, (256,), device=DEVICE)
    return lambda: nnf.cross_entropy(x, labels).backward()


def _scatter(name: str) -> Run:
    x = randn(512, 256, dtype=FORMATS[name])
    rows = torch.randint(0, 64, (512,), device=DEVICE)
    return lambda: torch.zeros(64, 256, device=DEVICE, dtype=x.dtype).index_add_(0, rows, x)


def _optimizer(name: str, kind: type[torch.optim.Optimizer], **options: object) -> Run:
    weights = [nn.Parameter(randn(256, 256, dtype=FORMATS[name])) for _ in range(3)]
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimizer = kind(weights, lr=0.01, **options)
    return lambda: (nn.utils.clip_grad_norm_(weights, 1.0), optimizer.step(), optimizer.zero_grad(False))


def _solver(name: str) -> Run:
    a = randn(128, 128, dtype=FORMATS[name])
    positive = a @ a.t() + 128 * torch.eye(128, device=DEVICE, dtype=FORMATS[name])
    return lambda: (torch.linalg.cholesky(positive), torch.linalg.solve(positive, a))


def _fourier() -> Run:
    x = randn(64, 1024, dtype=torch.float32)
    return lambda: torch.fft.irfft(torch.fft.rfft(x))


def _sparse_rows() -> Run:
    a = randn(256, 256, dtype=torch.float32).relu().to_sparse_csr()
    b = randn(256, 64, dtype=torch.float32)
    return lambda: a @ b


def other_cases() -> list[Case]:
    """All of them."""
    cases = []
    for name in ("fp32", "bf16", "fp16", "fp64"):
        for label, run in ELEMENTWISE.items():
            cases.append(Case(f"elementwise/{name}/{label}", name, lambda n=name, r=run: _unary(n, r)))
        for label, run in MOVING.items():
            cases.append(Case(f"moving/{name}/{label}", name, lambda n=name, r=run: _unary(n, r)))
    for name in ("fp32", "bf16", "fp16"):
        cases += _trained(name)
    cases += [Case(f"solver/{n}", n, lambda n=n: under(n, _solver(n))) for n in ("fp32", "fp64")]
    return [*cases, Case("fourier/fp32", "fp32", _fourier), Case("sparse_rows/fp32", "fp32", _sparse_rows)]


def _trained(name: str) -> list[Case]:
    builds: dict[str, Callable[[], Run]] = {
        "backward/gelu": lambda: _backward(name, nnf.gelu),
        "backward/softmax": lambda: _backward(name, lambda x: torch.softmax(x, -1)),
        "backward/layer_norm": lambda: _module(name, nn.LayerNorm(1024), 256, 1024),
        "backward/batch_norm": lambda: _module(name, nn.BatchNorm2d(32), 8, 32, 28, 28),
        "backward/group_norm": lambda: _module(name, nn.GroupNorm(4, 32), 8, 32, 28, 28),
        "backward/max_pool": lambda: _module(name, nn.MaxPool2d(2), 8, 32, 28, 28),
        "backward/average_pool": lambda: _module(name, nn.AdaptiveAvgPool2d(1), 8, 32, 28, 28),
        "backward/upsample": lambda: _module(
            name, nn.Upsample(scale_factor=2, mode="bilinear"), 4, 8, 28, 28
        ),
        "embedding": lambda: _embedding(name),
        "cross_entropy": lambda: _cross_entropy(name),
        "scatter": lambda: _scatter(name),
        "optimizer/sgd_foreach": lambda: _optimizer(name, torch.optim.SGD, momentum=0.9, foreach=True),
        "optimizer/adam_foreach": lambda: _optimizer(name, torch.optim.Adam, foreach=True),
        "optimizer/adam_fused": lambda: _optimizer(name, torch.optim.Adam, fused=True),
        "optimizer/adam_loop": lambda: _optimizer(name, torch.optim.AdamW, foreach=False),
    }
    return [Case(f"{label}/{name}", name, build) for label, build in builds.items()]
