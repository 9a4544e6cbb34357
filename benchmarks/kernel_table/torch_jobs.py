"""Small training jobs as people write them: their kernels were not chosen one by one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as nnf

from benchmarks.kernel_table.cases import Case, Run
from benchmarks.kernel_table.torch_matmul import DEVICE, under


class ConvNet(nn.Module):
    """Two residual blocks and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        self.blocks = nn.ModuleList(nn.Conv2d(64, 64, 3, padding=1, bias=False) for _ in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm2d(64) for _ in range(4))
        self.head = nn.Linear(64, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images to logits."""
        x = nnf.max_pool2d(self.stem(x), 3, 2, 1)
        for convolution, norm in zip(self.blocks, self.norms, strict=True):
            x = nnf.relu(norm(convolution(x)) + x)
        return self.head(x.mean((2, 3)))


def _step(net: nn.Module, batch: torch.Tensor, amp: torch.dtype | None, compiled: bool) -> Run:
    net.to(DEVICE)
    model = torch.compile(net, dynamic=False) if compiled else net
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    scaler = torch.amp.GradScaler(DEVICE, enabled=amp == torch.float16)

    def run() -> None:
        with torch.autocast(DEVICE, dtype=amp or torch.bfloat16, enabled=amp is not None):
            loss = model(batch).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    return run


def _images(amp: torch.dtype | None) -> Run:
    return _step(ConvNet(), torch.randn(8, 3, 64, 64, device=DEVICE), amp, False)


def _text(amp: torch.dtype | None, compiled: bool = False) -> Run:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, norm_first=True)
    return _step(layer, torch.randn(8, 128, 256, device=DEVICE), amp, compiled)


def job_cases() -> list[Case]:
    """Mixed formats: the case's own is that of its matrix products."""
    builds: dict[str, tuple[str, Callable[[], Run]]] = {
        "job/images_bf16": ("bf16", lambda: _images(torch.bfloat16)),
        "job/images_tf32": ("tf32", lambda: under("tf32", _images(None))),
        "job/text_fp16": ("fp16", lambda: _text(torch.float16)),
        "job/text_fp32": ("fp32", lambda: under("fp32", _text(None))),
        "job/text_compiled": ("bf16", lambda: _text(torch.bfloat16, compiled=True)),
    }
    return [Case(name, precision, build) for name, (precision, build) in builds.items()]
