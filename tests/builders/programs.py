"""Traces of compiled programs: kernels that name the program that they belong to, and its code."""

from __future__ import annotations

import polars as pl

from stepscope.trace.schema import TABLES, conform
from stepscope.trace.trace import Trace
from tests.analysis.compute.traces import compute_trace


def program_trace(lines: list[str], **codes: bytes) -> Trace:
    """A job of JAX: `codes` are its programs by name; the column `program` of the table says which a kernel is of."""
    head = "track  start  dur  name  kind  launches  program"
    trace = compute_trace("\n".join([head, *lines]), framework="jax")
    rows = [line.split() for line in lines]
    named = {(row[0] + row[1], row[2], row[4]): row[7] for row in rows if row[0] == "stream"}
    events = trace.events.filter(pl.col("kind").is_in(["kernel", "copy"]))
    starts = (events["start_ns"] // 1000).to_list()
    programs = [named["stream7", str(at), name] for at, name in zip(starts, events["name"], strict=True)]
    scopes = [f"{program}/{name}" for program, name in zip(programs, events["name"], strict=True)]
    ops = pl.DataFrame({"event": events["id"], "scope": scopes}, schema_overrides={"event": pl.UInt32})
    modules = [
        {"name": name, "program_id": place, "hlo": code} for place, (name, code) in enumerate(codes.items())
    ]
    made = pl.DataFrame(modules, schema=TABLES["modules"])
    return Trace({**trace.tables, "ops": conform("ops", ops), "modules": made}, trace.cold)


def runs_in_steps(runs: list[tuple[str, list[tuple[str, int]]]], steps: int = 4) -> list[str]:
    """Lines of a job whose steps run these programs in turn: the name of each, with its kernels and their length in µs."""
    length = sum(dur + 1 for _, kernels in runs for _, dur in kernels) + 4 * len(runs) + 20
    lines: list[str] = []
    for step in range(steps):
        at = length * step
        lines.append(f"main  {at}  {length}  ProfilerStep#{step}  annotation  -  -")
        begin, launched = at + 8, at + 1
        for name, kernels in runs:
            whole = sum(dur + 1 for _, dur in kernels)
            lines.append(f"over modules  {begin}  {whole}  {name}  module  -  -")
            for kernel, dur in kernels:
                lines.append(f"main  {launched}  1  cudaLaunchKernel  runtime  {kernel}  -")
                lines.append(f"stream 7  {begin}  {dur}  {kernel}  kernel  -  {name}")
                launched, begin = launched + 1, begin + dur + 1
            begin += 2
        lines.append(
            f"main  {launched + 1}  {at + length - 2 - launched}  cudaDeviceSynchronize  runtime  -  -"
        )
    return lines
