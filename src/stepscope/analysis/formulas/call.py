"""One call of an op as formulas see it: its tensors, its other arguments, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from stepscope.analysis.formulas.constants import ITEM_BYTES
from stepscope.lazy import dataclass

LISTS = "TensorList"


class Tensor(NamedTuple):
    """`item` is the bytes of one element, None where the profile does not name its type."""

    shape: tuple[int, ...]
    item: int | None

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    def with_items(self, item: int | None) -> Tensor:
        """The same shape in another format."""
        return Tensor(self.shape, item)


class Cost(NamedTuple):
    """FLOPs, and the tensors that are read and written at least once each."""

    flops: int
    reads: list[Tensor]
    writes: list[Tensor]


@dataclass(frozen=True)
class Call:
    """`item` is the bytes of an element of lists of tensors, whose types no profile has; None where it is not known."""

    name: str
    shapes: list[Any]
    dtypes: list[Any]
    inputs: list[Any]
    item: int | None = None

    def tensor(self, place: int) -> Tensor:
        """The tensor at this place; a ValueError where there is none."""
        return Tensor(_sizes(self.shapes[place]), self._item(place))

    def has_tensor(self, place: int) -> bool:
        """Whether there is a tensor with dimensions at this place."""
        return place < len(self.shapes) and _is_shape(self.shapes[place]) and bool(self.shapes[place])

    def tensors(self, first: int = 0, until: int | None = None) -> list[Tensor]:
        """All single tensors with dimensions from this place on, and before the other."""
        places = range(len(self.shapes))[first:until]
        return [self.tensor(place) for place in places if self.has_tensor(place)]

    def members(self, place: int) -> list[Tensor]:
        """The tensors of the list at this place."""
        return [Tensor(_sizes(shape), self.item) for shape in self.shapes[place]]

    def lists(self) -> list[list[Tensor]]:
        """All lists of tensors."""
        return [self.members(place) for place, shape in enumerate(self.shapes) if _is_list(shape)]

    def get(self, place: int) -> str:
        """The argument at this place as text; empty where the profile has none."""
        return str(self.inputs[place]) if place < len(self.inputs) else ""

    def numbers(self, place: int) -> list[int]:
        """The argument at this place as a list of whole numbers; ValueError where it is none."""
        found = self.inputs[place]
        try:
            value = msgspec.json.decode(found) if isinstance(found, str) else found
        except msgspec.DecodeError as error:  # a ValueError only in newer versions of msgspec
            raise ValueError(str(error)) from None
        return [int(each) for each in (value if isinstance(value, list) else [value])]

    def is_true(self, place: int) -> bool:
        """Whether the argument at this place is True."""
        return self.get(place) == "True"

    def _item(self, place: int) -> int | None:
        return ITEM_BYTES.get(str(self.dtypes[place])) if place < len(self.dtypes) else None


def words(text: str) -> tuple[str, ...]:
    """The names in a text."""
    return tuple(text.split())


def broadcast(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """The shape that elementwise work on these tensors has."""
    found: list[int] = []
    for tensor in tensors:
        width = max(len(found), len(tensor.shape))
        left = [1] * (width - len(found)) + found
        right = [1] * (width - len(tensor.shape)) + list(tensor.shape)
        found = [b if a == 1 else a for a, b in zip(left, right, strict=True)]
    return tuple(found)


def widest(tensors: Sequence[Tensor]) -> int | None:
    """The bytes of an element of a result of these tensors."""
    items = [tensor.item for tensor in tensors]
    return None if not items or None in items else max(item for item in items if item is not None)


def _sizes(shape: Any) -> tuple[int, ...]:
    if not _is_shape(shape):
        raise ValueError("no shape")
    return tuple(shape)


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)


def _is_list(shape: Any) -> bool:
    return isinstance(shape, list) and bool(shape) and all(isinstance(each, list) for each in shape)
