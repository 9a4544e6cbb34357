"""A program of which the last position is read after the last of several layers that are alike: only its last products are spared."""

from __future__ import annotations

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace, runs_in_steps

LAYERS, LENGTH = 4, 150
SQUARE = """\
main:
  hidden = f32[64,512] parameter(0)
  weights = f32[512,512] parameter(1)
"""


def code() -> bytes:
    """Layers that mix all positions, of which the last product is read in part."""
    lines, given = SQUARE, "hidden"
    for layer in range(LAYERS):
        lines += f"  dot.{layer} = f32[64,512] dot({given}, weights) op_name=jit(f)/dot_general\n"
        if layer < LAYERS - 1:
            lines += f"  mixed.{layer} = f32[64,512] reverse(dot.{layer}) op_name=jit(f)/rev\n"
            given = f"mixed.{layer}"
    return program(lines + f"  last = f32[1,512] slice(dot.{LAYERS - 1}) slices=63:64,0:512\n")


def found_with(us_of_last: int) -> Finding | None:
    """The finding where the last product takes so long."""
    kernels: list[tuple[str, int]] = []
    for layer in range(LAYERS):
        kernels.append((f"dot.{layer}", us_of_last if layer == LAYERS - 1 else LENGTH))
        if layer < LAYERS - 1:
            kernels.append((f"mixed.{layer}", 10))
    lines = runs_in_steps([("jit_f", [*kernels, ("last", 2)])])
    found = apply_rules(case_of(program_trace(lines, jit_f=code())))
    return next((one for one in found if one.code == "unused-rows"), None)


def test_only_the_product_that_is_read_in_part_counts() -> None:
    found = found_with(LENGTH)
    assert found is not None
    whole = LENGTH * LAYERS + 10 * (LAYERS - 1)
    assert found.share < 1.2 * LENGTH / whole
    assert found.speedup.high < whole / (whole - 1.5 * LENGTH)


def test_a_short_one_is_not_worth_a_finding_however_long_its_like_are() -> None:
    assert found_with(2) is None
