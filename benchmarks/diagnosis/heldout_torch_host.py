"""Held-out PyTorch jobs whose bottleneck is on the host's side: input, Python, waiting, copying, launching."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from benchmarks.diagnosis import torch_parts
from benchmarks.diagnosis.heldout_nets import (
    LAST,
    Denoiser,
    Language,
    Vision,
    drawn,
    labels,
    mixed,
    placed,
    resnet,
    tower,
    update,
)
from benchmarks.diagnosis.job import Job, Step
from benchmarks.diagnosis.torch_parts import captured, fused, pair

BF16 = torch.bfloat16


class Photos(Dataset[Any]):
    """Photos in memory, augmented with NumPy as they are asked for."""

    def __init__(self, side: int, count: int = 1 << 20) -> None:
        self.count, self.side = count, side
        self.stored = np.random.default_rng(0).integers(0, 256, (64, side + 32, side + 32, 3), dtype=np.uint8)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Crop, flip, brightness, contrast, noise: bytes again, since the device normalises."""
        draw = np.random.default_rng(index)
        top, left = draw.integers(0, 32, 2)
        photo = self.stored[index % 64, top : top + self.side, left : left + self.side].astype(np.float32)
        if draw.random() < 0.5:
            photo = photo[:, ::-1]
        photo = (photo - photo.mean()) * draw.uniform(0.8, 1.2) + 128 * draw.uniform(0.8, 1.2)
        photo += 4 * draw.standard_normal(photo.shape, dtype=np.float32)
        pixels = np.ascontiguousarray(photo.clip(0, 255).astype(np.uint8).transpose(2, 0, 1))
        return torch.from_numpy(pixels), index % 1000


def resnet_loader(
    workers: int, *, batch: int = 48, side: int = 128, channels: int = 256, pin: bool = True
) -> Step:
    """A ResNet on photos; planted: the training process itself augments them."""
    net = placed(lambda: resnet(channels, 4, 1000), memory_format=LAST)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=True)
    loader = DataLoader(Photos(side), batch, num_workers=workers, pin_memory=pin)
    batches = iter(loader)

    def step(_: int) -> None:
        photos, classes = (part.to(torch_parts.DEVICE, non_blocking=True) for part in next(batches))
        photos = photos.float().div_(255).contiguous(memory_format=LAST)
        with mixed():
            loss = functional.cross_entropy(net(photos), classes)
        update(optimizer, loss)

    return step


def advantages_in_python(rewards: list[list[float]], values: list[list[float]]) -> torch.Tensor:
    """Generalised advantages, number by number."""
    rows, count = len(rewards), len(rewards[0])
    found = [[0.0] * count for _ in range(rows)]
    for actor in range(count):
        running, following = 0.0, 0.0
        for moment in range(rows - 1, -1, -1):
            value = values[moment][actor]
            running = rewards[moment][actor] + 0.99 * following - value + 0.9405 * running
            found[moment][actor] = running
            following = value
    return torch.tensor(found, dtype=torch.float32)


def advantages_in_numpy(rewards: Any, values: Any) -> torch.Tensor:
    """Generalised advantages, all actors at once."""
    found = np.empty_like(rewards)
    running = following = np.zeros_like(rewards[0])
    for moment in range(len(rewards) - 1, -1, -1):
        running = rewards[moment] + 0.99 * following - values[moment] + 0.9405 * running
        found[moment] = running
        following = values[moment]
    return torch.from_numpy(found)


def policy_update(in_python: bool, *, actors: int = 512, moments: int = 128, width: int = 2048) -> Step:
    """A policy's update from a roll-out; planted: advantages in loops of Python."""
    actor_critic = placed(lambda: tower(256, width, 2, 24))
    optimizer = fused(actor_critic)
    seen, taken = drawn(moments * actors, 256), labels(16, moments * actors, 1)
    draw = np.random.default_rng(0)
    rewards, values = draw.random((2, moments, actors), dtype=np.float32)
    rolled = (rewards.tolist(), values.tolist()) if in_python else (rewards, values)
    advantages = advantages_in_python if in_python else advantages_in_numpy

    def step(_: int) -> None:
        gains = advantages(*rolled).flatten().pin_memory().to(torch_parts.DEVICE, non_blocking=True)
        with mixed():
            out = actor_critic(seen).float()
        chances = functional.log_softmax(out[:, :16], dim=-1).gather(1, taken).squeeze(1)
        update(optimizer, (out[:, 16] - gains).square().mean() - (chances * gains).mean())

    return step


def gpt_norms(look: bool, *, batch: int = 6, length: int = 1024, width: int = 2048, depth: int = 3) -> Step:
    """A GPT that logs the norms of each parameter and its gradient; planted: as Python's numbers."""
    net = placed(lambda: Language(width, depth, length, 8192), dtype=BF16)
    optimizer = fused(net)
    tokens, targets = labels(8192, batch, length), labels(8192, batch, length)
    log: dict[str, Any] = {}

    def step(_: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        net.loss(tokens, targets).backward()
        for name, parameter in net.named_parameters():
            of_gradient, of_weight = parameter.grad.norm(), parameter.detach().norm()
            log[f"gradient/{name}"] = of_gradient.item() if look else of_gradient
            log[f"weight/{name}"] = of_weight.item() if look else of_weight
        optimizer.step()

    return step


def unrolled_cells(graphed: bool, *, batch: int = 128, width: int = 256, moments: int = 16) -> Step:
    """An LSTM cell unrolled by hand, small; the fix is one CUDA graph."""
    cell = placed(lambda: nn.LSTMCell(64, width), dtype=BF16)
    head = placed(lambda: nn.Linear(width, 1), dtype=BF16)
    parameters = [*cell.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, fused=True, capturable=torch_parts.DEVICE == "cuda")
    series, wanted = drawn(moments, batch, 64, dtype=BF16), drawn(batch, 1, dtype=BF16)
    blank = torch.zeros(batch, width, device=torch_parts.DEVICE, dtype=BF16)

    def step(_: int) -> None:
        hidden, memory = blank, blank
        for moment in range(moments):
            hidden, memory = cell(series[moment], (hidden, memory))
        update(optimizer, functional.mse_loss(head(hidden), wanted))

    return captured(step) if graphed else step


class Ahead:
    """Batches that a second stream copies while the device computes on the one before."""

    def __init__(self, batches: list[torch.Tensor]) -> None:
        self.batches = [batch.pin_memory() for batch in batches]
        self.stream = torch.cuda.Stream()
        self.ready = self.copied(0)

    def copied(self, number: int) -> torch.Tensor:
        """The batch, on its way."""
        with torch.cuda.stream(self.stream):
            return self.batches[number % len(self.batches)].to(torch_parts.DEVICE, non_blocking=True)

    def take(self, number: int) -> torch.Tensor:
        """The batch that was sent for, and the next one is sent for."""
        here = torch.cuda.current_stream()
        here.wait_stream(self.stream)
        batch = self.ready
        batch.record_stream(here)
        self.ready = self.copied(number + 1)
        return batch


def diffusion_copies(ahead: bool, *, batch: int = 128, side: int = 256, channels: int = 64) -> Step:
    """A diffusion U-Net; planted: each batch is copied from pageable memory when it is needed."""
    net = placed(lambda: Denoiser(channels, 3), memory_format=LAST)
    optimizer = fused(net)
    batches = [torch.randn(batch, 3, side, side).to(memory_format=LAST) for _ in range(3)]
    source = Ahead(batches) if ahead else None

    def step(number: int) -> None:
        images = source.take(number) if source else batches[number % 3].to(torch_parts.DEVICE)
        with mixed():
            loss = net.loss(images)
        update(optimizer, loss)

    return step


def contrastive_keys(through_host: bool, *, images: int = 32, places: int = 1024, width: int = 2048) -> Step:
    """Dense contrastive learning with a momentum encoder; planted: its keys go through the host."""
    asking = placed(lambda: tower(768, width, 3, 1024), dtype=BF16)
    answering = placed(lambda: tower(768, width, 3, 1024), dtype=BF16)
    optimizer = fused(asking)
    first, second = drawn(2, images, places, 768, dtype=BF16)
    same = torch.arange(places, device=torch_parts.DEVICE).repeat(images)

    def step(_: int) -> None:
        with torch.no_grad():
            keys = functional.normalize(answering(second), dim=-1)
            if through_host:
                keys = keys.cpu().to(torch_parts.DEVICE)
        scores = functional.normalize(asking(first), dim=-1) @ keys.transpose(1, 2) * 5
        update(optimizer, functional.cross_entropy(scores.flatten(0, 1), same))
        with torch.no_grad():
            torch._foreach_lerp_(list(answering.parameters()), list(asking.parameters()), 0.01)

    return step


def recommender_table(
    table_on: str | None, *, batch: int = 16384, rows: int = 50_000, width: int = 4096
) -> Step:
    """Pooled embeddings and an MLP; planted: the table, its gradient and its update stay on the CPU."""
    place = table_on or torch_parts.DEVICE
    table = nn.EmbeddingBag(rows, 64, mode="sum").to(place)
    net = placed(lambda: tower(1024, width, 1, 1))
    optimizers = (torch.optim.SGD(table.parameters(), lr=0.01, fused=True), fused(net))
    clicks, known = torch.randint(rows, (batch, 20), device=place), drawn(batch, 960)
    bought = labels(2, batch, 1).float()

    def step(_: int) -> None:
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        pooled = table(clicks).to(torch_parts.DEVICE)
        with mixed():
            scores = net(torch.cat((pooled, known), dim=1))
        functional.binary_cross_entropy_with_logits(scores.float(), bought).backward()
        for optimizer in optimizers:
            optimizer.step()

    return step


def vit_optimizer(
    looped: bool, *, batch: int = 36, side: int = 256, width: int = 1024, depth: int = 3
) -> Step:
    """A ViT; planted: AdamW updates one parameter after the other."""
    net = placed(lambda: Vision(width, depth, side, 1000), dtype=BF16)
    kind = {"foreach": False, "fused": False} if looped else {"fused": True}
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.05, **kind)
    images, classes = drawn(batch, 3, side, side, dtype=BF16), labels(1000, batch)

    def step(_: int) -> None:
        update(optimizer, functional.cross_entropy(net(images), classes))

    return step


JOBS = (
    Job("heldout-torch-resnet-loader", "input-bound", **pair(resnet_loader, 0, 8)),
    Job("heldout-torch-policy-advantages", "host-python", **pair(policy_update, True, False)),
    Job("heldout-torch-gpt-norms", "device-sync", **pair(gpt_norms, True, False)),
    Job("heldout-torch-lstm-cells", "launch-bound", **pair(unrolled_cells, False, True)),
    Job("heldout-torch-diffusion-copies", "exposed-copy", **pair(diffusion_copies, False, True)),
    Job("heldout-torch-contrastive-keys", "round-trip-copy", **pair(contrastive_keys, True, False)),
    Job("heldout-torch-recommender-table", "cpu-fallback", **pair(recommender_table, "cpu", None)),
    Job("heldout-torch-vit-optimizer", "optimizer-loop", steps=3, **pair(vit_optimizer, True, False)),
)
