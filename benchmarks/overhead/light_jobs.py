"""Small jobs for the light window: bound by the host, by the device, and by waits for it. Each makes a step to be called again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Step = Callable[[], object]


def _trained(model: Any, x: Any) -> Step:
    import torch

    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        model(x).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def tiny_layers() -> Step:
    """Host-bound: a hundred layers that take microseconds."""
    from torch import nn, randn

    return _trained(
        nn.Sequential(*(nn.Linear(128, 128) for _ in range(100))).cuda(), randn(32, 128, device="cuda")
    )


def cell_loop() -> Step:
    """Host-bound: an LSTM cell called for each token."""
    from torch import nn, randn

    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTMCell(256, 256)

        def forward(self, x: Any) -> Any:
            state = None
            for token in x:
                state = self.cell(token, state)
            return state[0]  # type: ignore[index]

    return _trained(Loop().cuda(), randn(64, 16, 256, device="cuda"))


def elementwise() -> Step:
    """Host-bound: small elementwise ops, no gradient."""
    import torch

    x = torch.randn(64, 64, device="cuda")

    def step() -> None:
        y = x
        for _ in range(300):
            y = torch.sin(y) * 0.5 + x

    return step


def reads_loss() -> Step:
    """Waits: a scalar is read after every layer."""
    import torch

    layers = [torch.nn.Linear(512, 512).cuda() for _ in range(30)]
    x = torch.randn(256, 512, device="cuda")

    def step() -> float:
        y, total = x, 0.0
        for layer in layers:
            y = layer(y)
            total += y.mean().item()
        return total

    return step


def transformer() -> Step:
    """Device-bound: encoder layers in bf16."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 8).cuda().bfloat16()
    return _trained(model, torch.randn(16, 1024, 1024, device="cuda", dtype=torch.bfloat16))


def convolutions() -> Step:
    """Device-bound: convolutions in fp32."""
    from torch import nn, randn

    layers = [
        nn.Sequential(nn.Conv2d(128, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU()) for _ in range(12)
    ]
    return _trained(nn.Sequential(*layers).cuda(), randn(64, 128, 56, 56, device="cuda"))


def pageable_copies() -> Step:
    """Copies: a batch from pageable memory in each step."""
    import torch

    model = torch.nn.Linear(4096, 4096).cuda()
    batch = torch.randn(4096, 4096)
    train = _trained(model, torch.randn(64, 4096, device="cuda"))

    def step() -> None:
        batch.to("cuda")
        train()

    return step


def jax_small() -> Step:
    """Host-bound: a small compiled program, waited for."""
    import jax
    import jax.numpy as jnp

    f = jax.jit(lambda x: jnp.tanh(x @ x).sum())
    x = jnp.ones((256, 256))
    return lambda: f(x).block_until_ready()


def jax_many() -> Step:
    """Host-bound: fifty small programs, one after another."""
    import jax
    import jax.numpy as jnp

    f = jax.jit(lambda x: jnp.tanh(x) * 0.5)
    x = jnp.ones((256, 256))

    def step() -> Any:
        y = x
        for _ in range(50):
            y = f(y)
        return y.block_until_ready()

    return step


def jax_matmuls() -> Step:
    """Device-bound: large products in bf16."""
    import jax
    import jax.numpy as jnp

    def chain(x: Any) -> Any:
        for _ in range(20):
            x = jnp.tanh(x @ x)
        return x

    f = jax.jit(chain)
    x = jnp.ones((4096, 4096), dtype=jnp.bfloat16)
    return lambda: f(x).block_until_ready()


JOBS: dict[str, tuple[Callable[[], Step], ...]] = {
    "torch": (tiny_layers, cell_loop, elementwise, reads_loss, transformer, convolutions, pageable_copies),
    "jax": (jax_small, jax_many, jax_matmuls),
}
