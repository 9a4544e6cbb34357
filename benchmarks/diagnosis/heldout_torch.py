"""Held-out PyTorch jobs: written without sight of the diagnosis' rules, so that they test and do not tune it."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.diagnosis import heldout_torch_host, torch_parts
from benchmarks.diagnosis.heldout_nets import (
    LAST,
    Denoiser,
    Language,
    drawn,
    labels,
    mixed,
    placed,
    resnet,
    tower,
    update,
)
from benchmarks.diagnosis.job import Job, Step
from benchmarks.diagnosis.torch_parts import fused, pair

BF16 = torch.bfloat16


def bert_precision(
    single: bool, *, batch: int = 24, length: int = 256, width: int = 2048, depth: int = 2
) -> Step:
    """A BERT; planted: trained in fp32."""
    net = placed(lambda: Language(width, depth, length, 8192, causal=False))
    optimizer = fused(net)
    tokens, targets = labels(8192, batch, length), labels(8192, batch, length)

    def step(_: int) -> None:
        with contextlib.nullcontext() if single else mixed():
            loss = net.loss(tokens, targets)
        update(optimizer, loss)

    return step


def gpt_attention(
    written_out: bool, *, batch: int = 4, length: int = 2048, width: int = 1024, depth: int = 3
) -> Step:
    """A GPT; planted: attention written out, with its mask."""
    net = placed(lambda: Language(width, depth, length, 8192, written_out=written_out), dtype=BF16)
    optimizer = fused(net)
    tokens, targets = labels(8192, batch, length), labels(8192, batch, length)

    def step(_: int) -> None:
        update(optimizer, net.loss(tokens, targets))

    return step


def resnet_layout(
    form: torch.memory_format, *, batch: int = 128, side: int = 128, channels: int = 128
) -> Step:
    """A ResNet in mixed precision; planted: channels first."""
    net = placed(lambda: resnet(channels, 4, 1000), memory_format=form)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=True)
    photos = drawn(batch, 3, side, side).contiguous(memory_format=form)
    classes = labels(1000, batch)

    def step(_: int) -> None:
        with mixed():
            loss = functional.cross_entropy(net(photos), classes)
        update(optimizer, loss)

    return step


def gpt_batch(batch: int, *, length: int = 128, width: int = 8192, depth: int = 2) -> Step:
    """Wide GPT layers, fine-tuned on short texts; planted: one text at a time."""
    net = placed(lambda: Language(width, depth, length, 8192), dtype=BF16)
    optimizer = fused(net)
    tokens, targets = labels(8192, batch, length), labels(8192, batch, length)

    def step(_: int) -> None:
        update(optimizer, net.loss(tokens, targets))

    return step


def segmentation_history(kept: bool, *, batch: int = 64, side: int = 256, channels: int = 64) -> Step:
    """A net for segmentation; planted: the scores of every step are kept for a metric at the end."""
    convolutions = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(3))
    body = (part for convolution in convolutions for part in (convolution, nn.ReLU(inplace=True)))
    layers = (nn.Conv2d(3, channels, 3, padding=1), nn.ReLU(inplace=True), *body, nn.Conv2d(channels, 16, 1))
    net = placed(lambda: nn.Sequential(*layers), device=torch_parts.DEVICE, memory_format=LAST)
    optimizer = fused(net)
    photos = drawn(batch, 3, side, side).contiguous(memory_format=LAST)
    classes = labels(16, batch, side, side)
    history: list[torch.Tensor] = []

    def step(_: int) -> None:
        with mixed():
            scores = net(photos)
            loss = functional.cross_entropy(scores, classes)
        update(optimizer, loss)
        history.append(scores if kept else loss.detach())

    return step


class WideNorm(nn.Module):
    """Layer norm over time and features together, as reductions that use the whole device."""

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.zeros(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The same as nn.LayerNorm."""
        spread, mean = torch.var_mean(x, dim=(1, 2), correction=0, keepdim=True)
        return torch.addcmul(self.bias, (x - mean) * torch.rsqrt(spread + 1e-5), self.weight)


class Mixing(nn.Module):
    """A time-series mixer's layer, which normalises over time and features."""

    def __init__(self, length: int, width: int, narrow: bool) -> None:
        super().__init__()
        shape = (length, width)
        self.norm = nn.LayerNorm(shape) if narrow else WideNorm(shape)
        self.features = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """With a residual."""
        return x + functional.gelu(self.features(self.norm(x)))


def forecast_norm(narrow: bool, *, batch: int = 16, length: int = 2048, width: int = 2048) -> Step:
    """A forecast of few long series; planted: a norm that gives each series one block of threads."""
    layers = (Mixing(length, width, narrow) for _ in range(3))
    net = placed(lambda: nn.Sequential(*layers), device=torch_parts.DEVICE, dtype=BF16)
    optimizer = fused(net)
    series, wanted = drawn(2, batch, length, width, dtype=BF16)

    def step(_: int) -> None:
        update(optimizer, functional.mse_loss(net(series), wanted))

    return step


def healthy_gpt(*, batch: int = 8, length: int = 1024, width: int = 1536, depth: int = 2) -> Step:
    """Two micro-batches, clipped gradients, a look at the loss now and then."""
    net = placed(lambda: Language(width, depth, length, 16384), dtype=BF16)
    optimizer = fused(net)
    tokens, targets = labels(16384, 2, batch, length), labels(16384, 2, batch, length)

    def step(number: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        for part in range(2):
            loss = net.loss(tokens[part], targets[part]) / 2
            loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
        optimizer.step()
        if number % 50 == 49:
            print(number, loss.item())

    return step


def healthy_pair(*, batch: int = 2048, width: int = 1024, side: int = 64, channels: int = 128) -> Step:
    """Pictures and their texts: a convolutional tower, a tower of linear layers, one contrastive loss."""
    pictures = placed(lambda: resnet(channels, 2, 512), memory_format=LAST)
    texts = placed(lambda: tower(1024, width, 3, 512))
    optimizer = fused(nn.ModuleList([pictures, texts]))
    photos = drawn(batch, 3, side, side).contiguous(memory_format=LAST)
    words = drawn(batch, 1024)
    same = torch.arange(batch, device=torch_parts.DEVICE)

    def step(_: int) -> None:
        with mixed():
            left = functional.normalize(pictures(photos), dim=-1)
            scores = left @ functional.normalize(texts(words), dim=-1).T * 20
            loss = functional.cross_entropy(scores, same) + functional.cross_entropy(scores.T, same)
        update(optimizer, loss)

    return step


def healthy_diffusion(*, batch: int = 128, side: int = 256, channels: int = 64) -> Step:
    """A diffusion U-Net whose batches are copied ahead, with a moving average of its weights."""
    net: Any = placed(lambda: Denoiser(channels, 4), memory_format=LAST)
    average: Any = placed(lambda: Denoiser(channels, 4), memory_format=LAST)
    optimizer = fused(net)
    batches = [torch.randn(batch, 3, side, side).to(memory_format=LAST) for _ in range(3)]
    source = heldout_torch_host.Ahead(batches)

    def step(number: int) -> None:
        images = source.take(number)
        with mixed():
            loss = net.loss(images)
        update(optimizer, loss)
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(net.parameters()), 0.001)

    return step


def healthy(name: str, build: Any) -> Job:
    """A job without a bottleneck."""
    return Job(f"heldout-torch-healthy-{name}", "", build, build, healthy=True)


JOBS = (
    *heldout_torch_host.JOBS,
    Job("heldout-torch-bert-precision", "fp32-matmul", **pair(bert_precision, True, False)),
    Job("heldout-torch-gpt-attention", "unfused-attention", **pair(gpt_attention, True, False)),
    Job(
        "heldout-torch-resnet-layout",
        "layout-conversion",
        **pair(resnet_layout, torch.contiguous_format, LAST),
    ),
    Job("heldout-torch-gpt-batch", "small-batch", samples=(1, 16), **pair(gpt_batch, 1, 16)),
    Job(
        "heldout-torch-segmentation-history",
        "memory-growth",
        steps=6,
        options={"profile_memory": True},
        **pair(segmentation_history, True, False),
    ),
    Job("heldout-torch-forecast-norm", "low-occupancy", **pair(forecast_norm, True, False)),
    healthy("gpt", healthy_gpt),
    healthy("pair", healthy_pair),
    healthy("diffusion", healthy_diffusion),
)
