"""What a loop of a compiled program has to do turn by turn."""

from __future__ import annotations

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.loops import LoopWork, loop_work
from tests.analysis.xla.test_instruction_cost import F32, made, reads, shaped
from tests.builders.protobuf import field

S32, TUPLE = 4, 13
MATRIX = shaped(F32, 8, 8)
# What the loop carries: a counter, weights, a state, inputs, a sum.
PARTS = ((S32,), (F32, 8, 8), (F32, 8, 8), (F32, 8, 8), (F32, 8, 8))


def carried() -> bytes:
    """The shape of it all."""
    return field(
        3, field(2, TUPLE) + b"".join(field(4, field(2, e) + field(3, bytes(sizes))) for e, *sizes in PARTS)
    )


def part(name: str, at: int, index: int) -> bytes:
    """A part of what the turn was given."""
    return made(name, "get-tuple-element", at, MATRIX, reads(1), field(13, index))


def computation(number: int, *instructions: bytes) -> bytes:
    return field(3, field(1, f"c{number}") + b"".join(instructions) + field(5, number))


def work_in(*between: bytes, result: tuple[int, ...]) -> LoopWork:
    """Of a loop whose body has these instructions between what it is given (1 to 6) and what it returns."""
    body = computation(
        9,
        made("p", "parameter", 1, carried()),
        *(part(f"part.{index}", 2 + index, index) for index in range(len(PARTS))),
        made("one", "constant", 7, shaped(S32)),
        made("next", "add", 8, shaped(S32), reads(2, 7)),
        *between,
        made("root", "tuple", 99, carried(), reads(*result)),
    )
    loop = made("while.1", "while", 3, carried(), reads(1), field(38, 9))
    entry = computation(1, made("init", "parameter", 1, carried()), loop)
    return loop_work(Module(field(1, _adds() + _mixes() + _wraps() + body + entry + field(6, 1))))


def _adds() -> bytes:
    """A fused kernel that adds its operands."""
    a, b = (made(n, "parameter", at, MATRIX, field(9, at - 1)) for n, at in (("a", 1), ("b", 2)))
    return computation(20, a, b, made("sum", "add", 3, MATRIX, reads(1, 2)))


def _mixes() -> bytes:
    """One that multiplies them."""
    a, b = (made(n, "parameter", at, MATRIX, field(9, at - 1)) for n, at in (("a", 1), ("b", 2)))
    return computation(21, a, b, made("prod", "multiply", 3, MATRIX, reads(1, 2)))


def _wraps() -> bytes:
    """A computation that has one kernel: the sum of what it is given."""
    a, b = (made(n, "parameter", at, MATRIX, field(9, at - 51)) for n, at in (("a", 51), ("b", 52)))
    return computation(22, a, b, kernel("inner", 53, 51, 52, calls=20))


def kernel(name: str, at: int, *operands: int, calls: int = 21) -> bytes:
    return made(name, "fusion", at, MATRIX, reads(*operands), field(38, calls))


def test_what_depends_on_no_other_turn_may_leave() -> None:
    """Inputs times weights may; the state that uses the product may not."""
    found = work_in(kernel("gates", 10, 5, 3), kernel("state", 11, 10, 4), result=(8, 3, 11, 5, 6))
    assert found.leaving == {"gates", "next"}
    assert found.staying == {"state"}


def test_what_no_later_turn_needs_may_leave() -> None:
    """A gradient of the weights is only summed up."""
    found = work_in(
        kernel("state", 10, 4, 3),
        kernel("gradient", 11, 10, 5),
        kernel("sums", 12, 6, 11, calls=20),
        result=(8, 3, 10, 5, 12),
    )
    assert found.staying == {"state"}
    assert {"gradient", "sums"} <= found.leaving
    assert found.early == {"next"}
    assert found.sums == {"sums"}


def test_a_sum_that_is_computed_beside_other_work() -> None:
    """XLA wraps what it starts and waits for in a computation of its own; the kernel inside is what runs."""
    found = work_in(
        kernel("state", 10, 4, 3),
        made("start", "async-start", 12, carried(), reads(6, 10), field(38, 22)),
        made("sum", "async-done", 13, MATRIX, reads(12)),
        result=(8, 3, 10, 5, 13),
    )
    assert found.staying == {"state"}
    assert "inner" in found.leaving & found.sums


def test_a_sum_that_a_turn_reads_must_stay() -> None:
    found = work_in(kernel("sums", 10, 6, 5, calls=20), kernel("state", 11, 10, 4), result=(8, 3, 11, 5, 10))
    assert found.staying == {"sums", "state"}
    assert not found.sums


def test_a_recurrence_of_one_kernel_is_no_sum() -> None:
    found = work_in(kernel("decays", 10, 6, 3), result=(8, 3, 4, 5, 10))
    assert found.staying == {"decays"}


def test_programs_without_loops_or_that_call_themselves() -> None:
    assert loop_work(Module(b"damaged")) == LoopWork(*[frozenset()] * 4)
    calls = [made(f"call.{n}", "call", 10 + n, MATRIX, reads(4), field(38, 9)) for n in range(40)]
    found = work_in(*calls, kernel("state", 60, 4, 11), result=(8, 3, 60, 5, 6))
    assert found.staying == {"state"}
