"""Runs JAX's cases once each under `ncu`; XLA's flags come from the environment.

python -m benchmarks.kernel_table.run_jax OUT NAME [--only REGEX]
"""

from __future__ import annotations

import argparse
import base64
import gc
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp

from benchmarks.kernel_table.cases import Case, Run, run_all
from benchmarks.kernel_table.core import JAX, core

FORMATS = {"bf16": jnp.bfloat16, "fp16": jnp.float16, "tf32": jnp.float32, "fp32": jnp.float32}


def _randn(*shape: int, dtype: object) -> jax.Array:
    return jax.random.normal(jax.random.key(0), shape, dtype=jnp.float32).astype(dtype)


@dataclass(frozen=True)
class Compiled:
    """A compiled function with its inputs."""

    function: Any
    inputs: tuple[jax.Array, ...]

    def __call__(self) -> object:
        """Run it, and wait for the result."""
        return jax.block_until_ready(self.function(*self.inputs))


def _jitted(function: Callable[..., object], *inputs: jax.Array, precision: str = "") -> Run:
    wanted = {"tf32": "tensorfloat32", "fp32": "highest"}.get(precision)
    with jax.default_matmul_precision(wanted or "default"):
        compiled = jax.jit(function).lower(*inputs).compile()

    return Compiled(compiled, inputs)


def _product(name: str, m: int, n: int, k: int) -> Run:
    a, b = _randn(m, k, dtype=FORMATS[name]), _randn(k, n, dtype=FORMATS[name])
    return _jitted(lambda a, b: a @ b, a, b, precision=name)


def _fused(name: str) -> Run:
    a, b = _randn(512, 512, dtype=FORMATS[name]), _randn(512, 512, dtype=FORMATS[name])
    return _jitted(lambda a, b: jax.nn.gelu(jnp.tanh(a) @ b), a, b, precision=name)


def _mlp(name: str) -> Run:
    weights = [_randn(256, 256, dtype=FORMATS[name]) for _ in range(2)]

    def loss(first: jax.Array, second: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.mean(jax.nn.relu(x @ first) @ second).astype(jnp.float32)

    def step(first: jax.Array, second: jax.Array, x: jax.Array) -> list[jax.Array]:
        grads = jax.grad(loss, argnums=(0, 1))(first, second, x)
        return [w - 0.1 * g for w, g in zip((first, second), grads, strict=True)]

    return _jitted(step, *weights, _randn(128, 256, dtype=FORMATS[name]), precision=name)


def _convolution(name: str) -> Run:
    x, w = _randn(8, 28, 28, 64, dtype=FORMATS[name]), _randn(3, 3, 64, 64, dtype=FORMATS[name])

    def conv(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    return _jitted(conv, x, w, precision=name)


def _attention(name: str, how: str) -> Run:
    q = _randn(2, 256, 8, 64, dtype=FORMATS[name])
    return _jitted(lambda q: jax.nn.dot_product_attention(q, q, q, implementation=how), q, precision=name)


def _fp8() -> Run:
    a = _randn(512, 512, dtype=jnp.float8_e4m3fn)
    return _jitted(
        lambda a: jax.lax.dot_general(a, a, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32), a
    )


def _int8() -> Run:
    a = jnp.ones((512, 512), dtype=jnp.int8)
    return _jitted(lambda a: jax.lax.dot(a, a, preferred_element_type=jnp.int32), a)


def _norms(name: str) -> Run:
    def block(x: jax.Array) -> jax.Array:
        y = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        return jax.nn.softmax(y) + y.sum(0)

    return _jitted(block, _randn(2048, 1024, dtype=FORMATS[name]))


def _moving(name: str) -> Run:
    def block(x: jax.Array) -> object:
        return x.T, jnp.concatenate([x, x]), jnp.sort(x), jnp.cumsum(x, -1), x[::2], x.astype(jnp.float16)

    return _jitted(block, _randn(512, 512, dtype=FORMATS[name]))


def jax_cases() -> list[Case]:
    """All of them."""
    builds: dict[str, Callable[[str], Run]] = {
        "square": lambda n: _product(n, 1024, 1024, 1024),
        "odd": lambda n: _product(n, 1023, 1021, 1019),
        "row": lambda n: _product(n, 1, 4096, 4096),
        "long_sum": lambda n: _product(n, 64, 64, 16384),
        "fused": _fused,
        "mlp": _mlp,
        "conv": _convolution,
        "attention_xla": lambda n: _attention(n, "xla"),
        "norms": _norms,
        "moving": _moving,
    }
    cases = [
        Case(f"jax/{label}/{name}", name, lambda n=name, b=build: b(n))
        for label, build in builds.items()
        for name in FORMATS
    ]
    for name in ("bf16", "fp16"):
        cases.append(Case(f"jax/attention_cudnn/{name}", name, lambda n=name: _attention(n, "cudnn")))
    return [*cases, Case("jax/fp8", "fp8", _fp8), Case("jax/int8", "int8", _int8)]


def _module(run: Run) -> str:
    """The compiled module, packed for JSON: it says what the kernels named after its instructions do."""
    try:
        modules = cast("Compiled", run).function.runtime_executable().hlo_modules()
        return base64.b64encode(gzip.compress(modules[0].as_serialized_hlo_module_proto())).decode()
    except Exception as error:  # no public interface: the table can do without
        return f"failed: {error!r}"


def main() -> None:
    """Parse, run, save what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    jax.block_until_ready(jnp.zeros(1) + 1)
    modules: dict[str, str] = {}
    cases = jax_cases() if options.all else core(jax_cases(), JAX)
    outcome = run_all([_keeping(case, modules) for case in cases], options.only, options.seconds, _release)
    outcome.modules = modules
    outcome.save(options.out / "jax_ncu.json")


def _release() -> None:
    gc.collect()


def _keeping(case: Case, modules: dict[str, str]) -> Case:
    """The same case, whose module is kept."""

    def build() -> Run:
        run = case.build()
        modules[case.name] = _module(run)
        return run

    return Case(case.name, case.precision, build)


if __name__ == "__main__":
    main()
