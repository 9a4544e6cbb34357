"""What an instruction of a compiled program does: the framework's op it comes from, its FLOPs and its bytes.

FLOPs are those of XLA's own cost analysis, its transcendental functions included. Matrix product: 2 · output elements ·
contracted elements. Convolution: 2 · (input channels / groups) · output channels · batch · places where the kernel meets
data and not padding. Elementwise: one for each output element. Reduction: one for each element that goes away. A fusion
does what is inside it. Bytes: see `touched_bytes`.
A fusion is named after the matrix product inside it, if there is one, else as XLA named it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from stepscope.analysis.formulas.constants import ATTENTION_BACKWARD, ATTENTION_FORWARD
from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape, messages, numbers
from stepscope.analysis.xla.sizes.array_bytes import LARGEST
from stepscope.analysis.xla.sizes.touched_bytes import AROUND_OTHERS, touched_bytes
from stepscope.formats.protobuf import fields, signed
from stepscope.lazy import dataclass
from stepscope.registers.policy.tables import XLA_CALL_DEPTH, XLA_WINDOW_SIZE
from stepscope.trace.problems import Problems

# What products compute in; other types are of indices, masks and counters.
FORMATS = {
    10: "fp16", 11: "fp32", 12: "fp64", 15: "fp32", 18: "fp64", 16: "bf16", 2: "int8", 6: "int8", 21: "int4", 22: "int4",
    32: "fp4", **dict.fromkeys((19, 20, 23, 24, 25, 28, 29), "fp8"),
}  # fmt: skip
ELEMENTWISE = frozenset(
    (
        "abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "complex", "convert", "cosine",
        "count-leading-zeros", "divide", "erf", "exponential", "exponential-minus-one", "floor", "imag", "is-finite",
        "log", "log-plus-one", "logistic", "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power",
        "real", "reduce-precision", "remainder", "round-nearest-afz", "round-nearest-even", "rsqrt", "select",
        "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sqrt", "stochastic-convert",
        "subtract", "tan", "tanh", "xor",
    )
)  # fmt: skip
# Instructions that do nothing when the program runs.
SILENT = frozenset(
    ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "domain", "async-done")
)
PRODUCTS = ("dot", "convolution", "scaled-dot")
_PRODUCT_WORD = re.compile(r"(?i)dot|conv_|conv[123]d|matmul|gemm|einsum|attention")
_JAX_PRODUCTS = {"convolution": "conv_general_dilated"}
_NUMBER = re.compile(r"(\.\d+)+$")
_GEMM_CALLS = ("__cublas$", "__cublas", "__triton$gemm", "__onednn$matmul")
_TRIANGULAR_SOLVE = "__cublas$triangularSolve"
_ATTENTION_CALL = "__cudnn$fmha"
_CONV_CALLS = {
    "__cudnn$convForward": (0, 1, -1),
    "__cudnn$convBiasActivationForward": (0, 1, -1),
    "__cudnn$convBackwardInput": (-1, 1, 0),
    "__cudnn$convBackwardFilter": (0, -1, 1),
}  # fmt: skip


@dataclass(frozen=True)
class Work:
    """`op` and `scope` as the framework named them; FLOPs and bytes are None where they cannot be told.

    `shapes` are those of the operands, as a JSON list of lists.
    """

    op: str
    scope: str | None
    flops: int | None
    bytes: int | None
    shapes: str | None


def shapes_text(shapes: Iterable[Shape]) -> str | None:
    """Shapes of operands as a JSON list of lists; None without any."""
    texts = [f"[{','.join(map(str, shape.sizes))}]" for shape in shapes]
    return f"[{','.join(texts)}]" if texts else None


class Worker:
    """Tells the work of a module's instructions, each once."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._known: dict[int, int | None] = {}
        self._products: dict[int, Instruction | None] = {}

    def work(self, instruction: Instruction, beside: dict[int, Instruction]) -> Work:
        """The work of one instruction among those of its computation."""
        op, scope = self.named(instruction)
        read = [beside[number].shape for number in instruction.operands if number in beside]
        flops = None if instruction.opcode in AROUND_OTHERS else self.flops(instruction, beside)
        return Work(op, scope, flops, touched_bytes(self.module, instruction, beside), shapes_text(read))

    def total(self) -> int | None:
        """FLOPs of one run of the whole program."""
        return self._of_computation(self.module.entry, 0)

    def flops(self, instruction: Instruction, beside: dict[int, Instruction], depth: int = 0) -> int | None:
        """FLOPs of one run of the instruction."""
        try:
            found = self._flops(instruction, beside, depth)
        except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):
            return None
        return found if found is None or 0 <= found < LARGEST else None

    def _flops(self, made: Instruction, beside: dict[int, Instruction], depth: int) -> int | None:
        opcode = made.opcode
        if opcode in ELEMENTWISE:
            return made.shape.elements
        if opcode in PRODUCTS:
            return _product_flops(made, [beside[number].shape for number in made.operands])
        if opcode == "custom-call":
            return _call_flops(made, [beside[number].shape for number in made.operands])
        if not made.called:
            return _sort_flops(made, beside) if opcode == "sort" else 0
        inner = [self._of_computation(number, depth + 1) for number in made.called]
        if opcode in ("fusion", "call", "async-start"):
            return _sum(inner)
        return _repeated(made, beside, inner)

    def _of_computation(self, number: int, depth: int) -> int | None:
        """The sum over a computation; a file that lies cannot make it nest for ever."""
        if depth > XLA_CALL_DEPTH:
            return None
        if number not in self._known:
            body = {i.id: i for i in self.module.instructions(number)}
            self._known[number] = _sum(self.flops(i, body, depth) for i in body.values())
        return self._known[number]

    def product_of(self, instruction: Instruction, depth: int = 0) -> Instruction | None:
        """The matrix product that it is or has inside."""
        if instruction.opcode in PRODUCTS or is_library_product(instruction):
            return instruction
        if instruction.opcode != "fusion" or depth > XLA_CALL_DEPTH:
            return None
        inside = (self._product_in(number, depth) for number in instruction.called)
        return next((found for found in inside if found is not None), None)

    def _product_in(self, number: int, depth: int) -> Instruction | None:
        """The first matrix product of a computation. One that encloses itself is looked into once."""
        if number not in self._products:
            self._products[number] = None
            found = (self.product_of(i, depth + 1) for i in self.module.instructions(number))
            self._products[number] = next((each for each in found if each is not None), None)
        return self._products[number]

    def named(self, instruction: Instruction) -> tuple[str, str | None]:
        """The op that the instruction comes from, and its scope."""
        product = self.product_of(instruction)
        path = product.op_name if product is not None else ""
        path = path or instruction.op_name or self._inner_name(instruction)
        scope, _, op = path.rpartition("/")
        if "(" in op:  # a transformation, such as jvp(layer), and no op
            scope, op = path, ""
        if product is not None and not _PRODUCT_WORD.search(op):
            # XLA folds a transposition into the product before it, and calls the product that.
            op = (
                _JAX_PRODUCTS.get(product.opcode, "dot_general")
                if path.startswith("jit(")
                else product.opcode
            )
        return op or _NUMBER.sub("", instruction.name) or instruction.opcode, scope or None

    def _inner_name(self, instruction: Instruction) -> str:
        """XLA leaves fusions that it made itself without a name; the last op inside says what they are for."""
        inside = [i for number in instruction.called[:1] for i in self.module.instructions(number)]
        return next((i.op_name for i in reversed(inside) if i.op_name and i.opcode not in SILENT), "")


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _repeated(made: Instruction, beside: dict[int, Instruction], inner: list[int | None]) -> int | None:
    """What runs its computations more than once, or only one of them."""
    if made.opcode == "conditional":
        return None if None in inner else max(value or 0 for value in inner)
    once = _sum(inner)
    if once is None:
        return None
    if made.opcode == "while":
        trips = known_trips(made)
        return None if trips is None else once * trips
    first = beside[made.operands[0]].shape.elements
    if made.opcode == "reduce":
        return once * max(0, first - made.shape.elements)
    if made.opcode == "reduce-window":
        return once * made.shape.elements * (math.prod(size for size, *_ in _window(made)) - 1)
    if made.opcode == "scatter":
        return once * beside[made.operands[-1]].shape.elements
    if made.opcode == "map":
        return once * made.shape.elements
    return _sort_flops(made, beside) if made.opcode == "sort" else 0


def _sort_flops(made: Instruction, beside: dict[int, Instruction]) -> int:
    count = beside[made.operands[0]].shape.elements
    return count * max(0, count - 1).bit_length()


def known_trips(made: Instruction) -> int | None:
    """How many turns the loop takes; None where the program does not say it."""
    try:
        found = _config(made).get("known_trip_count", {}).get("n")
        return int(found) if found is not None else None
    except (AttributeError, TypeError, ValueError):
        return None


def _config(made: Instruction) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(made.config) if made.config else {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def is_matrix_product(made: Instruction) -> bool:
    """Whether it multiplies matrices itself, or has a library do so."""
    return made.opcode == "dot" or (made.opcode == "custom-call" and _calls_product(made))


def _calls_product(made: Instruction) -> bool:
    return made.target.startswith(_GEMM_CALLS) and made.target != _TRIANGULAR_SOLVE


def is_library_product(made: Instruction) -> bool:
    """Whether a library multiplies matrices or convolves there."""
    return made.opcode == "custom-call" and (_calls_product(made) or made.target in _CONV_CALLS)


def _call_flops(made: Instruction, read: list[Shape]) -> int | None:
    """A library's matrix product says what it contracts in its settings; of other calls nothing is known."""
    if made.target in _CONV_CALLS:
        result = made.shape.parts[0] if made.shape.parts else made.shape
        shapes = [result if place < 0 else read[place] for place in _CONV_CALLS[made.target]]
        return _convolution(made, shapes[0], shapes[1], shapes[2])
    if made.target.startswith(_ATTENTION_CALL):
        return _attention(made, read)
    if not _calls_product(made):
        return None if made.target.startswith(("__cudnn", _TRIANGULAR_SOLVE)) else 0
    settings = _config(made)
    found = settings.get("gemm_backend_config", settings.get("onednn_matmul_config", {}))
    contracted = found["dot_dimension_numbers"]["lhs_contracting_dimensions"]
    result = made.shape.parts[0] if made.shape.parts else made.shape
    return 2 * result.elements * math.prod(read[0].sizes[int(at)] for at in contracted)


def dimension_numbers(made: Instruction) -> tuple[object, ...]:
    """Which dimensions of its operands a product contracts, in a form that can be compared."""
    settings = _config(made).get("gemm_backend_config")
    contracted = settings.get("dot_dimension_numbers") if isinstance(settings, dict) else None
    parts = (made.contraction, made.convolution, made.window)
    return (str(contracted), *(part.tobytes() if part is not None else b"" for part in parts))


def _attention(made: Instruction, read: list[Shape]) -> int:
    """cuDNN's attention says how large its scores are: two products with the depth forward, five backward."""
    settings = _config(made)["cudnn_fmha_backend_config"]
    scores = math.prod(int(size) for size in settings["intermediate_tensor_shape"]["dimensions"])
    products = sum(ATTENTION_BACKWARD) if "Backward" in made.target else ATTENTION_FORWARD
    whole = 2 * products * scores * read[0].sizes[-1]
    return whole // 2 if "CAUSAL" in str(settings.get("mask_type")) else whole


def _product_flops(made: Instruction, read: list[Shape]) -> int:
    if made.opcode == "convolution":
        return _convolution(made, read[0], read[1], made.shape)
    contracted: list[int] = []
    for key, value in fields(made.contraction, Problems()) if made.contraction is not None else ():
        if key == 1:
            contracted += numbers(value)
    return 2 * made.shape.elements * math.prod(read[0].sizes[at] for at in contracted)


def _convolution(made: Instruction, data: Shape, kernel: Shape, output: Shape) -> int:
    """As a forward convolution of these shapes, whichever of the three is computed."""
    places: dict[int, list[int]] = {}
    for key, value in fields(made.convolution, Problems()) if made.convolution is not None else ():
        places.setdefault(key, []).extend(numbers(value))
    at = {key: found[0] for key, found in places.items()}
    met = 1
    for axis, (size, stride, low, dilation, base) in enumerate(_window(made)):
        into = data.sizes[places[11][axis]]
        out = output.sizes[places[12][axis]]
        met *= _meetings(size, stride, low, dilation, base, into, out)
    # Fields that are 0 are not written.
    channels = data.sizes[at.get(8, 0)] // made.groups
    outputs = output.sizes[at.get(10, 0)]
    batch = data.sizes[at.get(7, 0)] // made.batch_groups
    return 2 * channels * outputs * batch * met


def _meetings(size: int, stride: int, low: int, dilation: int, base: int, into: int, out: int) -> int:
    """How often a place of the kernel meets data, along one axis: o with 0 <= o·stride + k·dilation - low < length."""
    length = (into - 1) * base + 1 if into else 0
    if size > XLA_WINDOW_SIZE:
        return size * out  # no kernel; counting would take longer than the padding matters
    return sum(_places_met(k * dilation - low, stride, base, length, out) for k in range(size))


def _places_met(shift: int, stride: int, base: int, length: int, out: int) -> int:
    """How many of the outputs 0, 1, … meet data at `o·stride + shift`, which only every `base`-th place holds."""
    first = max(0, -(shift // stride))
    last = min(out - 1, (length - 1 - shift) // stride)
    common = math.gcd(stride, base)
    if last < first or shift % common:
        return 0
    every = base // common
    wanted = (-shift // common) * pow(stride // common, -1, every) % every if every > 1 else 0
    first += (wanted - first) % every
    return (last - first) // every + 1 if first <= last else 0


def _window(made: Instruction) -> list[tuple[int, int, int, int, int]]:
    """size, stride, padding before, dilation of the window and of the data, for each axis."""
    found = []
    for dimension in messages(made.window, 1) if made.window is not None else ():
        values = {key: value for key, value in fields(dimension, Problems()) if isinstance(value, int)}
        low = signed(values.get(3, 0))
        found.append(
            (values.get(1, 1), values.get(2, 1) or 1, low, values.get(5, 1) or 1, values.get(6, 1) or 1)
        )
    return found
