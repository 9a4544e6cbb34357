"""A step captured as a CUDA graph, as every job that replays one needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_WARM_UP_STEPS = 3  # on a side stream, as torch asks for


def capture_graph(step: Callable[[], Any]) -> Any:
    """The step as a `torch.cuda.CUDAGraph`, after a warm-up."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP_STEPS):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph
