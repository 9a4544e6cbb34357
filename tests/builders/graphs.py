"""A CUDA graph that is replayed twice, and the recording of its capture."""

from __future__ import annotations

import json

import polars as pl

from stepscope.trace.finish import finish
from stepscope.trace.trace import Trace
from tests.builders.tables import draft

REPLAY = """
track     start  dur  name             kind
main          0   50  cudaGraphLaunch  runtime
stream 7    100   10  gemm             kernel
stream 7    110   20  relu             kernel
stream 7    130   30  gemm             kernel
main         60   50  cudaGraphLaunch  runtime
stream 7    200   10  gemm             kernel
stream 7    210   20  relu             kernel
stream 7    230   30  gemm             kernel
"""
CAPTURE = """
track  start  dur  name                    kind
main       0    5  {lib}StreamBeginCapture  runtime
main      10   20  aten::mm                op
main      15    5  {lib}LaunchKernel        runtime
main      40   20  aten::relu              op
main      45    5  {lib}LaunchKernel        runtime
main      70   20  aten::addmm             op
main      75    5  {lib}LaunchKernel        runtime
main     100    5  {lib}StreamEndCapture    runtime
main     120    5  {lib}LaunchKernel        runtime
"""


def replayed(nodes: list[int | None] | None = None) -> Trace:
    """Two launches of a graph of three kernels."""
    made = draft(REPLAY)
    kernels = [1, 2, 3, 5, 6, 7]
    made.links = pl.DataFrame({"from": [0, 0, 0, 4, 4, 4], "to": kernels, "why": ["launch"] * 6})
    made.kernels = pl.DataFrame(
        {"event": kernels, "graph_node": nodes or [None] * 6},
        schema={"event": pl.UInt32, "graph_node": pl.UInt64},
    )
    return finish(made)


def captured(lib: str = "cuda", kernels: tuple[str, ...] = ()) -> Trace:
    """The capture of the same graph, with the kernels' names as ROCm notes them."""
    made = draft(CAPTURE.format(lib=lib))
    made.ops = pl.DataFrame(
        {
            "event": [1, 3, 5],
            "shapes": ["[[2, 3]]", "[[4]]", "[[5]]"],
            "dtypes": ['["float"]'] * 3,
            "scope": ["Net_0", None, "Net_0/Head_1"],
        }
    )
    if kernels:
        rows = [json.dumps({"kernel": name}).encode() for name in kernels]
        made.cold = {"rest": pl.DataFrame({"event": [2, 4, 6], "json": rows})}
    return finish(made)
