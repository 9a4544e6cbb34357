"""Steps of ops that launch kernels, for rules about work that the result does not need."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.serving.workload import TRAINING
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes  inputs  sequence  strides"
GEMM = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_TNT"
HALF = "c10::BFloat16,c10::BFloat16"


@dataclass(frozen=True)
class Op:
    """An op with, perhaps, a kernel of so many µs."""

    name: str
    shapes: str = "[]"
    kernel: str = ""
    length: int = 0
    track: str = "main"
    sequence: str = "-"
    inside: tuple[Op, ...] = ()
    kind: str = "op"
    dtypes: str = HALF
    inputs: str = "-"
    strides: str = "-"

    def rows(self, at: int, kernel_at: int) -> tuple[list[str], int, int]:
        """Its rows, when it ends and when its kernels do; it takes 8 µs, and what is inside of it."""
        begin, rows = at + 1, []
        if self.kernel:
            rows += [f"{self.track}  {begin}  4  cudaLaunchKernel  runtime  {self.kernel}  -  -  -  -  -"]
            rows += [f"stream 7  {kernel_at}  {self.length}  {self.kernel}  kernel  -  -  -  -  -  -"]
            begin, kernel_at = begin + 5, kernel_at + self.length
        for each in self.inside:
            more, begin, kernel_at = each.rows(begin, kernel_at)
            rows += more
        end = max(at + 8, begin + 1)
        shapes = self.shapes.replace(" ", "")
        mine = f"{self.track}  {at}  {end - at}  {self.name}  {self.kind}  -  {shapes}  {self.dtypes}  {self.inputs}  {self.sequence}  {self.strides}"
        return [mine, *rows], end + 1, kernel_at


def case(*by_step: Sequence[Op], workload: str = TRAINING, blocks: int | None = None) -> Case:
    """Steps of 1000 µs; kernels have so many blocks."""
    lines = [HEAD]
    for number, ops in enumerate(by_step):
        at, kernel_at = 1000 * number + 5, 1000 * number + 60
        lines.append(f"main  {1000 * number}  1000  ProfilerStep#{number}  annotation  -  -  -  -  -  -")
        for op in ops:
            rows, at, kernel_at = op.rows(at, max(kernel_at, at))
            lines += rows
        lines.append(
            f"main  {at}  {1000 * number + 990 - at}  cudaDeviceSynchronize  runtime  -  -  -  -  -  -"
        )
    trace = compute_trace("\n".join(lines))
    if blocks is not None:
        grid = pl.lit([blocks, 1, 1], dtype=trace.kernels.schema["grid"])
        trace = trace.over({**trace.tables, "kernels": trace.kernels.with_columns(grid=grid)}, trace.cold)
    return dataclasses.replace(case_of(trace), workload=workload)
