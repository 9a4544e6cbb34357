"""Single ops of JAX that copy all of an array to write some rows, called one by one from a function of the job."""

from __future__ import annotations

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.eager_updates import eager_updates
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace

STEP, LEARN = 1200, 100  # µs
_WRITES = """
writing:
  whole = f32[1000,8] parameter(0)
  at = s32[4,1] parameter(1)
  rows = f32[4,8] parameter(2)
  written = f32[1000,8] {write}(whole, at, rows)
main:
  buffer = f32[1000,8] parameter(0)
  at = s32[4,1] parameter(1)
  rows = f32[4,8] parameter(2)
  copy.2 = f32[1000,8] copy(buffer)
  written.1 = f32[1000,8] fusion(copy.2, at, rows) calls=writing op_name=jit(scatter)/scatter
"""
_OP = "main:\n  x = f32[8] parameter(0)\n  {name} = f32[8] {name}(x) op_name=jit({name})/{name}\n"
_OPS = ("abs", "sign", "floor", "cosine")


def _function() -> bytes:
    lines = "".join(f"  learn.{k} = f32[8] add(x, x) op_name=jit(learn)/add\n" for k in range(10))
    return program("main:\n  x = f32[8] parameter(0)\n" + lines)


class Job:
    """Steps that call a compiled function, and write into buffers with single ops before and behind each write."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.free = 0  # when the device has done what it was given

    def call(self, at: int, name: str, took: int, *kernels: tuple[str, int]) -> None:
        """A call of a program, which launches its kernels at its end; they begin when the device is free."""
        begin = max(self.free, at + took)
        for place, (kernel, dur) in enumerate(kernels):
            launched = at + took - len(kernels) + place
            self.lines += [
                f"main  {launched}  1  cuLaunchKernelEx  runtime  {kernel}  -",
                f"stream 7  {begin}  {dur}  {kernel}  kernel  -  jit_{name}",
            ]
            begin += dur
        whole = sum(dur for _, dur in kernels)
        self.lines += [
            f"main  {at}  {took}  PjitFunction({name})  span  -  -",
            f"over gpu  {begin - whole}  {whole}  jit_{name}  module  -  -",
        ]
        self.free = begin

    def case(self, write: str) -> Case:
        codes = {f"jit_{name}": program(_OP.format(name=name)) for name in _OPS}
        scatter = program(_WRITES.format(write=write))
        return case_of(program_trace(self.lines, jit_learn=_function(), jit_scatter=scatter, **codes))


def made(
    copy: int, op: int = 15, writes: int = 2, write: str = "scatter", frames: bool = True, steps: int = 4
) -> Case:
    """Each write copies for `copy` µs; the ops around it take the host `op` µs each."""
    job = Job()
    for number in range(steps):
        begin = number * STEP
        job.lines.append(f"main  {begin}  {STEP}  ProfilerStep#{number}  annotation  -  -")
        if frames:
            job.lines.append(f"main  {begin + 1}  {STEP - 2}  job.py(120): step  python  -  -")
        job.call(begin + 2, "learn", 40, *((f"learn.{k}", LEARN // 10) for k in range(10)))
        at = begin + 50
        if frames:
            length = writes * (len(_OPS) + 1) * op + 2
            job.lines.append(f"main  {at}  {length}  job.py(103): write  python  -  -")
        for _ in range(writes):
            for name in _OPS:
                job.call(at, name, op, (name, 1))
                at += op
            if frames:
                source = "site-packages/jax/_src/ops/scatter.py(43): _scatter_update"
                job.lines.append(f"main  {at}  {op}  {source}  python  -  -")
            job.call(at, "scatter", op - 1, ("copy.2", copy), ("written.1", 1))
            at += op
        job.lines.append(f"main  {at + 3}  {begin + STEP - at - 5}  cudaDeviceSynchronize  runtime  -  -")
    return job.case(write)


def found_in(case: Case) -> dict[str, Finding]:
    return {one.code: one for one in apply_rules(case)}


def test_copies_of_whole_buffers_come_first_with_their_calls() -> None:
    found = found_in(made(copy=450))
    assert next(iter(found)) == "device-copies"
    first = found["device-copies"]
    assert "donate_argnums" in first.fix and first.evidence["updates"]
    assert first.certainty == 1.0
    assert first.speedup.mid > 2
    assert first.share > 0.7  # the copies


def test_the_calls_around_go_as_well() -> None:
    case = made(copy=450)
    updates = eager_updates(case)
    assert updates is not None
    assert updates.calls == 2 * (len(_OPS) + 1)
    inside = case.trace.events.filter(updates.functions)["name"].cast(str).unique().to_list()
    assert "PjitFunction(scatter)" in inside and "PjitFunction(abs)" in inside
    assert not {"PjitFunction(learn)", "job.py(120): step"}.intersection(inside)


def test_without_stacks_only_the_calls_that_write_are_known() -> None:
    updates = eager_updates(made(copy=450, frames=False))
    assert updates is not None and updates.calls == 2


def test_short_ops_stay_with_eager_execution() -> None:
    case = made(copy=2, op=50, writes=4)
    assert eager_updates(case) is None
    found = found_in(case)
    assert next(iter(found)) == "eager-execution"
    assert "device-copies" not in found


def test_where_the_calls_take_more_than_the_copies_these_do_not_own_them() -> None:
    case = made(copy=70, op=55, writes=4)
    assert eager_updates(case) is None
    found = found_in(case)
    assert next(iter(found)) == "eager-execution"
    assert "updates" not in found["device-copies"].evidence


def test_what_is_copied_to_write_all_of_it_is_no_update() -> None:
    case = made(copy=450, write="add")
    assert eager_updates(case) is None
    found = found_in(case)["device-copies"]
    assert "updates" not in found.evidence and found.certainty < 1
