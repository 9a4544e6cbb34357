"""A large product is computed for all positions of a sequence, and only some are needed: inference reads the last, a loss those with a label."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.host_ops import of_host_ops
from stepscope.analysis.findings.programs.parts import part_of_program
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.spread import OF_DEVICE
from stepscope.analysis.host.views import ONLY_VIEWS
from stepscope.analysis.labels import CountedLabels, counted_labels
from stepscope.analysis.ops.logits import Logits, ops_on_logits
from stepscope.analysis.serving.workload import INFERENCE, TRAINING
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.analysis.xla.unread_rows import Unread, unread_rows
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.useless_work import IGNORED_LABELS_LEAST, ROWS_LEFT_MOST, UNUSED_ROWS_LEAST
from stepscope.trace.frames import take_largest
from stepscope.units import percent

_PRODUCTS = ("aten::mm", "aten::addmm")
_AROUND = (*_PRODUCTS, "aten::linear", "aten::matmul")
_SELECT = "aten::select"
_VIEWS = (_SELECT, "aten::slice")
_FIRST_AXIS = '["","0",'  # concrete inputs of a select along it: the tensor, the axis, the index
# Kernels that read what their indices name: logits[samples, last], or gather with an index that has all classes.
_INDEX, _GATHER = "aten::index", "aten::gather"
# They compute each element by itself: whoever reads a part of what they make needs the same part of what they read.
_PASSES = (
    "aten::to",
    "aten::_to_copy",
    "aten::copy_",
    "aten::mul",
    "aten::div",
    "aten::tanh",
    "aten::mul_",
    "aten::div_",
)
_READ_IN_PART = (b"slice", b"gather")
_MATRIX = 2
_POSITIONS = 3  # dimensions of samples, positions and classes


_NO_LABEL_TITLE = "Logits are computed for positions whose label is ignored"
_NO_LABEL_FIX = (
    "Select the positions that have a label before the head: where = (labels.flatten() != -100).nonzero().squeeze(1); "
    "F.cross_entropy(head(hidden.flatten(0, 1)[where]), labels.flatten()[where]) is the same mean. A next-token loss shifts the labels first. "
    "nonzero() waits for the device: find the positions where the batch is made (in the collator), with a fixed number for each batch, or a "
    "few sizes filled up with ignored ones, which keeps shapes constant."
)


def find(case: Case) -> Finding | None:
    """By the labels that the capture counted; in inference, in compiled programs by their code, else by the ops."""
    found = _without_label(case) if case.device is not None else None
    if found or case.workload == TRAINING:
        return found
    if case.runs_programs:
        return _in_programs(case) if case.device is not None else None
    is_known = case.workload == INFERENCE and case.trace.info.framework == "pytorch"
    return _in_ops(case) if is_known else None


def _without_label(case: Case) -> Finding | None:
    """All that is computed on rows of logits of which a loss ignores many."""
    ignored = _ignored_by_losses(case)
    if not any(IGNORED_LABELS_LEAST <= share < 1 for share in ignored.values()):
        return None
    ops = case.ops.filter(pl.col("shapes").is_not_null(), pl.col("step").is_not_null()).select(
        "event", pl.col("name", "shapes").cast(pl.String)
    )
    named = ["name", "shapes"]
    on_logits = pl.concat(
        ops_on_logits(ops, logits).with_columns(ignored=pl.lit(share)) for logits, share in ignored.items()
    )
    # Rows of several losses are needed by the one that ignores the least.
    least = on_logits.group_by(named).agg(pl.col("ignored").min(), pl.col("is_product").first())
    mine = ops.join(least, on=named, maintain_order="left").filter(
        pl.col("ignored").is_between(IGNORED_LABELS_LEAST, 1, closed="left")
    )
    kernels = case.trace.kernels.select("event", "op").join(
        mine.select("ignored", "is_product", op="event"), on="op", maintain_order="left"
    )
    kept = 1 - pl.col("ignored")
    most = pl.when("is_product").then(kept.clip(lower_bound=ROWS_LEFT_MOST)).otherwise(kept)
    chosen = kernels.select("event", least=kept, most=most)
    logits, share = max(ignored.items(), key=lambda each: (each[1] < 1, each[1]))
    why = (
        f"computes on logits of {logits.rows:,} positions and {logits.classes:,} classes, and the loss ignores "
        f"{percent(share)} of the positions, as counted in the recorded steps."
    )
    evidence = {"positions": logits.rows, "ignored_share": share}
    # How much goes was counted, and only the device is spared.
    found = of_kernels(case, RULE, chosen, why, evidence=evidence, title=_NO_LABEL_TITLE, spread=OF_DEVICE)
    return found and msgspec.structs.replace(found, fix=_NO_LABEL_FIX)


def _ignored_by_losses(case: Case) -> dict[Logits, float]:
    """The share of ignored labels of losses with as many rows and classes."""
    by_size: dict[Logits, list[CountedLabels]] = {}
    for each in counted_labels(case.trace):
        by_size.setdefault(Logits(each.rows, each.classes), []).append(each)
    return {
        logits: sum(each.ignored * each.labels for each in alike) / sum(each.labels for each in alike)
        for logits, alike in by_size.items()
    }


def _in_programs(case: Case) -> Finding | None:
    """Products of which the code of the programs that ran reads a few rows, and what else computes all of them."""
    names = {hlo: name for name, _, hlo in programs_that_ran(case.trace)}
    if not any(part in hlo for hlo in names for part in _READ_IN_PART):
        return None
    fetched = case.trace.copies.filter(pl.col("direction").cast(pl.String) == "DtoH")["bytes"]
    unread = unread_rows([read_module(hlo) for hlo in names], int(take_largest(fetched)))
    if not unread:
        return None
    chosen = [_work_on_all_rows(case, *list(names.items())[one.program], one) for one in unread]
    return _found(case, pl.concat(chosen).unique("event"), max(one.times for one in unread))


def _work_on_all_rows(case: Case, hlo: bytes, name: str, unread: Unread) -> pl.DataFrame:
    """event, least, most of the product and the passes: of these instructions alone, for other layers have some that are alike."""
    product = (*unread.product, max(1 / unread.times, ROWS_LEFT_MOST))
    works = [product, *((*one, 1 / unread.times) for one in unread.passes)]
    schema = {"instruction": pl.String, "name": pl.String, "shapes": pl.String, "most": pl.Float64}
    known = pl.DataFrame(works, schema=schema, orient="row").with_columns(least=pl.lit(1 / unread.times))
    ran = part_of_program(case, name, hlo, known["instruction"].to_list())
    ops = case.ops.select("event", pl.col("name", "shapes").cast(pl.String)).unique("event")
    mine = ran.join(ops, on="event", maintain_order="left")
    chosen = mine.join(known, on=["instruction", "name", "shapes"], maintain_order="left")
    return chosen.select("event", "least", "most")


def _found(case: Case, chosen: pl.DataFrame, positions: int) -> Finding | None:
    reader = "kernel" if case.device is not None else "op"
    why = (
        f"computes a product for all of {positions:,} positions, of which no {reader} reads more than a part."
    )
    if case.device is None:
        return of_host_ops(case, RULE, chosen, why, {"positions": positions})
    return of_kernels(case, RULE, chosen, why, evidence={"positions": positions})


def _in_ops(case: Case) -> Finding | None:
    """Products of which no kernel reads the result as a whole, but a view takes a part."""
    ops = case.ops.filter(pl.col("shapes").is_not_null(), pl.col("step").is_not_null()).select(
        "event", "device_total_ns", pl.col("name", "shapes").cast(pl.String)
    )
    products = ops.filter(pl.col("name").is_in(_PRODUCTS))
    works = pl.col("device_total_ns") > 0 if case.device is not None else ~pl.col("name").is_in(ONLY_VIEWS)
    readers = ops.filter(works, ~pl.col("name").is_in(_AROUND))
    passes = readers.filter(pl.col("name").is_in(_PASSES))
    single = _single_rows(case, ops)
    taken = _taken(ops) | {(math.prod(shape), shape[1]): shape[0] for shape in single}
    read = _read(readers.filter(~pl.col("name").is_in(_PASSES))) | _cut_from(ops)
    read |= {(classes, classes) for _, classes in single}
    sizes = {text: _made(text) for text in products["shapes"].unique()}
    shares = {made: _share_read(made, read, passes) for made in set(sizes.values()) & set(taken)}
    cut = _shares_cut(case, ops, products)
    # Views that take all rows one after the other, as a recurrence its inputs, are read in parts, and leave none unread.
    shares = {made: max(share, cut.get(made, 0.0)) if share else 0.0 for made, share in shares.items()}
    unused = {text: made for text, made in sizes.items() if 0 < shares.get(made, 0.0) <= MAJORITY}
    if not unused or _is_fetched(case, unused.values()):
        return None
    positions = max(taken[made] for made in unused.values())
    over_all = [text for text in passes["shapes"].unique() if _first(text) in unused.values()]
    least = max(shares[made] for made in unused.values())
    most = max(least, ROWS_LEFT_MOST)
    chosen = [
        _kernels_of(case, products.filter(pl.col("shapes").is_in(list(unused)))["event"], least, most),
        _kernels_of(case, passes.filter(pl.col("shapes").is_in(over_all))["event"], least, least),
    ]
    return _found(case, pl.concat(chosen), positions)


def _kernels_of(case: Case, ops: pl.Series, least: float, most: float) -> pl.DataFrame:
    if case.device is None:
        kernels = ops
    else:
        kernels = case.trace.kernels.filter(pl.col("op").is_in(ops.implode()))["event"]
    return kernels.to_frame("event").with_columns(least=pl.lit(least), most=pl.lit(most))


def _is_fetched(case: Case, made: Collection[tuple[int, int]]) -> bool:
    """Whether a copy to the host has as many bytes as the result has elements, which is the least that all of it takes."""
    copies = case.trace.copies.filter(pl.col("direction").cast(pl.String) == "DtoH")["bytes"]
    return int(take_largest(copies)) > MAJORITY * min(elements for elements, _ in made)


def _shapes(text: str) -> list[list[int]]:
    try:
        return msgspec.json.decode(text, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return []


def _taken(ops: pl.DataFrame) -> dict[tuple[int, int], int]:
    """The tensors that a view or an index takes a part of: their elements and classes, and how many positions they have."""
    found = {}
    for text in ops.filter(pl.col("name").is_in((*_VIEWS, _INDEX, _GATHER)))["shapes"].unique():
        shape = next(iter(_shapes(text)), [])
        if len(shape) == _POSITIONS and shape[1] >= UNUSED_ROWS_LEAST:
            found[math.prod(shape), shape[-1]] = shape[1]
    return found


def _single_rows(case: Case, ops: pl.DataFrame) -> set[tuple[int, int]]:
    """Positions and classes of matrices of which one row is taken, as in logits[0, -1]: what reads it reads a vector."""
    selected = ops.filter(pl.col("name") == _SELECT).select("event", "shapes")
    given = case.trace.ops.select("event", inputs=pl.col("concrete_inputs").cast(pl.String)).drop_nulls()
    distinct = selected.join(given, on="event").select("shapes", "inputs").unique()
    of_rows = {
        text for text, inputs in distinct.iter_rows() if inputs.replace(" ", "").startswith(_FIRST_AXIS)
    }
    matrices = {tuple(shape) for text in of_rows for shape in _shapes(text)[:1] if len(shape) == _MATRIX}
    return {(rows, classes) for rows, classes in matrices if rows >= UNUSED_ROWS_LEAST}


def _shares_cut(case: Case, ops: pl.DataFrame, products: pl.DataFrame) -> dict[tuple[int, int], float]:
    """By elements and columns of a product: the rows that views take of it, all together, as a share of what the products make."""
    counts = Counter(_made(text) for text in products["shapes"])
    found: Counter[tuple[int, int]] = Counter()
    cuts = _cuts(case, ops)
    vectors = {shape for shape, _, _ in cuts if len(shape) == _MATRIX}
    for shape, axis, elements in cuts:
        if axis == 0 and len(shape) > _MATRIX and shape[1:] in vectors:
            continue  # samples, of each of which a view takes rows
        for size, classes in counts:
            is_all = size == math.prod(shape)
            if shape[-1] == classes and (is_all or (shape in vectors and size % math.prod(shape) == 0)):
                found[size, classes] += elements
    return {made: found[made] / max(1, made[0] * count) for made, count in counts.items()}


def _cuts(case: Case, ops: pl.DataFrame) -> list[tuple[tuple[int, ...], int, int]]:
    """Of the views that take rows: the shape of the tensor, the axis, and how many elements all of them take."""
    views = ops.filter(pl.col("name").is_in(_VIEWS)).select("event", "name", "shapes")
    given = case.trace.ops.select("event", inputs=pl.col("concrete_inputs").cast(pl.String)).drop_nulls()
    alike = views.join(given, on="event").group_by("name", "shapes", "inputs", maintain_order=True).len()
    found = []
    for name, text, inputs, count in alike.iter_rows():
        shape = tuple(next(iter(_shapes(text)), []))
        cut = _taken_along(name, shape, inputs)
        if cut is not None and cut[0] < len(shape) - 1 and cut[1] < shape[cut[0]]:
            axis, length = cut
            found.append((shape, axis, count * length * math.prod(shape) // shape[axis]))
    return found


def _taken_along(name: str, shape: tuple[int, ...], inputs: str) -> tuple[int, int] | None:
    """The axis of a view and how many positions it takes; None where that is not recorded."""
    try:
        _, *given = msgspec.json.decode(inputs, type=list[str])
        axis, first, *rest = (int(each) for each in given if each)
    except (msgspec.DecodeError, ValueError):
        return None
    if not -len(shape) <= axis < len(shape):
        return None
    axis %= len(shape)
    size = shape[axis]
    if name == _SELECT:
        return axis, 1
    start, end = (each + size if each < 0 else each for each in (first, rest[0] if rest else size))
    return axis, max(0, min(end, size) - max(0, start))


def _made(text: str) -> tuple[int, int]:
    """Elements and columns of a product of two matrices; what is added to it may come before them."""
    matrices = [shape for shape in _shapes(text) if len(shape) == _MATRIX]
    return (matrices[-2][0] * matrices[-1][1], matrices[-1][1]) if len(matrices) > 1 else (0, 0)


def _read(ops: pl.DataFrame) -> set[tuple[int, int]]:
    """Elements and columns of the tensors that these ops read."""
    return {
        (math.prod(shape), shape[-1])
        for name, text in ops.select("name", "shapes").unique().iter_rows()
        for shape in _shapes_read(name, _shapes(text))
        if len(shape) >= _MATRIX
    }


def _cut_from(ops: pl.DataFrame) -> set[tuple[int, int]]:
    """Elements and columns of one position of which a view takes some classes, as in logits[:, -1, 42:44]."""
    views = ops.filter(pl.col("name").is_in(_VIEWS)).sort("event")
    pairs = views.select("shapes", before=pl.col("shapes").shift(1), is_of=pl.col("name").shift(1) == _SELECT)
    found = set()
    for text, before in pairs.filter("is_of").select("shapes", "before").unique().iter_rows():
        shape, whole = next(iter(_shapes(text)), []), next(iter(_shapes(before)), [])
        if len(whole) == _POSITIONS and shape == [whole[0], whole[-1]]:
            found.add((math.prod(shape), shape[-1]))
    return found


def _shapes_read(name: str, shapes: list[list[int]]) -> list[list[int]]:
    """Those that the op reads as a whole: what an index takes shows in what reads it next, or in the shape of the index."""
    if name == _INDEX and shapes and len(shapes[0]) == _POSITIONS:
        return shapes[1:]
    if name == _GATHER and any(shape[-1:] == shapes[0][-1:] for shape in shapes[1:] if shape):
        return shapes[1:]
    return shapes


def _first(text: str) -> tuple[int, int]:
    """Elements and columns of the first tensor that an op reads."""
    shape = next(iter(_shapes(text)), [])
    return (math.prod(shape), shape[-1]) if shape else (0, 0)


def _share_read(made: tuple[int, int], read: set[tuple[int, int]], passes: pl.DataFrame) -> float:
    """The largest share of its rows that something reads; 0 if nothing reads any.

    A view that takes some columns of all rows, as of a gate and what it lets through, is read with fewer columns.
    """
    read = read | {each for each in _read(passes) if each[0] <= MAJORITY * made[0]}
    return max((elements for elements, columns in read if columns == made[1]), default=0) / max(1, made[0])


RULE: Rule[Case] = Rule(
    code="unused-rows",
    title="A product computes rows that nothing reads",
    turn=183,
    turn_without_device=96,
    page="ops",
    owns="products in inference if, after casts and other passes over the whole result, kernels read only some positions of it, or some columns of these, through views, an index or a gather; these passes count as well. In compiled programs: products if their code, or that of the program that uses the result, reads an eighth of the rows or less, and the passes over all rows. In PyTorch, also in training, if the capture counted that a loss ignores 40 % of its labels or more: all kernels of ops on rows of its logits, which are the head's product and its gradients, casts, and the loss; of the loss alone if other products make results of that shape, and nothing if other ops read all rows (`softmax`, `gather`). Without a device, the same by the ops of PyTorch, in inference",
    change="their time shrinks to the share of the rows that are read, at most to a tenth; passes over all rows shrink to the share that is read, or that has a label",
    fix={
        "pytorch": "Choose the positions before the product: head(hidden[:, -1]) instead of head(hidden)[:, -1]; where lengths differ, head(hidden[samples, last]).",
        "jax": "Choose the positions before the product: hidden[:, -1] @ head instead of (hidden @ head)[:, -1], in the same jitted function.",
        ANY: "Choose the positions before the product.",
    },
    find=find,
)
