"""FLOPs, bytes and names of instructions of compiled programs."""

from __future__ import annotations

from stepscope.analysis.xla.hlo_module import Module, Shape, numbers
from stepscope.analysis.xla.instruction_cost import Worker
from tests.builders.protobuf import field

F32, BF16 = 11, 16


def shaped(element: int, *sizes: int) -> bytes:
    """The field of an instruction that has its shape; sizes below 128."""
    return field(3, field(2, element) + field(3, bytes(sizes)))


def made(name: str, opcode: str, at: int, shape: bytes, *more: bytes) -> bytes:
    """An instruction in a computation."""
    return field(2, field(1, name) + field(2, opcode) + shape + field(35, at) + b"".join(more))


def named(path: str) -> bytes:
    """What the framework calls it."""
    return field(7, field(2, path))


def reads(*operands: int) -> bytes:
    """Operands by number."""
    return field(36, bytes(operands))


def work_of(name: str, *entry: bytes, others: bytes = b"") -> tuple[str, str | None, int | None, int | None]:
    """op, scope, FLOPs and bytes of the instruction of this name."""
    module = Module(
        field(1, others + field(3, field(1, "main") + b"".join(entry) + field(5, 1)) + field(6, 1))
    )
    body = {i.id: i for i in module.instructions(1)}
    found = Worker(module).work(next(i for i in body.values() if i.name == name), body)
    return found.op, found.scope, found.flops, found.bytes


A = made("a", "parameter", 1, shaped(F32, 4, 8))
B = made("b", "parameter", 2, shaped(F32, 8, 3))
CONTRACTS = field(30, field(1, bytes([1])) + field(2, bytes([0])))


def test_product() -> None:
    dot = made(
        "dot.1", "dot", 3, shaped(F32, 4, 3), reads(1, 2), CONTRACTS, named("jit(f)/layer/dot_general")
    )
    assert work_of("dot.1", A, B, dot) == ("dot_general", "jit(f)/layer", 2 * 4 * 3 * 8, 4 * (32 + 24 + 12))


def test_a_product_that_is_called_a_transposition() -> None:
    """XLA folds the one into the other and keeps the wrong name."""
    dot = made("dot.1", "dot", 3, shaped(F32, 4, 3), reads(1, 2), CONTRACTS, named("jit(f)/layer/transpose"))
    assert work_of("dot.1", A, B, dot)[0] == "dot_general"


def test_library_product() -> None:
    config = b'{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}'
    call = made(
        "custom-call.1",
        "custom-call",
        3,
        shaped(BF16, 4, 3),
        reads(1, 2),
        field(28, "__cublas$lt$matmul"),
        field(43, config),
    )
    assert work_of("custom-call.1", A, B, call)[2] == 2 * 4 * 3 * 8
    bare = made(
        "custom-call.1", "custom-call", 3, shaped(BF16, 4, 3), reads(1, 2), field(28, "__cublas$lt$matmul")
    )
    assert work_of("custom-call.1", A, B, bare)[2] is None


def test_elementwise_and_movement() -> None:
    add = made("add.1", "add", 3, shaped(F32, 4, 8), reads(1, 1))
    assert work_of("add.1", A, add) == ("add", None, 32, 4 * 64)
    moved = made("transpose.1", "transpose", 3, shaped(F32, 8, 4), reads(1))
    assert work_of("transpose.1", A, moved)[2] == 0


def test_reduction() -> None:
    """One addition for each element that goes away."""
    adds = field(
        3,
        field(1, "sum")
        + made("x", "parameter", 20, shaped(F32))
        + made("s", "add", 21, shaped(F32), reads(20, 20))
        + field(5, 9),
    )
    reduce = made("reduce.1", "reduce", 3, shaped(F32, 4), reads(1, 2), field(38, 9))
    assert work_of("reduce.1", A, B, reduce, others=adds)[2] == 32 - 4


def test_fusion() -> None:
    """What is inside; named by its product, or by its last op where XLA gave it no name."""
    inner = field(3, field(1, "fused") + A + B + made("d", "dot", 11, shaped(F32, 4, 3), reads(1, 2), CONTRACTS, named("jit(f)/mlp/dot_general"))
                  + made("t", "tanh", 12, shaped(F32, 4, 3), reads(11), named("jit(f)/mlp/tanh")) + field(5, 9))  # fmt: skip
    fusion = made("fusion.1", "fusion", 3, shaped(F32, 4, 3), reads(1, 2), field(38, 9))
    assert work_of("fusion.1", A, B, fusion, others=inner)[:3] == ("dot_general", "jit(f)/mlp", 2 * 96 + 12)


def total_of(*entry: bytes, others: bytes) -> int | None:
    """FLOPs of a run of the program."""
    code = others + field(3, field(1, "main") + b"".join(entry) + field(5, 1))
    return Worker(Module(field(1, code + field(6, 1)))).total()


def test_loops() -> None:
    """As often as XLA knows; unknown where it does not. The work inside is recorded by itself, and counts there."""
    body = field(3, field(1, "body") + A + made("s", "add", 21, shaped(F32, 4, 8), reads(1, 1)) + field(5, 9))
    loop = made("while.1", "while", 3, shaped(F32, 4, 8), reads(1), field(38, 9))
    assert total_of(A, loop, others=body) is None
    known = made(
        "while.1",
        "while",
        3,
        shaped(F32, 4, 8),
        reads(1),
        field(38, 9),
        field(43, b'{"known_trip_count":{"n":"5"}}'),
    )
    assert total_of(A, known, others=body) == 5 * 32
    assert work_of("while.1", A, known, others=body)[2:] == (None, None)


def test_a_program_that_calls_itself() -> None:
    """A file that lies cannot make us walk for ever."""
    loop = made("fusion.1", "fusion", 3, shaped(F32, 4), reads(1), field(38, 1))
    assert work_of("fusion.1", A, loop)[2] is None


def test_convolution_leaves_padding_out() -> None:
    """A row of 4 with a kernel of 3 and padding of 1: 4 · 3 meetings, of which two are with padding."""
    data = made("x", "parameter", 1, shaped(F32, 1, 4, 2))
    kernel = made("k", "parameter", 2, shaped(F32, 3, 2, 5))
    window = field(
        15, field(1, field(1, 3) + field(2, 1) + field(3, 1) + field(4, 1) + field(5, 1) + field(6, 1))
    )
    places = field(
        16,
        field(8, 2)
        + field(11, bytes([1]))
        + field(3, 1)
        + field(4, 2)
        + field(10, 2)
        + field(12, bytes([1])),
    )
    conv = made("conv.1", "convolution", 3, shaped(F32, 1, 4, 5), reads(1, 2), window, places)
    assert work_of("conv.1", data, kernel, conv)[2] == 2 * 2 * 5 * (4 * 3 - 2)


def test_fusions_that_enclose_themselves() -> None:
    """Ten to the power of eight ways down, each looked at once."""
    inside = b"".join(
        made(f"f.{at}", "fusion", at, shaped(F32, 4), field(38, bytes([2]))) for at in range(10, 20)
    )
    loop = field(3, field(1, "loop") + inside + field(5, 2))
    found = work_of("f.1", made("f.1", "fusion", 1, shaped(F32, 4), field(38, bytes([2]))), others=loop)
    assert found[0] == "f"


def test_numbers_without_an_end() -> None:
    """A packed number of any length is none, and costs no more than its bytes."""
    assert numbers(memoryview(b"\x05" + b"\xff" * 100_000)) == [5]
    assert numbers(memoryview(b"\xff" * 9 + b"\x01\x07")) == [2**64 - 1, 7]


def test_more_elements_than_there_can_be() -> None:
    assert Shape(F32, (2**40,) * 100_000).elements == 1 << 63
    assert Shape(F32, (2**40,) * 100_000 + (0,)).elements == 0
