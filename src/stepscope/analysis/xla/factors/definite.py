"""Matrices that the code of a compiled program shows to be symmetric and positive definite.

Those are sums of a diagonal and of kernels, such as exp(-|x_i - x_j|²), or products of an array with its own transpose. Signs and sizes
of what a program is given are not known: what is added to the diagonal counts as positive unless it is written as a negative number.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stepscope.analysis.xla.factors.values import Value, Values, number_of
from stepscope.analysis.xla.hlo_module import Instruction, numbers
from stepscope.analysis.xla.instruction_cost import ELEMENTWISE, is_matrix_product
from stepscope.analysis.xla.sorts import bounds_of
from stepscope.formats.protobuf import fields
from stepscope.registers.policy.useless_work import CALLS_DEEPEST, FOLLOWED_TERMS_MOST
from stepscope.trace.problems import Problems

_EQUAL = "EQ"
_CONTRACTED = ("lhs_contracting_dimensions", "rhs_contracting_dimensions")
Term = tuple[int, Value]


class Definite:
    """Looks at square matrices of `size` rows."""

    def __init__(self, values: Values, size: int) -> None:
        self._values = values
        self._size = size
        self._symmetric: dict[Value, bool] = {}
        self._left = FOLLOWED_TERMS_MOST

    def is_definite(self, matrix: Value) -> bool:
        """Whether it is symmetric, with a diagonal added to what is positive already."""
        terms = list(self._terms(matrix))
        diagonal = [value for sign, value in terms if sign > 0 and self._is_diagonal(value)]
        others = [(sign, value) for sign, value in terms if value not in diagonal]
        return (
            bool(diagonal)
            and bool(others)
            and all(sign > 0 and self._is_positive(value) for sign, value in others)
        )

    def _is_positive(self, value: Value, depth: int = 0) -> bool:
        """Whether it is a product with its own transpose, or a kernel, also scaled or in a sum."""
        one = self._values.one(value)
        if depth > CALLS_DEEPEST:
            return False
        if one.opcode == "add":
            terms = list(self._terms(value))
            return all(sign > 0 and self._is_positive(each, depth + 1) for sign, each in terms)
        if one.opcode in ("multiply", "divide"):
            return self._is_positive_product(value, depth)
        if one.opcode == "exponential":
            read = self._values.read(value)
            return bool(read) and self._is_negative(read[0]) and self.is_symmetric(value)
        return self._is_gram(value)

    def _is_positive_product(self, value: Value, depth: int) -> bool:
        factors = list(self._factors(value))
        if any(power < 0 and not self._is_number(each) for power, each in factors):
            return False
        if any(self._is_number(each) and (self._number(each) or 0.0) < 0 for _, each in factors):
            return False
        arrays = [each for _, each in factors if not self._is_number(each)]
        positive = [each for each in arrays if self._is_positive(each, depth + 1)]
        rest = [each for each in arrays if each not in positive]
        return bool(positive) and all(map(self.is_symmetric, rest))

    def _is_negative(self, value: Value, depth: int = 0) -> bool:
        """Whether the sign is turned around: of a distance, a kernel grows smaller with it."""
        one, read = self._values.one(value), self._values.read(value)
        if depth > CALLS_DEEPEST:
            return False
        if one.opcode == "negate":
            return True
        if one.opcode in ("multiply", "divide"):
            turned = [(self._number(each) or 0.0) < 0 or self._is_negative(each, depth + 1) for each in read]
            return turned.count(True) == 1
        return False

    def is_symmetric(self, value: Value, depth: int = 0) -> bool:
        """Whether its first two axes may be exchanged."""
        known = self._symmetric.get(value)
        if known is None:
            self._left -= 1
            known = self._left > 0 and depth <= FOLLOWED_TERMS_MOST and self._look(value, depth + 1)
            self._symmetric[value] = known
        return known

    def _look(self, value: Value, depth: int) -> bool:
        one, read = self._values.one(value), self._values.read(value)
        if one.opcode == "constant" or self._is_number(value):
            return one.shape.elements <= 1 or self._is_number(value)
        if self._is_mask(value) or self._is_gram(value) or self._is_distance(value):
            return True
        if one.opcode == "reduce" and read:  # over what is behind the first two axes
            return all(axis not in (0, 1) for axis in one.dimensions) and self.is_symmetric(read[0], depth)
        if one.opcode == "broadcast" and read:
            return one.dimensions == [0, 1] and self.is_symmetric(read[0], depth)
        if one.opcode in ("add", "subtract"):
            return self._are_symmetric([*self._terms(value)], depth)
        if one.opcode in ("multiply", "divide"):
            return self._are_symmetric([*self._factors(value)], depth)
        is_known = one.opcode in ELEMENTWISE and bool(read)
        return is_known and all(self.is_symmetric(each, depth) for each in read)

    def _are_symmetric(self, parts: list[Term], depth: int) -> bool:
        """Whether all parts are, or each that is not has its mirror image among them: v_i + v_j."""
        waiting: list[Term] = []
        for way, each in parts:
            mirror = next(
                (one for one in waiting if one[0] == way and self._are_mirrored(one[1], each)), None
            )
            if mirror is not None:
                waiting.remove(mirror)
            elif not self.is_symmetric(each, depth):
                waiting.append((way, each))
        return not waiting

    def _are_mirrored(self, first: Value, second: Value) -> bool:
        """Whether one array is laid along rows and along columns."""
        ones = [self._values.one(each) for each in (first, second)]
        sources = [self._values.read(each) for each in (first, second)]
        if any(one.opcode != "broadcast" for one in ones) or not sources[0] or sources[0] != sources[1]:
            return False
        return ones[1].dimensions == [1 - axis if axis in (0, 1) else axis for axis in ones[0].dimensions]

    def _is_distance(self, value: Value) -> bool:
        """Whether it is |x_i - x_j| or its square."""
        one, read = self._values.one(value), self._values.read(value)
        is_even = one.opcode == "abs" or (one.opcode == "multiply" and read[:1] == read[1:])
        if not is_even or not read or self._values.one(read[0]).opcode != "subtract":
            return False
        between = self._values.read(read[0])
        return len(between) == 2 and self._are_mirrored(*between)

    def _is_gram(self, value: Value) -> bool:
        """Whether an array is multiplied by itself, transposed; of a joined product a part is cut out."""
        one, read = self._values.one(value), self._values.read(value)
        start = 0
        if one.opcode == "slice" and read:
            bounds = bounds_of(one.slices)
            if len(bounds) != 2 or bounds[1] != (0, self._size) or bounds[0][1] - bounds[0][0] != self._size:
                return False
            start, value = bounds[0][0], read[0]
            one, read = self._values.one(value), self._values.read(value)
        if not is_matrix_product(one) or len(read) < 2 or _scale(one) <= 0:
            return False
        if list(_result(one)) == [self._size, self._size]:
            return self._are_alike(read[0], read[1]) and self._is_transposed(one, value)
        part = self._at(read[0], start)
        return part is not None and self._are_alike(part, read[1]) and self._is_narrow(read[1])

    def _are_alike(self, first: Value, second: Value) -> bool:
        """Whether two arrays are the same but for a positive scale, as 2z and z."""
        if first == second:
            return True
        sides = [list(self._factors(each)) for each in (first, second)]
        if any((self._number(each) or 0.0) < 0 for side in sides for _, each in side):
            return False
        one, other = ([term for term in side if not self._is_number(term[1])] for side in sides)
        return len(one) == len(other) and all(
            way == back and self._values.are_same(each, its)
            for (way, each), (back, its) in zip(one, other, strict=True)
        )

    def _at(self, value: Value, start: int) -> Value | None:
        """Of joined arrays the one that begins there."""
        one = self._values.one(value)
        if one.opcode != "concatenate" or one.dimensions != [0]:
            return None
        place = 0
        for each, number in zip(self._values.read(value), one.operands, strict=False):
            if place == start:
                return each
            place += self._values.one(Value(value.around, number)).shape.sizes[0]
        return None

    def _is_narrow(self, value: Value) -> bool:
        """Whether its sides differ: then only the product with its transpose has a side for each row."""
        sizes = [size for size in self._values.one(value).shape.sizes if size > 1]
        return len(sizes) == 2 and sizes[0] != sizes[1] and self._size in sizes

    def _is_transposed(self, one: Instruction, value: Value) -> bool:
        """Whether a product of an array with itself transposes one of the two: where its sides are alike, by what is contracted."""
        if self._is_narrow(self._values.read(value)[0]):
            return True
        same = one.operands[0] == one.operands[1]
        return same and _contracted(one, 0) == _contracted(one, 1) != []

    def _is_mask(self, value: Value) -> bool:
        """Whether it is true on the diagonal alone."""
        one, read = self._values.one(value), self._values.read(value)
        if one.opcode != "compare" or one.direction != _EQUAL:
            return False
        return sorted(axis for each in read for axis in self._positions(each)) == [0, 1]

    def _positions(self, value: Value) -> list[int]:
        """The axis along which it counts."""
        one, read = self._values.one(value), self._values.read(value)
        if one.opcode == "iota":
            return one.dimensions[:1] if one.rank > 1 else []
        is_laid = one.opcode == "broadcast" and bool(read) and self._values.one(read[0]).opcode == "iota"
        return one.dimensions if is_laid and len(one.dimensions) == 1 else []

    def _is_diagonal(self, value: Value) -> bool:
        """Whether there are zeros beside the diagonal, and no negative number is written on it."""
        one, read = self._values.one(value), self._values.read(value)
        if one.opcode == "select" and len(read) > 2:
            mask, on, beside = read
            return self._is_mask(mask) and self._number(beside) == 0.0 and (self._number(on) or 0.0) >= 0
        if one.opcode == "multiply":
            factors = [each for _, each in self._factors(value)]
            written = [self._number(each) or 0.0 for each in factors]
            return any(map(self._is_mask, factors)) and all(each >= 0 for each in written)
        return self._is_mask(value)

    def _is_number(self, value: Value) -> bool:
        """Whether it is one number, for all entries alike."""
        one = self._values.one(value)
        if one.opcode == "broadcast":
            read = self._values.read(value)
            return bool(read) and self._values.one(read[0]).shape.elements <= 1
        return one.shape.elements == 1

    def _number(self, value: Value) -> float | None:
        one = self._values.one(value)
        if one.opcode == "broadcast":
            read = self._values.read(value)
            return number_of(self._values.one(read[0])) if read else None
        return number_of(one)

    def _terms(self, value: Value, sign: int = 1, depth: int = 0) -> Iterator[Term]:
        """What is added and subtracted, with its sign; a library's product may add its third operand."""
        one, read = self._values.one(value), self._values.read(value)
        if depth < FOLLOWED_TERMS_MOST and one.opcode in ("add", "subtract") and len(read) == 2:
            yield from self._terms(read[0], sign, depth + 1)
            yield from self._terms(read[1], sign if one.opcode == "add" else -sign, depth + 1)
            return
        yield sign, value
        if is_matrix_product(one) and len(read) > 2:
            yield from self._terms(read[2], sign, depth + 1)

    def _factors(self, value: Value, power: int = 1, depth: int = 0) -> Iterator[Term]:
        one, read = self._values.one(value), self._values.read(value)
        is_product = one.opcode in ("multiply", "divide") and len(read) == 2
        if depth >= FOLLOWED_TERMS_MOST or not is_product or self._is_distance(value):
            yield power, value
            return
        yield from self._factors(read[0], power, depth + 1)
        yield from self._factors(read[1], power if one.opcode == "multiply" else -power, depth + 1)


def _result(one: Instruction) -> tuple[int, ...]:
    return next(one.shape.arrays(), one.shape).sizes


def _settings(one: Instruction) -> dict[str, object]:
    try:
        found = msgspec.json.decode(one.config).get("gemm_backend_config", {}) if one.config else {}
    except (msgspec.DecodeError, AttributeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _scale(one: Instruction) -> float:
    """What a library multiplies its product by."""
    found = _settings(one).get("alpha_real", 1)
    return float(found) if isinstance(found, (int, float)) else 0.0


def _contracted(one: Instruction, side: int) -> list[int]:
    """The axes of an operand that a product sums over."""
    found = _settings(one).get("dot_dimension_numbers")
    if isinstance(found, dict):
        axes = found.get(_CONTRACTED[side], [])
        return [int(axis) for axis in axes] if isinstance(axes, list) else []
    written = fields(one.contraction, Problems()) if one.contraction is not None else ()
    return [axis for key, value in written if key == side + 1 for axis in numbers(value)]
