"""Which ops compute on rows of logits: the product that makes them, the loss, what comes between, and their backward passes."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import polars as pl

from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import LOGITS_MORE

_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm")
_ADDING = ("aten::addmm", "aten::baddbmm")
_SOFTMAX = "aten::_log_softmax"
_LOSSES = ("aten::nll_loss_forward", "aten::nll_loss2d_forward")
_OF_LOSS = (
    _SOFTMAX,
    "aten::_log_softmax_backward_data",
    *_LOSSES,
    "aten::nll_loss_backward",
    "aten::nll_loss2d_backward",
)
# These read all rows for something else: distillation, a policy, a penalty.
_OTHER_READERS = ("aten::_softmax", "aten::logsumexp", "aten::gather", "aten::kl_div")
_SCHEMA = {"name": pl.String, "shapes": pl.String, "is_product": pl.Boolean}


@dataclass(frozen=True)
class Logits:
    """`rows` and `classes` are those of the loss: padded classes are cut off before it, and a position may be."""

    rows: int
    classes: int

    def are(self, shape: list[int]) -> bool:
        """Whether a tensor of this shape has such rows; the classes come last, or second as a loss wants them."""
        return any(self._has(shape, place) for place in {1, len(shape) - 1} if 0 < place < len(shape))

    def are_any_way(self, shape: list[int]) -> bool:
        """The same where the classes may come first, as in the product for the weights' gradient."""
        return self.are(shape) or (len(shape) > 1 and any(self._has(shape, place) for place in (0, -2)))

    def _has(self, shape: list[int], place: int) -> bool:
        rows, classes = math.prod(shape) // max(1, shape[place]), shape[place]
        return (
            self.rows <= rows <= LOGITS_MORE * self.rows
            and self.classes <= classes <= LOGITS_MORE * self.classes
        )


def ops_on_logits(ops: pl.DataFrame, logits: Logits) -> pl.DataFrame:
    """name, shapes, is_product of such ops; nothing where something else than the loss reads all rows.

    `ops`: name, shapes. Where more products make such a result than there are losses, as layers of that width do, only the ops
    of the loss itself are sure to be its own.
    """
    kinds = [(name, text, count, _shapes(text)) for name, text, count in _counted(ops).iter_rows()]
    losses = _count(kinds, logits, _LOSSES)
    if _count(kinds, logits, (_SOFTMAX,)) > losses or _count(kinds, logits, _OTHER_READERS):
        return pl.DataFrame(schema=_SCHEMA)
    made = sum(count for name, _, count, shapes in kinds if logits.are(_made(name, shapes)))
    found = [
        (name, text, name in _PRODUCTS)
        for name, text, _, shapes in kinds
        if (made <= losses or name in _OF_LOSS) and _is_on(logits, name, shapes)
    ]
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


_Kind = tuple[str, str, int, list[list[int]]]


def _counted(ops: pl.DataFrame) -> pl.DataFrame:
    return ops.group_by("name", "shapes").len().sort("name", "shapes")


def _count(kinds: Iterable[_Kind], logits: Logits, names: tuple[str, ...]) -> int:
    """How many of these ops read logits first."""
    return sum(
        count for name, _, count, shapes in kinds if name in names and shapes and logits.are(shapes[0])
    )


def _is_on(logits: Logits, name: str, shapes: list[list[int]]) -> bool:
    if name not in _PRODUCTS:
        return any(logits.are(shape) for shape in shapes)
    operands = _operands(name, shapes)
    return logits.are(_made(name, shapes)) or any(logits.are_any_way(shape) for shape in operands)


def _made(name: str, shapes: list[list[int]]) -> list[int]:
    """The shape of what a product makes."""
    operands = _operands(name, shapes) if name in _PRODUCTS else []
    if len(operands) < 2 or min(len(each) for each in operands) < 2:
        return []
    return [*operands[0][:-1], operands[1][-1]]


def _operands(name: str, shapes: list[list[int]]) -> list[list[int]]:
    """The two matrices; what is added comes before them."""
    first = int(name in _ADDING)
    return shapes[first : first + 2]


def _shapes(text: str) -> list[list[int]]:
    try:
        return msgspec.json.decode(text, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return []
