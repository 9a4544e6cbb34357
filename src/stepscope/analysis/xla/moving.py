"""Kernels of loops that only move data: they pick what a turn works on, or keep what it has computed. A loop needs them wherever the work is done."""

from __future__ import annotations

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.instruction_cost import ELEMENTWISE, is_matrix_product
from stepscope.analysis.xla.loops import Flow, body_of, loops_of

_COMPUTES = (*ELEMENTWISE, "dot", "convolution", "reduce", "sort", "fft")


def moving_kernels(module: Module) -> frozenset[str]:
    """Of all loops of the program, by their kernel names."""
    flow = Flow(module)
    bodies = {body for loop in loops_of(module) if (body := body_of(module, loop)) is not None}
    kernels = (one for body in bodies for _, one in flow.kernels(body))
    return frozenset(one.kernel_name for one in kernels if not computes(module, one) and not _calls(one))


def computes(module: Module, one: Instruction) -> bool:
    """Whether it does more than to pick and move: a loop over layers picks those of its turn however they are kept."""
    if one.opcode == "fusion":
        inside = [each for number in one.called for each in module.instructions(number)]
        return any(each.opcode in _COMPUTES and each.shape.elements > 1 for each in inside)
    return one.opcode in _COMPUTES or is_matrix_product(one)


def _calls(one: Instruction) -> bool:
    """What a library or another device does is not known here."""
    return one.opcode == "custom-call" or one.opcode.startswith("all-")
