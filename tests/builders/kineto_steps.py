"""Three good steps as Kineto writes them, and the events to add one defect to them. Times in µs."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.builders import documents
from tests.builders.documents import Event, span

PID = 7
on_host = partial(span, pid=PID)


def step(number: int, pid: Any = 7) -> Event:
    """The marker of a step of 100 µs."""
    return on_host("user_annotation", f"ProfilerStep#{number}", 100 * number, 90, pid=pid)


def launch(at: float, correlation: int) -> Event:
    """A launch on the host."""
    return on_host("cuda_runtime", "cudaLaunchKernel", at, 2, correlation=correlation)


def kernel(
    at: float, correlation: int, name: str = "gemm", dur: float = 10, args: Event | None = None
) -> Event:
    """Work on a device."""
    given = {"device": 0, "stream": 7, "correlation": correlation, "registers per thread": 32, **(args or {})}
    return span("kernel", name, at, dur, tid=7, pid=0, **given)


def op(at: float, name: str = "aten::mm", dur: float = 20, **args: Any) -> Event:
    """An op on the host."""
    return on_host("cpu_op", name, at, dur, **{"Input Dims": [[2, 2]], **args})


def good() -> list[Event]:
    """Three steps of one op, its launch and its kernel; nothing is wrong with them."""
    found: list[Event] = []
    for place in range(1, 4):
        at = 100 * place
        found += [step(place), op(at + 5), launch(at + 7, place), kernel(at + 30, place)]
    return found


def document(events: list[Event], **header: Any) -> bytes:
    """A Kineto trace."""
    facts = {"deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "record_shapes": 1}
    return documents.kineto(*events, **{**facts, **header})


def checkpoint_steps() -> list[Event]:
    """Three steps that save a checkpoint while the device waits."""
    found: list[Event] = []
    for place in range(3):
        at = 1000 * place
        found += [
            on_host("user_annotation", f"ProfilerStep#{place}", at, 1000),
            on_host("user_annotation", "checkpoint", at, 700),
            on_host("cpu_op", "aten::mm", at + 700, 10),
            on_host("cuda_runtime", "cudaLaunchKernel", at + 700, 8, correlation=place + 1),
            kernel(at + 710, place + 1, dur=285),
        ]
    return found
