"""The class of a kernel: by its name, the op that launched it, and what is around that op."""

from __future__ import annotations

import polars as pl

CLASSES = (
    "matmul",
    "attention",
    "convolution",
    "elementwise",
    "reduction",
    "embedding",
    "optimizer",
    "layout",
    "copy",
    "communication",
    "other",
)
Class = pl.Enum(CLASSES)
PRODUCTS = ("matmul", "attention", "convolution")
FUSIBLE = ("elementwise", "reduction", "copy")

# The families of kernel names (stepscope.analysis.kernels.names).
_BY_FAMILY = {
    "gemm": "matmul",
    "gemv": "matmul",
    "rnn": "matmul",
    "conv": "convolution",
    "depthwise": "convolution",
    "attention": "attention",
    "elementwise": "elementwise",
    "random": "elementwise",
    "reduction": "reduction",
    "norm": "reduction",
    "optimizer": "optimizer",
    "movement": "copy",
    "collective": "communication",
}
_LAYOUT = r"(?i)nchwToNhwc|nhwcToNchw|nhwcAddPadding|nchwAddPadding|transpose_|transpose<|[^a-z]transpose$|im\d?d?2col|col2im|permute"
_BY_OP: tuple[tuple[str, str], ...] = (
    ("attention", r"attention"),
    ("convolution", r"(?i)(^|::|_)conv(olution|_?\d?d|_transpose|_general|_depthwise)"),
    (
        "matmul",
        r"^(aten::)?(_?(scaled|int|grouped)_)?(add)?(mm|bmm|mv|dot|vdot|baddbmm|addmv|matmul|linear|einsum)_?$"
        r"|(?i)matmul|dot_general|gemm|_rnn|^dot([._]\d+)*$|^triton_tem_fused_\w*mm",
    ),
    (
        "embedding",
        r"(?i)embedding|^aten::(index|index_select|index_put_|_index_put_impl_|gather|scatter\w*|take|index_add_?)$"
        r"|^(dynamic[-_](update[-_])?slice|gather|scatter)([._-]\w+)*$|GatherV2|ScatterNd|ResourceGather",
    ),
    ("optimizer", r"(?i)^aten::_fused_(adam|adamw|sgd|adagrad)_?$|ResourceApply"),
    ("reduction", r"(?i)softmax|_norm\b|layer_norm|batch_norm|^aten::(sum|mean|amax|amin|var|std|norm|cumsum|argmax|argmin|all|any|max|min)$|^triton_(red|per)_|^reduce"),
    ("copy", r"^aten::(copy_|cat|_foreach_copy_|fill_|zero_|clone|contiguous)$|^(copy|concatenate|pad|slice|broadcast)([._-]\w+)*$"),
    ("elementwise", r"^triton_poi_|^aten::_foreach_|^loop_"),
)  # fmt: skip
_COPIES_LIST = "aten::_foreach_copy_"


def classes(kernels: pl.DataFrame) -> pl.Series:
    """The class of each kernel (name, op, family, in_optimizer), judged once per distinct name, op and family."""
    keys = ["name", "op", "family"]
    distinct = kernels.select(keys).unique(maintain_order=True)
    judged = distinct.with_columns(pl.Series("class", _judge(distinct), dtype=Class))
    found = kernels.select(*keys, "in_optimizer").join(
        judged, on=keys, how="left", nulls_equal=True, maintain_order="left"
    )
    small = pl.col("class").is_in(["elementwise", "reduction", "copy", "other"])
    steps = pl.col("in_optimizer") & small
    return found.select(pl.when(steps).then(pl.lit("optimizer", dtype=Class)).otherwise("class")).to_series()


def are_products(ops: pl.Series) -> pl.Series:
    """Which names of ops say that they are products, where the op itself computes."""
    text = ops.cast(pl.String).fill_null("")
    patterns = [pattern for found, pattern in _BY_OP if found in PRODUCTS]
    named: pl.Series = pl.select(pl.any_horizontal(text.str.contains(each) for each in patterns)).to_series()
    return named


def _judge(distinct: pl.DataFrame) -> pl.Series:
    """What the name says of products and layouts counts before the op, the op before what the name says of the rest."""
    op, name = pl.col("op").cast(pl.String).fill_null(""), pl.col("name").cast(pl.String).fill_null("")
    by_family = pl.col("family").replace_strict(_BY_FAMILY, default="other", return_dtype=pl.String)
    by_op = pl.coalesce(*(pl.when(op.str.contains(pattern)).then(pl.lit(found)) for found, pattern in _BY_OP))
    sure = by_family.is_in([*PRODUCTS, "communication", "optimizer"])
    moves = by_family.is_in(["copy", "other", "elementwise", "reduction"])
    is_open = pl.col("family").is_in(["unknown", "fusion", "solver"])
    outside = by_op.is_in(PRODUCTS) & ~is_open  # a helper of a product: a sum, a padding
    return distinct.select(
        pl.when(moves & name.str.contains(_LAYOUT))
        .then(pl.lit("layout"))
        .when(op == _COPIES_LIST)  # its kernel is one that optimizers share
        .then(pl.lit("copy"))
        .when(sure)
        .then(by_family)
        .when(by_op.is_not_null() & ~outside)
        .then(by_op)
        .otherwise(by_family)
    ).to_series()
