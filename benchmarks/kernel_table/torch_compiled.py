"""Kernels that a compiler wrote: Inductor's fusions and templates, and Triton by hand."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch.nn import functional as nnf

from benchmarks.kernel_table.cases import Case, Run
from benchmarks.kernel_table.torch_matmul import DEVICE, FORMATS, randn, under

TEMPLATES = {
    "max_autotune": True,
    "max_autotune_gemm_backends": "TRITON",
    "max_autotune_conv_backends": "TRITON",
}
TILE = 64


@triton.jit
def matmul_kernel(a, b, c, n, tile: tl.constexpr, rounding: tl.constexpr):  # type: ignore[no-untyped-def]
    """One tile of c = a b, all n x n."""
    rows = tl.program_id(0) * tile + tl.arange(0, tile)
    columns = tl.program_id(1) * tile + tl.arange(0, tile)
    inner = tl.arange(0, tile)
    total = tl.zeros((tile, tile), dtype=tl.float32)
    for start in range(0, n, tile):
        left = tl.load(a + rows[:, None] * n + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total, input_precision=rounding)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def scale_kernel(x, y, n, tile: tl.constexpr):  # type: ignore[no-untyped-def]
    """y = 2 x + 1."""
    at = tl.program_id(0) * tile + tl.arange(0, tile)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2 + 1, mask=at < n)


def _by_hand(dtype: torch.dtype, rounding: str) -> Run:
    n = 512
    a, b = randn(n, n, dtype=dtype), randn(n, n, dtype=dtype)
    c = torch.empty(n, n, device=DEVICE, dtype=torch.float32)
    return lambda: matmul_kernel[(n // TILE, n // TILE)](a, b, c, n, TILE, rounding)


def _scaling(dtype: torch.dtype) -> Run:
    x = randn(4096, dtype=dtype)
    y = torch.empty_like(x)
    return lambda: scale_kernel[(4,)](x, y, 4096, 1024)


def _compiled(function: Callable[..., torch.Tensor], inputs: list[torch.Tensor], **options: object) -> Run:
    compiled = torch.compile(function, dynamic=False, options=options or None)
    return lambda: compiled(*inputs)


def _pointwise(name: str) -> Run:
    def block(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nnf.gelu(x) * y + torch.sigmoid(y)

    return _compiled(block, [randn(512, 1024, dtype=FORMATS[name]) for _ in range(2)])


def _reductions(name: str) -> Run:
    def block(x: torch.Tensor) -> torch.Tensor:
        y = nnf.layer_norm(x, x.shape[-1:])
        return torch.softmax(y, -1) + y.sum(0) + y.amax()

    return _compiled(block, [randn(2048, 1024, dtype=FORMATS[name])])


def _loss(name: str) -> Run:
    labels = torch.randint(0, 1000, (256,), device=DEVICE)
    x = randn(256, 1000, dtype=FORMATS[name]).requires_grad_()
    compiled = torch.compile(nnf.cross_entropy, dynamic=False)
    return lambda: compiled(x, labels).backward()


def _template(name: str, kind: str) -> Run:
    dtype = FORMATS[name]
    if kind == "mm":
        inputs = [randn(512, 512, dtype=dtype), randn(512, 512, dtype=dtype)]
        block: Callable[..., torch.Tensor] = lambda a, b: torch.relu(a @ b)  # noqa: E731
    elif kind == "addmm":
        inputs = [randn(512, dtype=dtype), randn(512, 512, dtype=dtype), randn(512, 512, dtype=dtype)]
        block = torch.addmm
    elif kind == "bmm":
        inputs = [randn(8, 256, 128, dtype=dtype), randn(8, 128, 256, dtype=dtype)]
        block = torch.bmm
    else:
        inputs = [randn(8, 64, 28, 28, dtype=dtype), randn(64, 64, 3, 3, dtype=dtype)]
        block = lambda x, w: nnf.conv2d(x, w, padding=1)  # noqa: E731
    run = _compiled(block, inputs, **TEMPLATES)
    return under(name, run)


def _flexible(name: str) -> Run:
    from torch.nn.attention.flex_attention import flex_attention

    q, k, v = (randn(2, 4, 256, 64, dtype=FORMATS[name]).requires_grad_() for _ in range(3))
    compiled = torch.compile(flex_attention, dynamic=False)
    return under(name, lambda: compiled(q, k, v).sum().backward())


def compiled_cases() -> list[Case]:
    """The quick ones first: the templates are tuned, which takes long."""
    cases = [
        Case("triton/bf16", "bf16", lambda: _by_hand(torch.bfloat16, "tf32")),
        Case("triton/fp16", "fp16", lambda: _by_hand(torch.float16, "tf32")),
        Case("triton/tf32", "tf32", lambda: _by_hand(torch.float32, "tf32")),
        Case("triton/fp32", "fp32", lambda: _by_hand(torch.float32, "ieee")),
        Case("triton/fp8", "fp8", lambda: _by_hand(torch.float8_e4m3fn, "tf32")),
        Case("triton/scale/fp32", "fp32", lambda: _scaling(torch.float32)),
        Case("triton/scale/bf16", "bf16", lambda: _scaling(torch.bfloat16)),
    ]
    for name in ("fp32", "bf16", "fp16"):
        cases.append(Case(f"inductor/pointwise/{name}", name, lambda n=name: _pointwise(n)))
        cases.append(Case(f"inductor/reductions/{name}", name, lambda n=name: _reductions(n)))
    cases.append(Case("inductor/loss/fp32", "fp32", lambda: _loss("fp32")))
    cases.append(Case("inductor/flex/bf16", "bf16", lambda: _flexible("bf16")))
    for name in ("bf16", "fp16", "tf32", "fp32"):
        cases.append(Case(f"inductor/mm/{name}", name, lambda n=name: _template(n, "mm")))
    for kind in ("addmm", "bmm", "conv"):
        cases.append(Case(f"inductor/{kind}/bf16", "bf16", lambda k=kind: _template("bf16", k)))
    cases.append(Case("inductor/flex/tf32", "tf32", lambda: _flexible("tf32")))
    return cases
