"""Convolutions, recurrent cells and attention of PyTorch, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as nnf
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.kernel_table.cases import Case, Run
from benchmarks.kernel_table.torch_matmul import DEVICE, FORMATS, randn, under

Layer = Callable[[], tuple[nn.Module, tuple[int, ...]]]
CONVOLUTIONS: dict[str, Layer] = {
    "3x3": lambda: (nn.Conv2d(64, 128, 3, padding=1, bias=False), (16, 64, 56, 56)),
    "1x1": lambda: (nn.Conv2d(64, 256, 1, bias=False), (16, 64, 28, 28)),
    "7x7_rgb": lambda: (nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), (8, 3, 112, 112)),
    "strided": lambda: (nn.Conv2d(128, 256, 3, stride=2, padding=1), (8, 128, 28, 28)),
    "odd": lambda: (nn.Conv2d(31, 33, 3, padding=1), (4, 31, 17, 19)),
    "grouped": lambda: (nn.Conv2d(128, 128, 3, padding=1, groups=8), (8, 128, 28, 28)),
    "depthwise": lambda: (nn.Conv2d(128, 128, 3, padding=1, groups=128), (8, 128, 28, 28)),
    "1d": lambda: (nn.Conv1d(64, 128, 5, padding=2), (8, 64, 512)),
    "3d": lambda: (nn.Conv3d(16, 32, 3, padding=1), (2, 16, 16, 28, 28)),
    "transposed": lambda: (nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1), (8, 64, 28, 28)),
}
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}


def _convolution(name: str, layer: Layer, channels_last: bool) -> Run:
    module, shape = layer()
    module.to(DEVICE, FORMATS[name])
    x = randn(*shape, dtype=FORMATS[name])
    if channels_last and x.dim() == 4:
        module.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    x.requires_grad_()
    return under(name, lambda: module(x).sum().backward())


def _recurrent(name: str, kind: type[nn.LSTM] | type[nn.GRU]) -> Run:
    module = kind(128, 256, num_layers=1).to(DEVICE, FORMATS[name])
    x = randn(16, 32, 128, dtype=FORMATS[name]).requires_grad_()
    return under(name, lambda: module(x)[0].sum().backward())


def _attention(name: str, backend: SDPBackend, width: int, causal: bool, masked: bool = False) -> Run:
    q, k, v = (randn(2, 8, 256, width, dtype=FORMATS[name]).requires_grad_() for _ in range(3))
    mask = torch.zeros(256, 256, device=DEVICE, dtype=FORMATS[name]) if masked else None

    def run() -> None:
        with sdpa_kernel([backend]):
            out = nnf.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        out.backward(torch.ones_like(out))

    return under(name, run)


def convolution_cases() -> list[Case]:
    """Each layer in four formats, in the default layout and channels last."""
    cases = []
    for name in ("fp32", "tf32", "bf16", "fp16"):
        for kind, layer in CONVOLUTIONS.items():
            for last in (False,) if kind in ("1d", "3d") else (False, True):
                label = f"conv/{name}/{kind}{'/last' if last else ''}"
                cases.append(Case(label, name, lambda n=name, y=layer, z=last: _convolution(n, y, z)))
    cases.append(Case("conv/fp64/3x3", "fp64", lambda: _convolution("fp64", CONVOLUTIONS["3x3"], False)))
    for name in ("fp32", "tf32", "bf16", "fp16"):
        cases.append(Case(f"lstm/{name}", name, lambda n=name: _recurrent(n, nn.LSTM)))
    cases.append(Case("gru/fp16", "fp16", lambda: _recurrent("fp16", nn.GRU)))
    return cases


def attention_cases() -> list[Case]:
    """Each backend in the formats that it takes."""
    cases = []
    for label, backend in BACKENDS.items():
        for name in ("bf16", "fp16", "fp32", "tf32"):
            if name in ("fp32", "tf32") and label in ("flash", "cudnn"):
                continue
            for width, causal in ((64, False), (128, True)):
                case = f"attention/{label}/{name}/{width}{'/causal' if causal else ''}"
                build = lambda n=name, b=backend, w=width, c=causal: _attention(n, b, w, c)  # noqa: E731
                cases.append(Case(case, name, build))
    efficient = SDPBackend.EFFICIENT_ATTENTION
    masked = lambda: _attention("bf16", efficient, 64, False, masked=True)  # noqa: E731
    return [*cases, Case("attention/efficient/bf16/masked", "bf16", masked)]
