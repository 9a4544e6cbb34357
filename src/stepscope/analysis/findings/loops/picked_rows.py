"""Programs beside a compiled function that only cut its inputs out of an array, or put its results together.

Each index into an array of JAX is a program of its own, and so is jnp.stack. Such a program moves elements and computes none, and it is
short. What it returns can depend on what the function returned only if it was given an array of that shape.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from stepscope.analysis.findings.loops.joined_passes import given_to, results_of
from stepscope.analysis.xla.arguments import Argument, arguments_of
from stepscope.analysis.xla.hlo_module import Module, Shape, read_module
from stepscope.analysis.xla.instruction_cost import FORMATS
from stepscope.analysis.xla.repeats.kept_weights import is_model
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import LOOP_ITERATIONS

_Array = tuple[int, tuple[int, ...]]
_MOVES = frozenset(
    (
        "bitcast", "bitcast-convert", "broadcast", "call", "concatenate", "constant", "convert", "copy", "copy-done",
        "copy-start", "dynamic-slice", "fusion", "gather", "get-tuple-element", "pad", "parameter", "reshape", "select",
        "slice", "transpose", "tuple",
    )
)  # fmt: skip


@dataclass(frozen=True)
class RowPrograms:
    """Names of programs: `cutting` makes inputs of a function, or takes its results apart, `joining` makes one array of them."""

    cutting: frozenset[str]
    joining: frozenset[str]
    cut: frozenset[tuple[int, ...]]  # sizes of the inputs that are made


def row_programs(codes: Mapping[str, Collection[bytes]], function: Module) -> RowPrograms:
    """Those of the programs that ran; several may have one name."""
    moving = {
        name: modules
        for name, hlos in codes.items()
        if all(map(_only_moves, modules := [read_module(hlo) for hlo in hlos]))
    }
    returned = _made_of_results(function, [one for known in moving.values() for one in known])
    inputs = {_array(one.shape) for one in inputs_of(function)}
    cutting = {
        name: known
        for name, known in moving.items()
        if all(_cuts(one, returned) or _takes_apart(one, returned, inputs) for one in known)
    }
    joining = (name for name, known in moving.items() if all(_joins(one, returned) for one in known))
    cut = {
        shape.sizes
        for known in cutting.values()
        for one in known
        if _cuts(one, returned)
        for shape in results_of(one)
    }
    return RowPrograms(frozenset(cutting), frozenset(joining), frozenset(cut))


def cuts_weights(programs: RowPrograms, function: Module) -> bool:
    """Whether what is cut is a matrix of the model, as where each member of an ensemble has its own: no call reads those of another."""
    given = arguments_of(function)
    return any(
        len(leaf.shape.sizes) > 1 and leaf.shape.sizes in programs.cut and _is_of_model(leaf, given)
        for leaf in given
    )


def inputs_of(function: Module) -> list[Argument]:
    """What a function is given, but for the bias of its last layer, which is as long as its result."""
    given = arguments_of(function)
    results = [shape.sizes for shape in results_of(function)]
    if len(results) != 1 or len(results[0]) != 1:
        return given
    mine = [one for one in given if one.shape.sizes == results[0]]
    is_bias = len(mine) == 1 and _is_of_model(mine[0], given) and _is_multiplied(mine[0], given)
    return [one for one in given if one not in mine] if is_bias else given


def _is_of_model(leaf: Argument, given: list[Argument]) -> bool:
    return leaf.root != leaf.name and is_model([one for one in given if one.root == leaf.root])


def _is_multiplied(bias: Argument, given: list[Argument]) -> bool:
    """Whether the model has a matrix as wide as the bias."""
    return any(
        one.root == bias.root and len(one.shape.sizes) > 1 and one.shape.sizes[-1:] == bias.shape.sizes
        for one in given
    )


def _array(shape: Shape) -> _Array:
    return shape.element, shape.sizes


def _made_of_results(function: Module, moving: Collection[Module]) -> set[_Array]:
    """The arrays that a function returns, and those that programs make of them by moving elements."""
    returned = {_array(shape) for shape in results_of(function)}
    for _ in moving:
        made = {
            _array(shape)
            for one in moving
            if any(_array(given) in returned for given in given_to(one))
            for shape in results_of(one)
        }
        if made <= returned:
            break
        returned |= made
    return returned


def _cuts(program: Module, returned: set[_Array]) -> bool:
    """Whether a program takes a small part out of an array, or only gives it another shape or type."""
    given, results = given_to(program), results_of(program)
    if not given or not results or any(_array(shape) in returned for shape in given):
        return False
    whole = max(given, key=lambda shape: shape.elements)
    is_part = all(one.elements * LOOP_ITERATIONS <= whole.elements for one in results)
    is_same = len(given) == len(results) == 1 and results[0].elements == whole.elements
    return is_part or (is_same and _array(results[0]) != _array(whole))


def _takes_apart(program: Module, returned: set[_Array], inputs: set[_Array]) -> bool:
    """Whether a program takes a part of a result that no call can be given."""
    given, results = given_to(program), results_of(program)
    is_part = sum(one.elements for one in results) <= max((one.elements for one in given), default=0)
    is_result = any(_array(shape) in returned for shape in given)
    return is_part and is_result and not any(_array(shape) in inputs for shape in results)


def _joins(program: Module, returned: set[_Array]) -> bool:
    """Whether a program makes one array of several that the function returned."""
    given, results = given_to(program), results_of(program)
    if len(results) != 1 or len(given) < LOOP_ITERATIONS:
        return False
    is_whole = results[0].elements == sum(shape.elements for shape in given)
    return is_whole and all(_array(shape) in returned for shape in given)


def _only_moves(program: Module) -> bool:
    """Whether elements are only moved: arithmetic of whole numbers is that of indices."""
    return all(
        one.opcode in _MOVES or not _has_fractions(one.shape)
        for body in program.bodies
        for one in program.instructions(body)
    )


def _has_fractions(shape: Shape) -> bool:
    return any(FORMATS.get(array.element, "int").startswith(("fp", "bf")) for array in shape.arrays())
