"""Jobs of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.diff.cpu_jobs.job import Job, Parts, Step, repeat


def _train(optimizer: Any, loss_of: Callable[[Any], Any], *, looks: bool = False) -> Step:
    """The usual step; `looks`: at the value of its loss."""

    def step(batch: Any) -> object:
        optimizer.zero_grad()
        loss = loss_of(batch)
        loss.backward()
        optimizer.step()
        return loss.item() if looks else loss

    return step


def _cnn(batch: int) -> Parts:
    """Convolutions over images that a DataLoader makes."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    pictures = TensorDataset(torch.randn(4096, 3, 32, 32), torch.randint(0, 10, (4096,)))
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 64, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    step = _train(optimizer, lambda each: nn.functional.cross_entropy(net(each[0]), each[1]))
    return step, iter(DataLoader(pictures, batch, shuffle=True, num_workers=1))


def _lstm(batch: int) -> Parts:
    """A recurrent net over sequences."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    net, head = nn.LSTM(64, 128, num_layers=2, batch_first=True), nn.Linear(128, 1)
    optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()])
    step = _train(optimizer, lambda each: (head(net(each)[0]) - 1).square().mean(), looks=True)
    return step, repeat(lambda: torch.randn(batch, 24, 64))


def _attention(batch: int) -> Parts:
    """An encoder in bf16."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(96, 4, 192, batch_first=True)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def loss_of(each: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return net(each).float().square().mean()

    return _train(torch.optim.AdamW(net.parameters()), loss_of), repeat(lambda: torch.randn(batch, 32, 96))


def _lookup(batch: int) -> Parts:
    """Embeddings and a net over them, as for recommendations."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    tables = nn.ModuleList(nn.EmbeddingBag(20_000, 32, mode="sum") for _ in range(6))
    net = nn.Sequential(nn.Linear(192, 256), nn.ReLU(), nn.Linear(256, 1))

    def loss_of(each: Any) -> Any:
        found = torch.cat([table(each[:, place]) for place, table in enumerate(tables)], 1)
        return nn.functional.softplus(net(found)).mean()

    optimizer = torch.optim.Adagrad([*tables.parameters(), *net.parameters()])
    return _train(optimizer, loss_of), repeat(lambda: torch.randint(0, 20_000, (batch, 6, 8)))


def _denoiser(batch: int) -> Parts:
    """Convolutions over signals; looks at the loss of each step."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv1d(1, 32, 9, padding=4), nn.GroupNorm(4, 32), nn.SiLU(),
        nn.Conv1d(32, 32, 9, padding=4), nn.GroupNorm(4, 32), nn.SiLU(), nn.Conv1d(32, 1, 9, padding=4),
    )  # fmt: skip

    def loss_of(each: Any) -> Any:
        return nn.functional.l1_loss(net(each + 0.1 * torch.randn_like(each)), each)

    step = _train(torch.optim.RMSprop(net.parameters()), loss_of, looks=True)
    return step, repeat(lambda: torch.randn(batch, 1, 512))


def _actors(batch: int) -> Parts:
    """Two small nets that are trained in turn, as in reinforcement learning."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    nets = [
        nn.Sequential(nn.Linear(24, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        for _ in range(2)
    ]
    optimizers = [torch.optim.Adam(net.parameters(), foreach=False) for net in nets]

    def distance(net: Any, value: Any, each: Any) -> Any:
        return ((net(each) - value) ** 2).mean()

    def step(each: Any) -> object:
        with torch.no_grad():
            value = nets[1](each)
        for net, optimizer in zip(nets, optimizers, strict=True):
            _train(optimizer, partial(distance, net, value))(each)
        return value

    return step, repeat(lambda: torch.randn(batch, 24))


def _generator(batch: int) -> Parts:
    """Two nets against each other."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    maker = nn.Sequential(nn.Linear(16, 128), nn.LeakyReLU(), nn.Linear(128, 256))
    judge = nn.Sequential(nn.Linear(256, 128), nn.LeakyReLU(), nn.Linear(128, 1))
    optimizers = [torch.optim.Adam(net.parameters()) for net in (maker, judge)]

    def step(real: Any) -> object:
        fake = maker(torch.randn(real.shape[0], 16))
        for turn in (1, 0):
            loss = judge(fake.detach()).mean() - judge(real).mean() if turn else -judge(fake).mean()
            optimizers[turn].zero_grad()
            loss.backward()
            optimizers[turn].step()
        return fake

    return step, repeat(lambda: torch.randn(batch, 256))


def _graph(batch: int) -> Parts:
    """Messages along the edges of a graph: gather and scatter."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer, head = nn.Linear(32, 32), nn.Linear(32, 1)
    edges = torch.randint(0, 2_000, (2, 8_000))

    def loss_of(nodes: Any) -> Any:
        for _ in range(2):
            sent = torch.relu(layer(nodes))[edges[0]]
            nodes = nodes + torch.zeros_like(nodes).index_add(0, edges[1], sent)
        return head(nodes).square().mean()

    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
    return _train(optimizer, loss_of, looks=True), repeat(lambda: torch.randn(max(2_000, batch), 32))


JOBS: dict[str, tuple[Job, int]] = {
    "torch_cnn": (_cnn, 64),
    "torch_lstm": (_lstm, 32),
    "torch_attention": (_attention, 16),
    "torch_lookup": (_lookup, 256),
    "torch_denoiser": (_denoiser, 16),
    "torch_actors": (_actors, 128),
    "torch_generator": (_generator, 64),
    "torch_graph": (_graph, 2_000),
}
