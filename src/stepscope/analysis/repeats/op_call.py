"""An op that Python called, with what is recorded of its inputs."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property

import msgspec

from stepscope.lazy import dataclass

Shape = tuple[int, ...]
INTEGERS = "int"
NUMBERS = "float"
_PREFIX = "aten::"
_INTEGER_TYPES = frozenset(
    ("long", "long int", "int", "short", "short int", "unsigned char", "signed char", "char", "bool")
)
_FLOAT_TYPES = frozenset(("float", "double", "c10::BFloat16", "c10::Half", "c10::complex<float>"))
_TYPES_OF_PYTHON = ("double", "long", "long int", "bool")
_LIST = "TensorList"


@dataclass(frozen=True)
class Tensor:
    """An input: its place among the inputs, its shape, and whether it holds integers or other numbers, None where that is not recorded.

    `of_python`: without axes and of the type that numbers of Python have.
    """

    place: int
    shape: Shape
    kind: str | None
    of_python: bool = False

    @property
    def size(self) -> int:
        """Its elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Op:
    """What is the same in all calls of an op with equal inputs; shapes, types and numbers among the inputs are as recorded."""

    name: str
    shapes: str | None
    dtypes: str | None
    inputs: str | None

    @cached_property
    def base(self) -> str:
        """Its name, whether it works in place or not."""
        name = self.name.removeprefix(_PREFIX)
        return name.removesuffix("_") if self.is_in_place else name

    @property
    def is_in_place(self) -> bool:
        """Whether its first input is its result."""
        return self.name.endswith("_") and not self.name.endswith("__")

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """Its inputs that are arrays, those in lists too; a number that is computed with counts as an array without axes."""
        found = []
        for place, (shape, kind) in enumerate(
            zip(_decoded(self.shapes), _decoded(self.dtypes), strict=False)
        ):
            if not isinstance(shape, list) or not isinstance(kind, str):
                continue
            if kind in _INTEGER_TYPES or kind in _FLOAT_TYPES:
                what = INTEGERS if kind in _INTEGER_TYPES else NUMBERS
                found.append(Tensor(place, _sizes(shape), what, not shape and kind in _TYPES_OF_PYTHON))
            elif kind == _LIST:
                found += [Tensor(place, _sizes(each), None) for each in shape if isinstance(each, list)]
        return tuple(found)

    @cached_property
    def count_by_size(self) -> Counter[int]:
        """How many of its inputs have a number of elements, for each such number."""
        return Counter(each.size for each in self.tensors)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """What was recorded of inputs that are numbers, lists of numbers or truth values: a text for each input."""
        return tuple(each if isinstance(each, str) else "" for each in _decoded(self.inputs))

    def number_at(self, place: int) -> str:
        """The text of one of them; empty where none was recorded."""
        return self.numbers[place] if place < len(self.numbers) else ""

    def list_at(self, place: int) -> list[int] | None:
        """The whole numbers of an input, one or a list of them."""
        try:
            found = msgspec.json.decode(self.number_at(place))
        except (msgspec.DecodeError, RecursionError):
            return None
        listed = found if isinstance(found, list) else [found]
        return listed if all(type(each) is int for each in listed) else None


@dataclass(frozen=True)
class OpCall:
    """A call of an op. `home`: the module call around it, or none. `sizes`: the elements of its results, None where they are not known; `counts`: they may be integers."""

    event: int
    track: int
    start_ns: int
    home: int | None
    op: Op
    sizes: frozenset[int] | None
    counts: bool


def _decoded(text: str | None) -> list[object]:
    try:
        return msgspec.json.decode(text or "[]", type=list[object])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return []


def _sizes(shape: list[object]) -> Shape:
    return tuple(size for size in shape if isinstance(size, int))
