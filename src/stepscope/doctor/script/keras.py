"""Keras' TensorBoard callback: which batches it profiles, and how many a script trains where the sizes are written out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stepscope.doctor.check import Sign
from stepscope.doctor.script.source import Call, Script, constant, last_part

TENSORBOARD = re.compile(r"(^|\.)keras\.callbacks\.TensorBoard$")
_DEFAULT_BATCH = 32
# Calls that make an array of a given shape: as a tuple, or one argument for each dimension.
_BY_SHAPE = (
    "zeros",
    "ones",
    "empty",
    "full",
    "random",
    "random_sample",
    "normal",
    "uniform",
    "standard_normal",
)
_BY_DIMENSIONS = ("rand", "randn")


def unreached_batches(script: Script) -> Iterator[Sign]:
    """Callbacks whose profile_batch begins after the last batch that any fit() trains."""
    fits = [call for call in script.calls if call.method == "fit"]
    totals = [_batches(script, call) for call in fits]
    known = [total for total in totals if total is not None]
    if not known or len(known) < len(totals):
        return
    for call in script.calls:
        first = first_batch(script, call) if TENSORBOARD.search(call.name) else None
        if first is not None and first > max(known):
            given = ast.unparse(call.keyword("profile_batch") or ast.Constant(first))
            what = f"Line {call.line}: profile_batch={given}; fit() trains {max(known)} batches."
            yield Sign(what, "keras", batches=str(max(known)))


def first_batch(script: Script, call: Call) -> int | None:
    """The first batch that is profiled; they are counted from 1, over all epochs."""
    given = script.meaning(call.keyword("profile_batch"))
    if isinstance(given, ast.Tuple | ast.List) and given.elts:
        return script.number(given.elts[0])
    text = constant(given)
    if isinstance(text, str):
        begin = re.match(r"\s*(\d+)", text)
        return int(begin[1]) if begin else None
    return script.number(given)


def _batches(script: Script, call: Call) -> int | None:
    """The number of batches that a fit() trains; None where that is not written out."""
    if call.has_unknown_keywords:
        return None
    epochs_given = call.keyword("epochs") or (call.node.args[3] if len(call.node.args) > 3 else None)
    epochs = 1 if epochs_given is None else script.number(epochs_given)
    given = call.keyword("steps_per_epoch")
    steps = script.number(given)
    if given is None or (constant(given) is None and isinstance(given, ast.Constant)):
        steps = _batches_of_data(script, call)
    return None if epochs is None or steps is None else epochs * steps


def _batches_of_data(script: Script, call: Call) -> int | None:
    """From the rows of an array that is made here and the batch size."""
    if call.keyword("validation_split") is not None:
        return None
    data = call.node.args[0] if call.node.args else call.keyword("x")
    rows = _rows(script, data)
    given = call.keyword("batch_size") or (call.node.args[2] if len(call.node.args) > 2 else None)
    size = _DEFAULT_BATCH if given is None else script.number(given)
    return None if rows is None or not size else -(-rows // size)


def _rows(script: Script, node: ast.expr | None) -> int | None:
    made = script.meaning(node)
    while (
        isinstance(made, ast.Call)
        and last_part(made.func) in ("astype", "reshape")
        and isinstance(made.func, ast.Attribute)
    ):
        if made.func.attr == "reshape":
            return None
        made = script.meaning(made.func.value)
    if not isinstance(made, ast.Call):
        return None
    name = last_part(made.func)
    if name in _BY_DIMENSIONS and made.args:
        return script.number(made.args[0])
    keywords = {each.arg: each.value for each in made.keywords}
    shape = keywords.get("size") or keywords.get("shape") or _shape_given(name, made.args)
    shape = script.meaning(shape)
    return script.number(shape.elts[0]) if isinstance(shape, ast.Tuple | ast.List) and shape.elts else None


def _shape_given(name: str, given: list[ast.expr]) -> ast.expr | None:
    """The shape among the positional arguments: the first tuple of a call that takes one."""
    if name not in _BY_SHAPE:
        return None
    return next((each for each in given if isinstance(each, ast.Tuple | ast.List)), None)
