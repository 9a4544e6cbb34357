"""Steps of TensorFlow on the CPU as its profiler records them: eager calls, runs of traced functions, no device."""

from __future__ import annotations

from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import findings_of, step

POOL = "tf_Compute/1"


def call(at: int, name: str, before: int, run: int, after: int = 0) -> list[str]:
    """An eager call in µs: until the kernel runs, its run, and until the call returns."""
    return [
        f"main  {at}  {before + run + after}  EagerLocalExecute: {name}  span  -",
        f"main  {at + before}  {run}  EagerKernelExecute  span  -",
        f"main  {at + before}  {run}  KernelAndDeviceFunc::Run  span  -",
    ]


def function(at: int, name: str, before: int, run: int, *ops: tuple[str, int]) -> list[str]:
    """A run of a traced function, whose ops (name, µs) run one after the other on a thread of the pool, as its last."""
    begin = at + before + run - sum(length for _, length in ops)
    rows = call(at, f"__inference_{name}", before, run)
    for op, length in ops:
        rows.append(f"{POOL}  {begin}  {length}  {op}  op  -")
        begin += length
    return rows


def tracing(at: int, length: int) -> str:
    """A function is traced."""
    return f"main  {at}  {length}  tf.function-graph_building  annotation  -"


def found_in(*parts_of_steps: list[str]) -> dict[str, Finding]:
    """What is found in these steps of 1000 µs, by code."""
    lines = [
        row for number, parts in enumerate(parts_of_steps) for row in step(number, 1000 * number, *parts)
    ]
    return {each.code: each for each in findings_of(lines, framework="tensorflow")}
