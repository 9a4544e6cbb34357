"""Which ops of PyTorch work on a counted batch: on tensors with its samples and their positions, which are smaller without padding.

Weights, their gradients, images and batches of another size have the same sizes whatever the lengths of the samples. A single size
proves nothing, since layers have widths of 512 as texts have: a tensor is of the batch if it has both, or their product.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.classes import are_products
from stepscope.analysis.lengths import CountedLengths
from stepscope.analysis.shapes import Shape, shapes_in
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import STRIDES_MOST

_ON_SCORES = ("attention", "softmax", "bmm")
_LAYER, _TABLE = "aten::linear", "aten::embedding"
_IMAGES = r"^aten::(_?convolution|conv2d|(native_|cudnn_|miopen_)?batch_norm|\w*pool2d)"
_SHORTENS = r"^aten::(_?convolution|conv\d?d|\w*pool\dd)"


@dataclass(frozen=True)
class _Batch:
    """`positions`: of a sample, before layers shorten it and behind them. `others`: shapes of weights and of images."""

    samples: int
    positions: frozenset[int]
    others: frozenset[Shape]

    def has(self, shape: Shape, is_product: bool, is_of_scores: bool) -> bool:
        """Whether this is the shape of a tensor of the batch, as an input of such an op."""
        if len(shape) == 2 and is_product:
            return any(self._is_flat(size) for size in shape)
        if not shape or shape in self.others:
            return False
        first, *rest = shape
        if self._is_flat(first) or (first == self.samples and not self.positions.isdisjoint(rest)):
            return True
        if first in self.positions and rest[:1] == [self.samples]:
            return True
        # Of all heads, which attention may take for samples.
        of_heads = is_of_scores or rest[:1] == rest[1:]
        return len(rest) == 2 and of_heads and first % self.samples == 0 and rest[0] in self.positions

    def _is_flat(self, size: int) -> bool:
        return size % self.samples == 0 and size // self.samples in self.positions


def on_batch(ops: pl.DataFrame, counted: CountedLengths) -> pl.Series:
    """The events of the ops with a tensor of the batch; `ops` have event, name and shapes."""
    named = ops.select(
        "event", name=pl.col("name").cast(pl.String), shapes=pl.col("shapes").cast(pl.String)
    ).drop_nulls()
    kinds = named.select("name", "shapes").unique()
    kinds = kinds.with_columns(
        product=are_products(kinds["name"]),
        image=kinds["name"].str.contains(_IMAGES),
        shortens=kinds["name"].str.contains(_SHORTENS),
    )
    batch = _batch(kinds, counted)
    chosen = [
        (name, text)
        for name, text, is_product in kinds.select("name", "shapes", "product").iter_rows()
        if _works_on(batch, name, text, is_product)
    ]
    mine = pl.DataFrame(chosen, schema={"name": pl.String, "shapes": pl.String}, orient="row")
    found: pl.Series = named.join(mine, on=["name", "shapes"], how="semi")["event"]
    return found


def _works_on(batch: _Batch, name: str, text: str, is_product: bool) -> bool:
    is_of_scores = any(part in name for part in _ON_SCORES)
    return any(batch.has(shape, is_product, is_of_scores) for shape in shapes_in(text))


def _batch(kinds: pl.DataFrame, counted: CountedLengths) -> _Batch:
    samples, length = counted.shape
    others, is_shortened = set(), False
    for name, text, is_image, shortens in kinds.select("name", "shapes", "image", "shortens").iter_rows():
        shapes = shapes_in(text)
        first: Shape = shapes[0] if shapes else ()
        is_square = len(first) == 4 and first[2] == first[3]
        if is_image and is_square:
            others.add(first)
        elif shortens and first[:1] == (samples,) and length in first[2:]:
            is_shortened = True
        if name in (_LAYER, _TABLE):
            others.update(shapes[1:2] if name == _LAYER else shapes[:1])
    times = range(1, (STRIDES_MOST if is_shortened else 1) + 1)
    return _Batch(
        samples, frozenset(length // each for each in times if length % each == 0), frozenset(others)
    )
