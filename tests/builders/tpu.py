"""Planes of TPUs with a few steps, as XLA's profiler writes them: what each step runs is given as a list of instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.builders.xspace_bytes import PlaneBytes, Unsigned, space

ARRAY, ON_HOST = "f32[8,128]{1,0:T(8,128)}", "f32[8,128]{1,0:T(8,128)S(5)}"
PEAKS = {"peak_teraflops_per_second": 918.0, "peak_hbm_bw_gigabytes_per_second": 1638.0}
FETCH = f"%copy-done.1 = {ARRAY} copy-done(({ARRAY}, {ON_HOST}, u32[]{{:S(2)}}) %copy-start.1)"
STORE = f"%copy-done.2 = {ON_HOST} copy-done(({ON_HOST}, {ARRAY}, u32[]{{:S(2)}}) %copy-start.2)"
BEGIN_FETCH = f"%copy-start.1 = ({ARRAY}, {ON_HOST}, u32[]{{:S(2)}}) copy-start({ON_HOST} %param.1)"
BEGIN_STORE = f"%copy-start.2 = ({ON_HOST}, {ARRAY}, u32[]{{:S(2)}}) copy-start({ARRAY} %fusion.1)"
PREFETCH = f"%copy-done.3 = {ARRAY} copy-done(({ARRAY}, {ARRAY}, u32[]{{:S(2)}}) %copy-start.3)"


@dataclass(frozen=True)
class Op:
    """An instruction at some nanosecond of its step."""

    name: str
    at_ns: int
    dur_ns: int
    raw: str = ""
    stats: dict[str, Any] = field(default_factory=dict)


def core_plane(
    ops: Sequence[Op], steps: int = 4, step_ns: int = 1_000, copies: Sequence[Op] = ()
) -> PlaneBytes:
    """A core that runs the instructions in each of its steps; `copies` are on the line of what overlaps."""
    plane = PlaneBytes("/device:TPU:0")
    plane.fact("device_type_string", "TPU v6 Lite")
    for name, value in PEAKS.items():
        plane.fact(name, value)
    begins = [step * step_ns for step in range(steps)]
    plane.line("XLA Modules", [plane.event("jit_f(7)", at * 1_000, step_ns * 1_000) for at in begins], 2)
    for number, (line, shown) in enumerate((("XLA Ops", ops), ("Async XLA Ops", copies)), 3):
        plane.line(line, [_event(plane, op, at) for at in begins for op in shown], number)
    for op in (*ops, *copies):
        plane.describe(op.raw or op.name, op.name if op.raw else "", program_id=Unsigned(7), **op.stats)
    return plane


def _event(plane: PlaneBytes, op: Op, at_ns: int) -> bytes:
    return plane.event(
        op.raw or op.name, (at_ns + op.at_ns) * 1_000, op.dur_ns * 1_000, op.name if op.raw else ""
    )


def host_plane() -> PlaneBytes:
    """A host that is there, and says that this is JAX."""
    host = PlaneBytes("/host:CPU")
    host.line("main", [host.event("PjitFunction(f)", 0, 100)])
    return host


def tpu_job(ops: Sequence[Op], copies: Sequence[Op] = (), steps: int = 4) -> bytes:
    """The whole file."""
    return space(host_plane(), core_plane(ops, steps, copies=copies))


def fusion(at_ns: int, dur_ns: int, name: str = "fusion.1", **stats: Any) -> Op:
    """Computation."""
    usual = {
        "hlo_category": "loop fusion", "tf_op": "jit(f)/add:", "flops": 1_000, "model_flops": 1_000,
        "bytes_accessed": 8_192, "source": "train.py:29", "shape_with_layout": ARRAY,
    }  # fmt: skip
    return Op(name, at_ns, dur_ns, stats={**usual, **stats})


def product(at_ns: int, dur_ns: int, flops: int) -> Op:
    """A matrix product."""
    return fusion(
        at_ns, dur_ns, "convolution.5", hlo_category="convolution", model_flops=flops, tf_op="jit(f)/dot_general:",
        source="train.py:31",
    )  # fmt: skip


def wait(at_ns: int, dur_ns: int, raw: str = FETCH) -> Op:
    """What waits for a copy, or starts one."""
    name = raw.split(" ")[0].removeprefix("%")
    stats = {"hlo_category": name.rpartition(".")[0], "bytes_accessed": 4_096}
    return Op(name, at_ns, dur_ns, raw, stats)
