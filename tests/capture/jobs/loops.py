"""Training loops that know nothing of stepscope, one per function: `loops.py NAME STEPS` runs one and prints its count."""

from __future__ import annotations

import sys
import time
from typing import Any


def torch_parts() -> tuple[Any, Any, Any]:
    import torch

    model = torch.nn.Linear(8, 8)
    data = torch.utils.data.TensorDataset(torch.randn(4096, 8))
    return torch, model, torch.utils.data.DataLoader(data, batch_size=8)


def descent(params: Any) -> Any:
    """An optimizer, where it does not matter which."""
    from tests.capture.jobs.descent import Descent

    return Descent(params)


def loader(steps: int) -> int:
    torch, model, batches = torch_parts()
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for number, (x,) in enumerate(batches):
        if number == steps:
            break
        model(x).sum().backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return steps


class Slow:
    """A dataset whose items take their time."""

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> Any:
        import torch

        return decode(torch.ones(8))


def decode(x: Any) -> Any:
    time.sleep(0.01)
    return x


def workers(steps: int) -> int:
    """A loader with a worker process, which is what the loop waits for."""
    torch, model, _ = torch_parts()
    optimizer = descent(model.parameters())
    for number, x in enumerate(torch.utils.data.DataLoader(Slow(), batch_size=2, num_workers=1)):
        if number == steps:
            break
        model(x).sum().backward()
        optimizer.step()
    return steps


def no_loader(steps: int) -> int:
    torch, model, _ = torch_parts()
    optimizer = descent(model.parameters())
    for _step in range(steps):
        model(torch.randn(8, 8)).sum().backward()
        optimizer.step()
    return steps


def accumulation(steps: int) -> int:
    """Four batches an update, and an evaluation in between."""
    torch, model, batches = torch_parts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, (x,) in enumerate(batches):
        if number == 4 * steps:
            break
        model(x).sum().backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
        if number == 15:
            with torch.no_grad():
                for _, (y,) in zip(range(3), batches, strict=False):
                    model(y)
    return steps


def gan(steps: int, *, has_loader: bool = True, every: int = 1) -> int:
    """A generator and a discriminator, each with an optimizer."""
    torch, model, batches = torch_parts()
    other = torch.nn.Linear(8, 1)
    first, second = descent(other.parameters()), descent(model.parameters())
    source = batches if has_loader else [(torch.randn(8, 8),)] * (steps + 1)
    for number, (x,) in enumerate(source):
        if number == steps:
            break
        other(model(x).detach()).sum().backward()
        first.step()
        if number % every == 0:
            other(model(x)).sum().backward()
            second.step()
    return steps


def gan_no_loader(steps: int) -> int:
    return gan(steps, has_loader=False)


def critic(steps: int) -> int:
    """The discriminator is updated five times as often."""
    return gan(steps, every=5)


def many_optimizers(steps: int) -> int:
    """One for each parameter, and one that wraps another."""
    torch, model, _ = torch_parts()

    class Outer(torch.optim.SGD):  # type: ignore[name-defined]
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    made = [
        kind([part], lr=0.1) for kind, part in zip((Outer, torch.optim.Adam), model.parameters(), strict=True)
    ]
    for _ in range(steps):
        model(torch.randn(8, 8)).sum().backward()
        for optimizer in made:
            optimizer.step()
    return steps


def compiled(steps: int) -> int:
    """The model and the optimizer are compiled, as one graph."""
    torch, model, _ = torch_parts()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True, capturable=False)
    fast = torch.compile(model, backend="eager", fullgraph=True)
    for _ in range(steps):
        fast(torch.randn(8, 8)).sum().backward()
        optimizer.step()
    return steps


def compiled_step(steps: int) -> int:
    """Compiled code does not say that it updates: the batches remain."""
    torch, model, batches = torch_parts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def update() -> None:
        optimizer.step()

    fast = torch.compile(update, backend="eager")
    for number, (x,) in enumerate(batches):
        if number == steps + 64:
            break
        model(x).sum().backward()
        fast()
    return steps


def inference(steps: int) -> int:
    torch, model, batches = torch_parts()
    with torch.no_grad():
        for number, (x,) in enumerate(batches):
            if number == steps:
                break
            model(x)
    return steps


def call(steps: int) -> int:
    """A loop that marks its own steps, two updates each."""
    import stepscope

    torch, model, _ = torch_parts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        for _ in range(2):
            model(torch.randn(8, 8)).sum().backward()
            optimizer.step()
        stepscope.step()
    return steps


def plain_call(steps: int) -> int:
    import stepscope

    for _ in range(steps):
        sum(range(20_000))
        stepscope.step()
    return steps


def own_profiler(steps: int) -> int:
    """The job records itself."""
    import stepscope

    torch, model, _ = torch_parts()
    optimizer = descent(model.parameters())
    with stepscope.profile("own") as prof:
        for _ in range(steps):
            model(torch.randn(8, 8)).sum().backward()
            optimizer.step()
            prof.step()
    return steps


def keras(steps: int) -> int:
    import keras as k

    model = k.Sequential([k.layers.Dense(4), k.layers.Dense(1)])
    model.compile("sgd", "mse")
    ones = k.ops.ones
    model.fit(ones((steps * 4, 8)), ones((steps * 4, 1)), batch_size=4, epochs=1, verbose=0)
    return steps


def tf_data(steps: int) -> int:
    """A loop of one's own over tf.data."""
    import tensorflow as tf

    weights = tf.Variable(tf.ones((8, 8)))
    train = tf.function(lambda x: weights.assign_sub(0.001 * tf.matmul(tf.transpose(x), x)))
    for batch in tf.data.Dataset.from_tensor_slices(tf.ones((steps * 8, 8))).batch(8):
        train(batch)
    return steps


def jax_markers(steps: int) -> int:
    import jax

    train = jax.jit(lambda x: (x @ x).sum())
    x = jax.numpy.ones((64, 64))
    for number in range(steps):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            train(x).block_until_ready()
    return steps


def jax_loader(steps: int) -> int:
    """Batches of PyTorch's loader for a model of JAX."""
    import jax

    _, _, batches = torch_parts()
    train = jax.jit(lambda x: (x @ x.T).sum())
    for number, (x,) in enumerate(batches):
        if number == steps:
            break
        train(x.numpy()).block_until_ready()
    return steps


def forked(steps: int) -> int:
    """Two workers forked from a parent that imported torch."""
    import os

    torch_parts()
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            try:
                no_loader(steps)
            finally:
                sys.exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return steps


if __name__ == "__main__":
    print(globals()[sys.argv[1]](int(sys.argv[2])), flush=True)  # noqa: T201
