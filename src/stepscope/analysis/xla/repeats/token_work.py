"""Generation in a compiled program that computes all positions of a text again for each new token.

The program is given the tokens of a text, padded to one length, attends causally over all of them, and one token is written: in the
program itself, which returns the tokens, in a loop that carries them, or by another program. With a cache of keys and values each
call would compute one position, and only read what is kept of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.analysis.xla.arguments import arguments_of, results_of
from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.instruction_cost import SILENT
from stepscope.analysis.xla.loops import Flow, Taint, body_of
from stepscope.analysis.xla.repeats.turns import given_to, turned
from stepscope.analysis.xla.sizes.array_bytes import shape_bytes
from stepscope.lazy import dataclass
from stepscope.registers.policy.repeated_work import PREFIX_LEAST
from stepscope.registers.policy.tables import XLA_CALL_DEPTH
from stepscope.registers.policy.useless_work import MASKED_PROGRAM_MOST

_INTEGERS = (4, 5, 8, 9)  # s32, s64, u32, u64
_BOOLEAN = 1
_ORDERS = ("LT", "LE", "GT", "GE")
_WRITES = ("dynamic-update-slice", "scatter")
_CALLS = ("fusion", "call", "async-start", "conditional")
_ENTERED = (*_CALLS, "while")
Place = tuple[int, int]
_CAUSAL, _ATTENTION = b"CAUSAL", "fmha"
_MOST_DIMENSIONS = 2
_MATRIX = 2


@dataclass(frozen=True)
class TokenWork:
    """Instructions that compute all `length` positions of the `tokens`: by name, how many bytes they read for one position as well."""

    length: int
    tokens: Shape
    kept_bytes: dict[str, int]


def token_work(module: Module, written_elsewhere: Sequence[Shape] = ()) -> TokenWork | None:
    """Of the program, or of the loop in it that carries the tokens; None for other programs.

    `written_elsewhere`: arrays of tokens into which another program writes one, about as often as this one runs.
    """
    if sum(len(body) for body in module.bodies.values()) > MASKED_PROGRAM_MOST:
        return None
    return _of_loops(module) or _of_program(module, written_elsewhere)


def written_tokens(module: Module) -> list[Shape]:
    """Arrays of tokens that the program is given, and returns with one token of each row written."""
    returned = set(results_of(module))
    found = [one.shape for one in arguments_of(module) if is_text(one.shape) and one.shape in returned]
    return [shape for shape in dict.fromkeys(found) if _writes_one(module, module.entry, shape)]


def is_text(shape: Shape) -> bool:
    """Whether an array may be the tokens of texts, or of one text."""
    sizes = shape.sizes
    return shape.element in _INTEGERS and 1 <= len(sizes) <= _MOST_DIMENSIONS and sizes[-1] >= PREFIX_LEAST


def _of_program(module: Module, written_elsewhere: Sequence[Shape]) -> TokenWork | None:
    given = {one.shape for one in arguments_of(module)}
    for tokens in (*written_tokens(module), *(each for each in written_elsewhere if each in given)):
        length = tokens.sizes[-1]
        if _is_causal(module, module.entry, length) and _attends_to_all(module, module.entry, tokens):
            return TokenWork(length, tokens, _over_positions(module, module.entry, tokens))
    return None


def _of_loops(module: Module) -> TokenWork | None:
    """The loop may have been given its mask from outside, which does not change."""
    for loop in (one for one in module.instructions(module.entry) if one.opcode == "while"):
        body = body_of(module, loop)
        for tokens in dict.fromkeys(part for part in loop.shape.parts if is_text(part)):
            if (
                body is not None
                and _writes_one(module, body, tokens)
                and _attends_to_all(module, body, tokens)
                and any(_is_causal(module, each, tokens.sizes[-1]) for each in (body, module.entry))
            ):
                work = _over_positions(module, body, tokens)
                return TokenWork(tokens.sizes[-1], tokens, work)
    return None


def _inside(
    module: Module, computation: int, entered: Sequence[str] = _ENTERED, depth: int = 0
) -> Iterator[tuple[int, Instruction]]:
    """The instructions of the computation and of all that it calls, with the number of their computation."""
    for one in module.instructions(computation):
        yield computation, one
        if one.opcode in entered and depth < XLA_CALL_DEPTH:
            for number in one.called:
                yield from _inside(module, number, entered, depth + 1)


def _writes_one(module: Module, computation: int, tokens: Shape) -> bool:
    """Whether something writes one token of each text at most, once: a loop inside may write all of them."""
    rows = tokens.elements // tokens.sizes[-1]
    for number, one in _inside(module, computation, _CALLS):
        shape = next(one.shape.arrays(), one.shape)
        if one.opcode not in _WRITES or shape.element != tokens.element or shape.elements != tokens.elements:
            continue
        beside = {each.id: each for each in module.instructions(number)}
        place = 1 if one.opcode == _WRITES[0] else -1
        written = beside.get(one.operands[place]) if len(one.operands) > 1 else None
        if written is not None and written.shape.elements <= rows:
            return True
    return False


def _attends_to_all(module: Module, computation: int, tokens: Shape) -> bool:
    """Whether a product has a score for each two positions: with a cache, only the new position attends."""
    length = tokens.sizes[-1]
    for number, one in _inside(module, computation):
        if not _multiplies(module, one):
            continue
        if one.opcode == "custom-call" and _ATTENTION in one.target:
            beside = {each.id: each for each in module.instructions(number)}
            queries = beside.get(one.operands[0]) if one.operands else None
            if queries is not None and length in queries.shape.sizes:
                return True
        shape = next(one.shape.arrays(), one.shape)
        if shape.sizes.count(length) >= _MATRIX and shape.elements >= tokens.elements * length:
            return True
    return False


def _is_causal(module: Module, computation: int, length: int) -> bool:
    """Whether positions are compared with positions, or the settings of attention say that it is causal."""
    for _, one in _inside(module, computation):
        if one.opcode == "custom-call" and _ATTENTION in one.target:
            if _CAUSAL in one.config:
                return True
        elif (
            one.opcode in ("compare", "constant")
            and one.element == _BOOLEAN
            and one.shape.sizes[-_MATRIX:] == (length, length)
            and (one.opcode == "constant" or one.direction in _ORDERS)
        ):
            return True
    return False


def _over_positions(module: Module, computation: int, tokens: Shape) -> dict[str, int]:
    """What depends on the tokens and has all positions, with the bytes that one position has to read as well."""
    given = _given_tokens(module.instructions(computation), tokens)
    depending, _ = Flow(module).forward(computation, given)
    return _among(module, computation, depending, tokens)


def _among(
    module: Module, computation: int, depending: set[Place], tokens: Shape, depth: int = 0
) -> dict[str, int]:
    """The same of a computation, of what is known to depend on the tokens, and of loops over layers in it."""
    length, rows = tokens.sizes[-1], tokens.elements
    instructions = module.instructions(computation)
    beside = {one.id: one for one in instructions}
    found: dict[str, int] = {}
    for one in instructions:
        if (computation, one.id) not in depending or one.opcode in (*SILENT, "conditional"):
            continue
        if one.opcode == "while":
            found |= _in_loop(module, computation, one, depending, tokens, depth)
            continue
        given = [beside[operand] for operand in one.operands if operand in beside]
        read = [array for each in given for array in each.shape.arrays()]
        made = next(one.shape.arrays(), one.shape)
        if _has_positions(made, length, rows):
            weights = [each for each in given if (computation, each.id) not in depending]
            found[one.name] = _kept(module, one, given, weights)
        elif any(_has_positions(each, length, rows) and each.elements > made.elements for each in read):
            found[one.name] = 0  # a sum or a choice over all positions
    return found


def _in_loop(
    module: Module, computation: int, loop: Instruction, depending: set[Place], tokens: Shape, depth: int
) -> dict[str, int]:
    body, given = body_of(module, loop), given_to(module, computation, loop)
    if body is None or given is None or depth >= XLA_CALL_DEPTH:
        return {}
    inside = turned(Flow(module), body, [(computation, number) in depending for number in given])
    return _among(module, body, inside, tokens, depth + 1) if inside is not None else {}


def _given_tokens(instructions: Sequence[Instruction], tokens: Shape) -> dict[int, Taint]:
    """The parameters that are the tokens, or of what a loop carries the parts that are."""
    return {
        one.parameter: [part == tokens for part in one.shape.parts]
        if one.shape.parts
        else one.shape == tokens
        for one in instructions
        if one.opcode == "parameter"
    }


def _has_positions(shape: Shape, length: int, rows: int) -> bool:
    return shape.elements >= rows and any(size == length or size % rows == 0 for size in shape.sizes)


def _kept(
    module: Module, one: Instruction, given: Sequence[Instruction], weights: Sequence[Instruction]
) -> int:
    """Of a product the weights, or the keys or values of all positions; of anything else nothing."""
    if not _multiplies(module, one):
        return 0
    large, kept = (
        [shape_bytes(each.shape) or 0 for each in side if each.rank >= _MATRIX] for side in (given, weights)
    )
    return max(kept) if kept else min(large, default=0)


def _multiplies(module: Module, one: Instruction) -> bool:
    if one.opcode == "custom-call":
        return "gemm" in one.target or "matmul" in one.target or _ATTENTION in one.target
    return one.opcode == "dot" or (
        one.opcode == "fusion" and any(each.opcode == "dot" for _, each in _inside(module, one.called[0]))
    )
