"""A JAX MLP whose author once asked for the highest precision."""

import os

os.environ.setdefault("JAX_DEFAULT_MATMUL_PRECISION", "highest")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp

on_gpu = jax.default_backend() == "gpu"
width, batch = (4096, 4096) if on_gpu else (128, 32)
keys = jax.random.split(jax.random.PRNGKey(0), 4)
params = [jax.random.normal(key, (width, width)) / width**0.5 for key in keys[:3]]
x = jax.random.normal(keys[3], (batch, width))
y = jnp.roll(x, 1, axis=1)


def loss_of(params, x, y):
    for w in params:
        x = jax.nn.gelu(x @ w)
    return jnp.mean((x - y) ** 2)


@jax.jit
def train_step(params, x, y):
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    return [p - 0.01 * g for p, g in zip(params, grads)], loss


for step in range(100_000):
    params, loss = train_step(params, x, y)
    if step % 20 == 0:
        print(step, float(loss), flush=True)
