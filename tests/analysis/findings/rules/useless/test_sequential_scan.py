"""Loops of compiled programs that compute a linear recurrence turn by turn."""

from __future__ import annotations

from functools import cache

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace

STEP = 4000
CODE = """
makes:
  old = {state} parameter(0)
  by = {state} parameter(1)
  made = {state} {new}
body:
  p = {carried} parameter(0)
  turn = s32[] get-tuple-element(p) index=0
  state = {state} get-tuple-element(p) index=1
  outputs = {outputs} get-tuple-element(p) index=2
  factor = {state} get-tuple-element(p) index=3
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(turn, one)
  copy.1 = {state} copy(state)
  new.1 = {state} fusion(copy.1, factor) calls=makes
  row = {outputs} dynamic-update-slice(outputs, new.1, turn, zero)
  sums = f32[128,{size}] get-tuple-element(p) index=4
  sum = f32[1,{size}] slice(new.1)
  written = f32[128,{size}] dynamic-update-slice(sums, sum, turn, zero)
  root = {carried} tuple(next, new.1, row, factor, {last})
main:
  a = {carried} parameter(0)
  loop = {carried} while(a) calls=body trips=128
  last = {state} get-tuple-element(loop) index=1
  states = {outputs} get-tuple-element(loop) index=2
  kept = {outputs} copy(states)
  gemm = {state} dot(last, last) contracts=1,0
"""


@cache
def found_in(
    size: int = 64,
    new: str = "multiply(old, by)",
    turns: int = 128,
    length: int = 7,
    sums: bool = False,
    behind: str = "gemm",
) -> dict[str, Finding]:
    """Findings of steps of 4 ms with a loop of two kernels and a copy of so many µs, and a kernel of 600 µs behind it.

    `sums`: the loop writes out sums of its states as well.
    """
    state, outputs = f"f32[{size},64]", f"f32[128,{size},64]"
    code = CODE.format(
        carried=f"(s32[], {state}, {outputs}, {state}, f32[128,{size}])",
        state=state,
        outputs=outputs,
        new=new,
        size=size,
        last="written" if sums else "sums",
    )
    lines = []
    for step in range(3):
        at = STEP * step
        lines.append(f"main  {at}  {STEP}  ProfilerStep#{step}  annotation  -  -")
        launched, begin = at + 2, at + 20
        for name, kind in [("copy_1", "kernel"), ("new_1", "kernel"), ("row", "kernel")] * turns:
            lines.append(f"main  {launched}  1  cudaLaunchKernel  runtime  {name}  -")
            lines.append(f"stream 7  {begin}  {length}  {name}  {kind}  -  jit_step")
            launched, begin = launched + 2, begin + length + 1
        lines.append(f"main  {launched}  1  cudaLaunchKernel  runtime  {behind}  -")
        lines.append(f"stream 7  {begin}  600  {behind}  kernel  -  jit_step")
        lines.append(
            f"main  {launched + 2}  {at + STEP - 5 - launched}  cudaDeviceSynchronize  runtime  -  -"
        )
    return {one.code: one for one in apply_rules(case_of(program_trace(lines, jit_step=program(code))))}


def test_a_recurrence_is_first_and_owns_the_copies_in_its_loop() -> None:
    found = found_in()
    assert next(iter(found)) == "sequential-scan"
    assert "device-copies" not in found
    first = found["sequential-scan"]
    assert first.evidence["turns"] == 128
    assert first.evidence["kernels_per_step"] == 3 * 128
    assert first.share == pytest.approx(3 * 128 * 8 / STEP, abs=0.03)
    # The product, the host and 14 passes of 5 µs are left; at worst also long kernels that are not of the state.
    assert 1.8 < first.speedup.low < first.speedup.mid < 3.2 < first.speedup.high < 5.5


def test_copies_and_rows_of_short_turns_leave_with_the_loop() -> None:
    """Each of 384 kernels takes 4 µs to copy or write 16 KiB: for all turns at once, that is a few microseconds."""
    found = found_in(length=4)["sequential-scan"]
    # Of 2.5 ms on the device, the kernel behind the loop and a scan are left; with 5 to 40 % of the rows it were 1.7 to 2.4.
    assert found.speedup.low > 1.75
    assert found.speedup.high > 2.5


def test_a_state_that_is_bent_must_go_turn_by_turn() -> None:
    found = found_in(new="tanh(old)")
    assert "sequential-scan" not in found
    assert "device-copies" in found


def test_few_turns_are_no_matter() -> None:
    assert "sequential-scan" not in found_in(turns=32, length=30)


def test_where_each_turn_moves_a_large_state_the_memory_decides() -> None:
    """64 MiB at 4.8 TB/s: a scan would take as long as the turns do."""
    assert "sequential-scan" not in found_in(size=1 << 18)


def test_turns_that_fill_the_device_are_no_matter() -> None:
    """As in a running mean of the gradients of parts of a batch."""
    assert "sequential-scan" in found_in(turns=80, length=9)
    assert "sequential-scan" not in found_in(turns=80, length=11)


def test_a_kernel_that_writes_one_row_of_a_large_array_may_leave() -> None:
    """The array has 32 MiB, for which the kernel would need 14 µs; it takes 7, and writes a row."""
    large, small = (found_in(size)["sequential-scan"].speedup for size in (1024, 64))
    assert large.high == pytest.approx(small.high, rel=0.1)


def test_a_convolution_does_without_what_keeps_the_states() -> None:
    """A copy of all states behind the loop, where the loop writes out sums as well: a scan needs it, a convolution does not."""
    kept, product = (found_in(sums=True, behind=name)["sequential-scan"] for name in ("kept", "gemm"))
    assert kept.share > product.share + 0.1
    assert kept.speedup.high > 1.3 * product.speedup.high
    assert "a convolution needs no states" in kept.detail
    alone = found_in(behind="kept")["sequential-scan"]
    assert alone.share == pytest.approx(product.share, abs=0.01)
    assert "convolution" not in alone.detail
