"""Records tests/fixtures/capture_gpu with stepscope itself. Wants one CUDA device, torch with Triton, and JAX.

  PYTHONPATH=src:. python benchmarks/record/capture_gpu.py OUT [CASE ...]

Each case runs in a process of its own, those of two workers in two. OUT/results.json tells what each one noted and how long
it took. Profiles are packed; of a sidecar's command and of the names in a program, machine paths are for you to rename.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import stepscope
from benchmarks.cuda_graph import capture_graph

WINDOW = stepscope.schedule(skip=10, warmup=2, active=5)
STEPS = 24
PATIENCE_SECONDS = 280
WORKERS = 2
Loss = Callable[[Any], Any]


def torch_parts(width: int = 1024, **options: Any) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """Model, optimizer and eight batches in pinned memory."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = [nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 10)]
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    batches = [
        (torch.randn(256, width).pin_memory(), torch.randint(0, 10, (256,)).pin_memory()) for _ in range(8)
    ]
    return model, optimizer, batches


def torch_loop(out: Path, made: Callable[[Any], Any] = lambda model: model, extra: Loss | None = None) -> Any:
    """A loop with its phases annotated; `made` may compile the model, `extra` adds to the loss."""
    import torch

    model, optimizer, batches = torch_parts(fused=True)
    run = made(model)
    with stepscope.profile(out, schedule=WINDOW) as prof:
        for _, (x, y) in zip(range(STEPS), prof.input(batches * 4), strict=False):
            data, target = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            with stepscope.annotate("forward"):
                answer = run(data)
                loss = torch.nn.functional.cross_entropy(answer.float(), target)
            if extra is not None:
                loss = loss + extra(answer)
            with stepscope.annotate("backward"):
                loss.backward()
            with stepscope.annotate("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            prof.step()
    return prof


def torch_compiled(out: Path, mode: str | None = None) -> Any:
    """The same through torch.compile, without a graph break."""
    import torch

    return torch_loop(out, lambda model: torch.compile(model, mode=mode, fullgraph=True))


def torch_graphs(out: Path) -> Any:
    """A whole step captured in a CUDA graph, and replayed."""
    import torch

    model, optimizer, batches = torch_parts(fused=True, capturable=True)
    x, y = (each.cuda() for each in batches[0])

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    graph = capture_graph(step)
    with stepscope.profile(out, schedule=WINDOW) as prof:
        for number in range(STEPS):
            data, target = batches[number % len(batches)]
            x.copy_(data, non_blocking=True)
            y.copy_(target, non_blocking=True)
            with stepscope.annotate("replay"):
                graph.replay()
            prof.step()
    return prof


def triton_op(out: Path) -> Any:
    """A Triton kernel in an op of our own."""
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def double_kernel(source, target, count, block: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(target + at, tl.load(source + at, mask=at < count) * 2, mask=at < count)

    @stepscope.op("my_double")
    def my_double(x: Any) -> Any:
        doubled = torch.empty_like(x)
        double_kernel[(triton.cdiv(x.numel(), 1024),)](x, doubled, x.numel(), block=1024)
        return doubled

    return torch_loop(out, extra=lambda answer: my_double(answer.detach()).sum() * 0)


def torch_ddp(out: Path) -> Any:
    """One of two processes that share the GPU; gloo, since NCCL wants a GPU for each."""
    import torch

    torch.distributed.init_process_group("gloo")
    model, _, batches = torch_parts()
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    with stepscope.profile(out, schedule=stepscope.schedule(skip=6, warmup=2, active=4)) as prof:
        for x, y in prof.input(batches * 2):
            torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    torch.distributed.destroy_process_group()
    return prof


def jax_loop(out: Path) -> Any:
    """A jitted update with a named scope inside, and an op of our own."""
    import jax
    import jax.numpy as jnp

    def loss(weights: list[Any], x: Any) -> Any:
        with stepscope.annotate("forward"):
            for layer in weights:
                x = jnp.tanh(x @ layer)
        return jnp.mean(x**2)

    @jax.jit
    def update(weights: list[Any], x: Any) -> list[Any]:
        slopes = jax.grad(loss)(weights, x)
        return [weight - 0.01 * slope for weight, slope in zip(weights, slopes, strict=True)]

    @stepscope.op("my_reduce")
    def my_reduce(x: Any) -> Any:
        return jnp.sum(x * 2)

    weights = [jax.random.normal(jax.random.key(seed), (1024, 1024)) * 0.03 for seed in range(4)]
    x = jax.random.normal(jax.random.key(9), (512, 1024))
    with stepscope.profile(out, schedule=WINDOW) as prof:
        for batch in prof.input([x] * STEPS):
            with stepscope.annotate("update"):
                weights = update(weights, batch)
            my_reduce(weights[0]).block_until_ready()
            prof.step()
    return prof


def torch_jax(out: Path) -> Any:
    """Two frameworks in one process, of which one can record the GPU."""
    import jax
    import jax.numpy as jnp
    import torch

    model, optimizer, batches = torch_parts(fused=True)
    square = jax.jit(lambda x: jnp.sum(x @ x))
    ones = jnp.ones((512, 512))
    square(ones).block_until_ready()
    with stepscope.profile(out, schedule=stepscope.schedule(skip=4, warmup=1, active=3)) as prof:
        for _, (x, y) in zip(range(12), batches * 2, strict=False):
            torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
            square(ones).block_until_ready()
            prof.step()
    return prof


CASES: dict[str, Callable[[Path], Any]] = {
    "torch": torch_loop,
    "torch_graphs": torch_graphs,
    "torch_compile": torch_compiled,
    "torch_compile_graphs": lambda out: torch_compiled(out, "reduce-overhead"),
    "triton": triton_op,
    "torch_ddp": torch_ddp,
    "jax": jax_loop,
    "jax_two": jax_loop,
    "torch_jax": torch_jax,
}
IN_TWO = ("torch_ddp", "jax_two")


def environments(case: str) -> list[dict[str, str]]:
    """That of each process of the case."""
    shared = os.environ | {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.3"}
    if case not in IN_TWO:
        return [shared]
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29531", "WORLD_SIZE": str(WORKERS)}
    return [shared | group | {"RANK": str(rank)} for rank in range(WORKERS)]


@contextmanager
def started(case: str, out: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """The processes of the case, none of which outlives it."""
    command = [sys.executable, __file__, str(out), "--here", case]
    jobs = [
        subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for env in environments(case)
    ]
    try:
        yield jobs
    finally:
        for job in jobs:
            job.kill()


def outcome(case: str, out: Path) -> dict[str, Any]:
    """What the case's processes told, and the seconds that it took."""
    start = time.monotonic()
    with started(case, out) as jobs:
        told = [job.communicate(timeout=PATIENCE_SECONDS) for job in jobs]
    workers = [
        json.loads(said.splitlines()[-1]) if job.returncode == 0 else {"error": complaint[-4000:]}
        for job, (said, complaint) in zip(jobs, told, strict=True)
    ]
    return {"workers": workers, "seconds": round(time.monotonic() - start, 1)}


def noted(prof: stepscope.Profiler) -> dict[str, Any]:
    """The files and the problems of one process."""
    return {"files": [path.name for path in prof.files], "problems": prof.problems}


def pack(out: Path) -> None:
    """Compress the profiles; the second view of them that JAX writes for Perfetto is not needed."""
    for path in out.rglob("plugins/profile/*/*.trace.json.gz"):
        path.unlink()
    for path in [*out.rglob("*.pt.trace.json"), *out.rglob("*.xplane.pb")]:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


def main(out: Path, *words: str) -> None:
    """All cases, or those that are named."""
    if words[:1] == ("--here",):
        print(json.dumps(noted(CASES[words[1]](out / words[1])), default=str))
        return
    results = {case: outcome(case, out) for case in words or CASES}
    pack(out)
    (out / "results.json").write_text(json.dumps(results, indent=1), "utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
