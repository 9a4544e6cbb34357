"""PyTorch's jobs in which the device does more than it must, or memory runs out."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.diagnosis.job import Job, Step
from benchmarks.diagnosis.torch_parts import (
    DEVICE,
    Attention,
    busy_step,
    convolutions,
    fused,
    mlp,
    pair,
    plain_step,
    repeated,
)


def _precision_step(tf32: bool) -> Step:
    net = mlp(4096, 4)
    optimizer = fused(net)
    batch = torch.randn(4096, 4096, device=DEVICE)

    def step(_: int) -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        plain_step(net, optimizer, batch, None)

    return step


def _convolution_step(tf32: bool) -> Step:
    net = convolutions(256, 4, torch.channels_last)
    optimizer = fused(net)
    batch = torch.randn(128, 256, 32, 32, device=DEVICE).to(memory_format=torch.channels_last)

    def step(_: int) -> None:
        torch.backends.cudnn.allow_tf32 = tf32
        plain_step(net, optimizer, batch, None)

    return step


def _copy_step(ahead: bool) -> Step:
    compute = busy_step()
    source = torch.randn(8192, 4096).pin_memory()
    side = torch.cuda.Stream()
    held: list[torch.Tensor] = [source.to(DEVICE)]

    def slow(_: int) -> None:
        compute(source.to(DEVICE, non_blocking=True))

    def mended(_: int) -> None:
        torch.cuda.current_stream().wait_stream(side)
        batch = held[0]
        batch.record_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            held[0] = source.to(DEVICE, non_blocking=True)
        compute(batch)

    return mended if ahead else slow


def _pageable_step(ahead: bool) -> Step:
    compute = busy_step()
    source = torch.randn(4096, 4096)
    pinned = source.pin_memory()
    side = torch.cuda.Stream()
    held: list[torch.Tensor] = [source.to(DEVICE)]

    def slow(_: int) -> None:
        compute(source.to(DEVICE).repeat(2, 1))

    def mended(_: int) -> None:
        torch.cuda.current_stream().wait_stream(side)
        batch = held[0]
        batch.record_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            held[0] = pinned.to(DEVICE, non_blocking=True)
        compute(batch.repeat(2, 1))

    return mended if ahead else slow


def _attention_step(is_fused: bool) -> Step:
    net = nn.Sequential(*(Attention(is_fused) for _ in range(4))).to(DEVICE)
    optimizer = fused(net)
    batch = torch.randn(8, 2048, 1024, device=DEVICE)
    return repeated(net, optimizer, batch)


def _attention_short_step(is_fused: bool) -> Step:
    net = nn.Sequential(*(Attention(is_fused, 2048) for _ in range(4))).to(DEVICE)
    optimizer = fused(net)
    batch = torch.randn(32, 512, 2048, device=DEVICE)
    return repeated(net, optimizer, batch)


def _layout_step(channels_last: bool) -> Step:
    form = torch.channels_last if channels_last else torch.contiguous_format
    net = convolutions(128, 6, form)
    optimizer = fused(net)
    batch = torch.randn(256, 128, 56, 56, device=DEVICE).to(memory_format=form)
    return repeated(net, optimizer, batch, torch.float16)


def _batch_step(size: int) -> Step:
    net = mlp(16384, 4).to(torch.bfloat16)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
    batch = torch.randn(size, 16384, device=DEVICE, dtype=torch.bfloat16)
    return repeated(net, optimizer, batch, None)


def _leak_step(leaking: bool) -> Step:
    net = mlp(4096, 4)
    optimizer = fused(net)
    batch = torch.randn(8192, 4096, device=DEVICE)
    history: list[torch.Tensor] = []

    def step(_: int) -> None:
        loss = plain_step(net, optimizer, batch)
        history.append(batch + loss if leaking else loss.detach())

    return step


def _pressure_step(full: bool) -> Step:
    compute = busy_step()
    free, total = torch.cuda.mem_get_info()
    kept = torch.empty(free - total // 20 if full else 1024, dtype=torch.uint8, device=DEVICE)

    def step(_: int) -> None:
        compute(None)
        kept[:1024].zero_()

    return step


def _round_trip_step(on: bool) -> Step:
    compute = busy_step()
    batch = torch.randn(4096, 4096, device=DEVICE)

    def step(_: int) -> None:
        x = batch * 2
        x = x.cpu().clamp(-1, 1).to(DEVICE) if on else x.clamp(-1, 1)
        compute(x.repeat(2, 1))

    return step


def _fallback_step(on: bool) -> Step:
    compute = busy_step()
    scores = torch.randn(1 << 20, device=DEVICE)

    def step(_: int) -> None:
        order = (scores.cpu() if on else scores).sort().indices
        compute(None)
        scores.add_(order.to(DEVICE)[:1].float() * 1e-9)

    return step


def _few_blocks_step(blocks: int) -> Step:
    from benchmarks.diagnosis.triton_kernel import scaled

    compute = busy_step()
    data = torch.randn(1 << 24, device=DEVICE)

    def step(_: int) -> None:
        scaled(data, blocks)
        compute(None)

    return step


DEVICE_JOBS = (
    Job("torch_fp32_matmul", "fp32-matmul", **pair(_precision_step, False, True)),
    Job("torch_fp32_convolution", "fp32-matmul", **pair(_convolution_step, False, True)),
    Job("torch_copy", "exposed-copy", **pair(_copy_step, False, True)),
    Job("torch_pageable", "exposed-copy", **pair(_pageable_step, False, True)),
    Job("torch_attention", "unfused-attention", **pair(_attention_step, False, True)),
    Job("torch_attention_short", "unfused-attention", **pair(_attention_short_step, False, True)),
    Job("torch_layout", "layout-conversion", **pair(_layout_step, False, True)),
    Job("torch_small_batch", "small-batch", **pair(_batch_step, 8, 64), samples=(8, 64)),
    Job("torch_leak", "memory-growth", **pair(_leak_step, True, False), options={"profile_memory": True}),
    Job(
        "torch_pressure",
        "memory-pressure",
        **pair(_pressure_step, True, False),
        options={"profile_memory": True},
    ),
    Job("torch_round_trip", "round-trip-copy", **pair(_round_trip_step, True, False)),
    Job("torch_fallback", "cpu-fallback", **pair(_fallback_step, True, False)),
    Job("torch_few_blocks", "low-occupancy", **pair(_few_blocks_step, 2, 1056)),
)
