"""Traces of JAX on a CPU: calls of functions, the threads that run their programs, and the code of these."""

from __future__ import annotations

import polars as pl

from stepscope.trace.schema import TABLES, conform
from stepscope.trace.trace import Trace
from tests.builders.inline import trace_of

STEPS = 3
RUNNER = "tf_XLAPjRtCpuClient/1"
CALL = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
RUN, WAIT = "ThunkExecutor::Execute", "ThunkExecutor::Execute (wait for completion)"


def handed_over(at: int, function: str) -> list[str]:
    """A call of 10 µs that hands its program over."""
    return [f"main  {at}  10  PjitFunction({function})  span", f"main  {at + 2}  6  {CALL}  span"]


def run_inside(at: int, length: int, function: str, *ops: str, before: int = 2) -> list[str]:
    """A call that runs its program itself, all the time but for what comes before and 2 µs at the end."""
    return [
        f"main  {at}  {length}  PjitFunction({function})  span",
        f"main  {at + 1}  {length - 2}  {CALL}  span",
        f"main  {at + before}  {length - before - 2}  {WAIT}  span",
        *(f"main  {op}" for op in ops),
    ]


def run(at: int, length: int, *ops: str) -> list[str]:
    """A thread runs a program; ops as `start  dur  program/instruction  op`."""
    first = f"{RUNNER}  {at}  5  {RUN}  span"
    return [
        first,
        f"{RUNNER}  {at + 5}  {length - 5}  {WAIT}  span",
        *(f"tf_XLAEigen/2  {op}" for op in ops),
    ]


def host_program_trace(step: int, *rows: str, **codes: bytes) -> Trace:
    """Three equal steps of so many µs; `rows` have times relative to each. Ops are named program/instruction, and lose the program."""
    lines = ["track  start  dur  name  kind"]
    for number in range(STEPS):
        lines.append(f"main  {step * number}  {step}  train#{number}  annotation")
        for row in rows:
            track, start, rest = row.split("  ", 2)
            lines.append(f"{track}  {int(start) + step * number}  {rest}")
    trace = trace_of("\n".join(lines), framework="jax")
    events = trace.events.with_columns(scope=pl.col("name").cast(pl.String))
    ops = events.filter(pl.col("scope").str.contains("^jit_.*/")).select("scope", event="id")
    names = pl.col("name").cast(pl.String).str.replace("^jit_.*/", "").cast(pl.Categorical)
    modules = [
        {"name": name, "program_id": place, "hlo": code} for place, (name, code) in enumerate(codes.items())
    ]
    tables = {
        "events": trace.events.with_columns(names),
        "ops": conform("ops", ops),
        "modules": pl.DataFrame(modules, schema=TABLES["modules"]),
    }
    return Trace({**trace.tables, **tables}, trace.cold)
