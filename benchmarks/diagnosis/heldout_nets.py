"""The networks of the held-out PyTorch jobs: of the kinds that people train, sized by their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.diagnosis import torch_parts

LAST = torch.channels_last


def placed(make: Callable[[], Any], **form: Any) -> Any:
    """A network made on the device: large ones take long to initialise on the host."""
    with torch.device(torch_parts.DEVICE):
        return make().to(**form)


def mixed() -> Any:
    """Mixed precision, as one trains."""
    return torch.autocast(torch_parts.DEVICE, dtype=torch.bfloat16)


def update(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """Backward and update."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def drawn(*shape: int, **form: Any) -> torch.Tensor:
    """Random numbers on the device."""
    return torch.randn(*shape, device=torch_parts.DEVICE, **form)


def labels(count: int, *shape: int) -> torch.Tensor:
    """Random classes or tokens on the device."""
    return torch.randint(count, shape, device=torch_parts.DEVICE)


class Heads(nn.Module):
    """Attention in heads of depth 64, by the library's kernel or written out with a mask."""

    def __init__(self, width: int, causal: bool, written_out: bool, length: int) -> None:
        super().__init__()
        self.count, self.causal, self.written_out = width // 64, causal, written_out
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        if written_out:
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            self.register_buffer("future", future, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """As in many a tutorial."""
        batch, length, width = x.shape
        parts = self.into(x).view(batch, length, 3, self.count, 64).permute(2, 0, 3, 1, 4)
        mixed_values = self.attend(*parts.unbind(0))
        return self.out(mixed_values.transpose(1, 2).reshape(batch, length, width))

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Softmax of the masked scores, times the values."""
        if not self.written_out:
            return functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        scores = (q @ k.transpose(-2, -1)) * 0.125
        scores = scores.masked_fill(self.future, float("-inf"))
        return functional.softmax(scores, dim=-1) @ v


class Layer(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self, width: int, causal: bool, written_out: bool, length: int) -> None:
        super().__init__()
        self.norm_heads, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads = Heads(width, causal, written_out, length)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Both with residuals."""
        x = x + self.heads(self.norm_heads(x))
        return x + self.feed(self.norm_feed(x))


class Language(nn.Module):
    """GPT-like where causal, BERT-like where not."""

    def __init__(
        self,
        width: int,
        depth: int,
        length: int,
        vocabulary: int,
        causal: bool = True,
        written_out: bool = False,
    ) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(Layer(width, causal, written_out, length) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The scores of the vocabulary at each place."""
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        return self.head(self.norm(self.layers(x)))

    def loss(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Cross-entropy over the places."""
        return functional.cross_entropy(self(tokens).flatten(0, 1), targets.flatten())


class Vision(nn.Module):
    """A ViT: patches of 16, transformer layers, mean, classes."""

    def __init__(self, width: int, depth: int, side: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, stride=16)
        self.places = nn.Parameter(torch.zeros((side // 16) ** 2, width))
        self.layers = nn.Sequential(*(Layer(width, False, False, 0) for _ in range(depth)))
        self.head = nn.Linear(width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The classes' scores."""
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.head(self.layers(x).mean(1))


class Residual(nn.Module):
    """A ResNet's basic block."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve, normalise, add."""
        y = functional.relu(self.norms[0](self.first(x)), inplace=True)
        return functional.relu(self.norms[1](self.second(y)) + x, inplace=True)


def resnet(channels: int, blocks: int, classes: int) -> nn.Sequential:
    """A stem of stride 2, basic blocks, mean, classes."""
    stem = (nn.Conv2d(3, channels, 7, 2, 3, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True))
    body = (Residual(channels) for _ in range(blocks))
    return nn.Sequential(*stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Denoiser(nn.Module):
    """A small U-Net of two scales, for diffusion."""

    def __init__(self, channels: int, depth: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 4, 2, 1)
        self.down = nn.Conv2d(channels, 2 * channels, 4, 2, 1)
        middle = [nn.Conv2d(2 * channels, 2 * channels, 3, padding=1) for _ in range(depth)]
        self.middle = nn.ModuleList(middle)
        self.up = nn.Conv2d(2 * channels, channels, 3, padding=1)
        self.merge = nn.Conv2d(2 * channels, channels, 3, padding=1)
        self.leave = nn.Conv2d(channels, 12, 3, padding=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The noise in the images."""
        wide = functional.silu(self.enter(images))
        x = functional.silu(self.down(wide))
        for convolution in self.middle:
            x = functional.silu(convolution(x))
        x = functional.silu(self.up(functional.interpolate(x, scale_factor=2)))
        x = functional.silu(self.merge(torch.cat((x, wide), dim=1)))
        return functional.pixel_shuffle(self.leave(x), 2)

    def loss(self, images: torch.Tensor) -> torch.Tensor:
        """How well the noise is found."""
        noise = torch.randn_like(images)
        return functional.mse_loss(self(0.8 * images + 0.6 * noise), noise)


def tower(enters: int, width: int, depth: int, leaves: int) -> nn.Sequential:
    """Linear layers and GELUs between an entry and an exit."""
    body = (part for _ in range(depth) for part in (nn.Linear(width, width), nn.GELU()))
    return nn.Sequential(nn.Linear(enters, width), nn.GELU(), *body, nn.Linear(width, leaves))
