"""Loops in PyTorch: training and inference, eager, compiled and as graphs, with markers, with other names, with none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.cuda_graph import capture_graph

WIDTH = 1024
LAYERS = 12
Truth = dict[str, Any]


def make_model(layers: int = LAYERS, width: int = WIDTH) -> Any:
    """A stack of blocks, in bf16 on the device."""
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.up = nn.Linear(width, 4 * width)
            self.down = nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

    return nn.Sequential(*(Block() for _ in range(layers))).cuda().bfloat16()


def make_trainer(
    batch: int = 512, layers: int = LAYERS, compile_with: dict[str, Any] | None = None
) -> Callable[[], Any]:
    """One training step: forward, backward, optimizer."""
    import torch

    model = make_model(layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(batch, WIDTH, device="cuda", dtype=torch.bfloat16)
    run = torch.compile(model, **compile_with) if compile_with is not None else model

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = run(x).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def make_server(batch: int = 32, layers: int = 36) -> Callable[[], Any]:
    """One forward pass without gradients."""
    import torch

    model = make_model(layers)
    x = torch.randn(batch, WIDTH, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        with torch.no_grad():
            return model(x)

    return step


@contextmanager
def recording(folder: Path, **options: Any) -> Iterator[Any]:
    """torch's own profiler, and its file in the folder."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], **options) as prof:
        yield prof
        torch.cuda.synchronize()
    prof.export_chrome_trace(str(folder / "trace.json.gz"))


def time_loop(count: int, step: Callable[[int], Any]) -> Truth:
    """Run the steps; how many, and how long each."""
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    for i in range(count):
        step(i)
    torch.cuda.synchronize()
    return {"steps": count, "step_ms": (time.perf_counter() - start) * 1e3 / count}


def warm_up(step: Callable[[], Any], count: int = 5) -> None:
    """Let caches fill and compilers compile."""
    import torch

    for _ in range(count):
        step()
    torch.cuda.synchronize()


def graph_marked(folder: Path) -> Truth:
    graph = capture_graph(make_server())
    with recording(folder) as prof:

        def step(_: int) -> None:
            graph.replay()
            prof.step()

        return time_loop(10, step)


def graph_unmarked(folder: Path) -> Truth:
    graph = capture_graph(make_server())
    with recording(folder):
        return time_loop(12, lambda _: graph.replay())


def graph_once_renamed(folder: Path) -> Truth:
    """One replay of 36 layers under a name nobody knows."""
    import torch

    graph = capture_graph(make_server())
    graph.replay()
    with recording(folder):

        def step(_: int) -> None:
            with torch.profiler.record_function("run_model_7"):
                graph.replay()

        return {**time_loop(1, step), "also": "whole"}


def graph_with_capture(folder: Path) -> Truth:
    """The capture was recorded too, in capture_traces/ beside the replay."""
    import torch

    step = make_server(layers=8)
    warm_up(step)
    beside = folder / "capture_traces"
    beside.mkdir()
    with recording(beside, record_shapes=True):
        graph = capture_graph(step)
    graph.replay()
    with recording(folder):

        def one(i: int) -> None:
            with torch.profiler.record_function(f"step[DECODE bs=32] {i}"):
                graph.replay()

        return time_loop(4, one)


def graph_train_loop(folder: Path) -> Truth:
    """A captured training step with a copy of the batch before and the loss read after each."""
    import torch

    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=True)
    x = torch.randn(256, WIDTH, device="cuda", dtype=torch.bfloat16)
    host = torch.randn(256, WIDTH, dtype=torch.bfloat16).pin_memory()
    loss = torch.zeros((), device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        value = model(x).float().pow(2).mean()
        value.backward()
        optimizer.step()
        loss.copy_(value.detach())

    graph = capture_graph(step)
    with recording(folder):

        def one(_: int) -> None:
            x.copy_(host, non_blocking=True)
            graph.replay()
            loss.item()

        return time_loop(8, one)


def reduce_overhead_train(folder: Path) -> Truth:
    step = make_trainer(64, compile_with={"mode": "reduce-overhead"})
    warm_up(step, 8)
    with recording(folder) as prof:

        def one(_: int) -> None:
            step()
            prof.step()

        return time_loop(6, one)


def reduce_overhead_serve(folder: Path) -> Truth:
    import torch

    model = torch.compile(make_model(), mode="reduce-overhead")
    x = torch.randn(8, WIDTH, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        with torch.no_grad():
            torch.compiler.cudagraph_mark_step_begin()
            return model(x).clone()

    warm_up(step, 8)
    with recording(folder):
        return time_loop(10, lambda _: step())


def eager_train_unmarked(folder: Path) -> Truth:
    step = make_trainer()
    warm_up(step)
    with recording(folder):
        return time_loop(6, lambda _: step())


def eager_train_item(folder: Path) -> Truth:
    step = make_trainer()
    warm_up(step)
    with recording(folder):
        return time_loop(5, lambda _: step().item())


def compiled_train_unmarked(folder: Path) -> Truth:
    step = make_trainer(compile_with={})
    warm_up(step)
    with recording(folder):
        return time_loop(7, lambda _: step())


def accumulate_unmarked(folder: Path) -> Truth:
    """Four micro-batches before each optimizer step."""
    import torch

    model = make_model(6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(256, WIDTH, device="cuda", dtype=torch.bfloat16)

    def step(_: int = 0) -> None:
        optimizer.zero_grad()
        for _micro in range(4):
            model(x).float().pow(2).mean().backward()
        optimizer.step()

    warm_up(step)
    with recording(folder):
        return time_loop(4, step)


def warmup_then_measure(folder: Path) -> Truth:
    """A benchmark: passes called warmup, then measured ones."""
    import torch

    step = make_server(256, 8)
    with recording(folder):
        for _ in range(3):
            with torch.profiler.record_function("warmup"):
                step()
        torch.cuda.synchronize()

        def one(_: int) -> None:
            with torch.profiler.record_function("benchmark_iteration"):
                step()
                torch.cuda.synchronize()

        return time_loop(10, one)


def epochs_of_steps(folder: Path) -> Truth:
    """Two epochs, each with four annotated steps."""
    import torch

    step = make_trainer()
    warm_up(step)
    with recording(folder):

        def epoch(_: int) -> None:
            with torch.profiler.record_function("epoch"):
                for _step in range(4):
                    with torch.profiler.record_function("train_step"):
                        step()

        whole = time_loop(2, epoch)
    return {"steps": 8, "step_ms": whole["step_ms"] / 4}


def denoise_unmarked(folder: Path) -> Truth:
    """Two images of twenty equal passes each: the pass is what repeats."""
    step = make_server(64, 6)
    warm_up(step)
    with recording(folder):
        truth = time_loop(40, lambda _: step())
    return {**truth, "also": "whole"}


def decode_loop(folder: Path) -> Truth:
    """Generation, eager, one token at a time, each read back."""
    import torch

    step = make_server(4, 24)
    warm_up(step)
    with recording(folder):

        def one(_: int) -> None:
            with torch.profiler.record_function("execute_0_context_0(sq0)_generation_4(sq4)"):
                out = step()
            out.argmax().item()

        return time_loop(9, one)


def train_and_evaluate(folder: Path) -> Truth:
    """Five training steps, then three passes of evaluation, under names of their own."""
    import torch

    train, evaluate = make_trainer(), make_server(512, LAYERS)
    warm_up(train)
    warm_up(evaluate)
    with recording(folder):

        def one(_: int) -> None:
            with torch.profiler.record_function("train_step"):
                train()

        truth = time_loop(5, one)
        for _ in range(3):
            with torch.profiler.record_function("eval_step"):
                evaluate()
    return {**truth, "also": "8 steps, or whole", "also_steps": 8}


def slow_input(folder: Path) -> Truth:
    """The host makes the batch for longer than the device trains on it."""
    import torch

    step = make_trainer(128, 4)
    warm_up(step)
    with recording(folder):

        def one(_: int) -> None:
            torch.randn(512, 4096).cuda()
            time.sleep(0.02)
            step()

        return time_loop(6, one)


CASES: dict[str, Callable[[Path], Truth]] = {
    "graph_marked": graph_marked,
    "graph_unmarked": graph_unmarked,
    "graph_once_renamed": graph_once_renamed,
    "graph_with_capture": graph_with_capture,
    "graph_train_loop": graph_train_loop,
    "reduce_overhead_train": reduce_overhead_train,
    "reduce_overhead_serve": reduce_overhead_serve,
    "eager_train_unmarked": eager_train_unmarked,
    "eager_train_item": eager_train_item,
    "compiled_train_unmarked": compiled_train_unmarked,
    "accumulate_unmarked": accumulate_unmarked,
    "warmup_then_measure": warmup_then_measure,
    "epochs_of_steps": epochs_of_steps,
    "denoise_unmarked": denoise_unmarked,
    "decode_loop": decode_loop,
    "train_and_evaluate": train_and_evaluate,
    "slow_input": slow_input,
}
