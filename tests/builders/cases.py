"""Ranks for rules: a trace written as text becomes the case that a rule looks at."""

from __future__ import annotations

from stepscope.analysis.account.account import account
from stepscope.analysis.compute.account import compute_account
from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.kernels.calls import kernel_calls
from stepscope.analysis.memory import memory_use
from stepscope.analysis.ops.calls import op_calls
from stepscope.analysis.replay.unprofiled_host import plan
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.trace import Trace
from tests.builders.inline import trace_of

HEAD = "track  start  dur  name  kind  launches"


def case_of(trace: Trace) -> Case:
    """All that the rules ask for, from the trace alone; about its first device, or the host if there is none."""
    steps = find_steps(trace)
    device = 0 if (trace.tracks["what"] == "device").any() else None
    made, kernels, ops = account(trace, steps), kernel_calls(trace), op_calls(trace)
    return Case(
        trace=trace,
        steps=steps,
        account=made,
        device=device,
        memory=memory_use(trace, steps),
        kernels=kernels,
        ops=ops,
        plan_of=lambda: plan(trace, steps, device),
        compute_of=lambda: compute_account(trace, made, kernels, ops),
    )


def case_of_text(lines: list[str], **info: object) -> Case:
    """The same, of a trace in text; of PyTorch, unless `info` says otherwise."""
    return case_of(trace_of("\n".join([HEAD, *lines]), **{"framework": "pytorch", **info}))


def findings_of(lines: list[str], **info: object) -> list[Finding]:
    """What all rules find in a trace in text."""
    return apply_rules(case_of_text(lines, **info))


def step(number: int, start: int, *parts: str, us: int = 1000) -> list[str]:
    """One step of so many µs; parts are rows with times relative to it."""
    rows = [f"main  {start}  {us}  ProfilerStep#{number}  annotation  -"]
    for part in parts:
        track, begin, rest = part.split("  ", 2)
        rows.append(f"{track}  {start + int(begin)}  {rest}")
    return rows


def steps(*parts: str, count: int = 3, us: int = 1000) -> list[str]:
    """Several equal steps."""
    return [row for number in range(count) for row in step(number, us * number, *parts, us=us)]


GEMM = ("main  {at}  10  aten::mm  op  -", "main  {at}  8  cudaLaunchKernel  runtime  gemm")


def gemm(at: int, length: int, begin: int | None = None) -> list[str]:
    """An op that launches a kernel."""
    start = at + 10 if begin is None else begin
    return [*(row.format(at=at) for row in GEMM), f"stream 7  {start}  {length}  gemm  kernel  -"]
