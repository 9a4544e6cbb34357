"""The nodes of an execution trace: shapes, types and process groups, by the id that the profiler records as well.

PyTorch writes the file while the job runs: one that was cut off is read up to its last whole node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from stepscope.formats.source import Source
from stepscope.lazy import dataclass

NODES = {
    "record": pl.Int64,
    "name": pl.String,
    "shapes": pl.String,
    "dtypes": pl.String,
    "collective": pl.String,
    "group": pl.String,
    "group_size": pl.Int64,
    "dtype": pl.String,
    "elements": pl.Int64,
    "elements_out": pl.Int64,
    "item_bytes": pl.Int64,
}
_INIT = "## process_group:init ##"
_MOST_BYTES = 1 << 30
_TENSOR = re.compile(r"^Tensor\((.*)\)$")
_SCALARS = ("Int", "Double", "Float", "Bool", "Number")
_HOST_COLLECTIVE = re.compile(r"^(?:gloo|mpi|ucc):(\w+)$")
_ITEM = 4  # the place of an element's bytes in what a node says of a tensor
_LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class ExecutionTrace:
    """`nodes` has the columns of NODES; `ranks` the members of each process group, where they are listed."""

    nodes: pl.DataFrame
    ranks: dict[str, str]
    groups: dict[str, int]
    is_cut: bool
    bad_nodes: int


class _Side(msgspec.Struct):
    """What goes into an op, or comes out."""

    values: list[Any] = []
    shapes: list[Any] = []
    types: list[Any] = []


class _Attribute(msgspec.Struct):
    name: str
    value: Any = None


class _Node(msgspec.Struct):
    """A node of schema 1.0.3 and later; before it, inputs were lists beside each other and attributes fields."""

    name: str
    inputs: _Side | list[Any] = []
    input_shapes: list[Any] = []
    input_types: list[Any] = []
    attrs: list[_Attribute] = []
    rf_id: int | None = None


class _File(msgspec.Struct):
    nodes: list[msgspec.Raw] = []


def read_nodes(source: Source) -> ExecutionTrace | None:
    """The nodes of the file; None if it is something else, or larger than can be read."""
    if source.size() > _MOST_BYTES:
        return None
    data = b"".join(source.pieces())
    found, is_cut = _decoded(data), False
    if found is None:
        found, is_cut = _decoded(_up_to_last_node(data)), True
    if found is None:
        return None
    nodes = [node for raw in found.nodes if (node := _node(raw)) is not None]
    groups = list(_process_groups(nodes))
    rows = [row for node in nodes if (row := _row(node)) is not None]
    return ExecutionTrace(
        nodes=pl.DataFrame(rows, schema=NODES, orient="row").unique("record", keep="first"),
        ranks={name: ranks for name, ranks, _ in groups if ranks},
        groups={name: size for name, _, size in groups},
        is_cut=is_cut,
        bad_nodes=len(found.nodes) - len(nodes),
    )


def _decoded(data: bytes) -> _File | None:
    try:
        return msgspec.json.decode(data, type=_File)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _up_to_last_node(data: bytes) -> bytes:
    last = data.rfind(b"{", 0, max(0, data.rfind(b'"id"')))
    return data[: max(0, last)].rstrip().removesuffix(b",") + b"]}"


def _node(raw: msgspec.Raw) -> _Node | None:
    try:
        return msgspec.json.decode(raw, type=_Node)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _process_groups(nodes: list[_Node]) -> Iterator[tuple[str, str, int]]:
    """Name, ranks as JSON and size of each group; without a list of ranks, all of them are in it."""
    for node in nodes:
        if node.name != _INIT or not isinstance(node.inputs, _Side) or not node.inputs.values:
            continue
        try:
            listed = msgspec.json.decode(str(node.inputs.values[0]))
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
        for each in listed if isinstance(listed, list) else ():
            size = _whole(each.get("group_size")) if isinstance(each, dict) else None
            if size is not None:
                ranks = each.get("ranks") or list(range(min(size, 1 << 16)))
                yield str(each.get("pg_name")), msgspec.json.encode(ranks).decode(), size


def _row(node: _Node) -> tuple[Any, ...] | None:
    """The columns of NODES; None for a node that no record belongs to."""
    attributes = {each.name: each.value for each in node.attrs}
    record = _whole(attributes.get("rf_id", node.rf_id))
    if not record:
        return None
    side = (
        node.inputs
        if isinstance(node.inputs, _Side)
        else _Side(node.inputs, node.input_shapes, node.input_types)
    )
    shapes = msgspec.json.encode(side.shapes).decode()
    dtypes = msgspec.json.encode([_type(each) for each in side.types]).decode()
    return (record, node.name, shapes, dtypes, *_communication(node.name, attributes, side))


def _communication(name: str, attributes: dict[str, Any], side: _Side) -> tuple[Any, ...]:
    """collective, group, group_size, dtype, elements, elements_out, item_bytes."""
    collective = attributes.get("collective_name")
    if isinstance(collective, str) and collective:
        numbers = [_whole(attributes.get(key)) for key in ("pg_size", "in_msg_nelems", "out_msg_nelems")]
        group, dtype = (str(attributes.get(key) or "") or None for key in ("pg_name", "dtype"))
        return collective, group, numbers[0], dtype, numbers[1], numbers[2], None
    on_host = _HOST_COLLECTIVE.match(name)
    if on_host is None or not side.types:
        return (None,) * 7
    sizes = [_elements(shape) for shape in side.shapes]
    first = side.values[0] if side.values and isinstance(side.values[0], list) else []
    item = _whole(first[_ITEM]) if len(first) > _ITEM else None
    return on_host[1], None, None, _type(side.types[0]), sum(sizes), None, item


def _elements(shape: Any) -> int:
    count = 1
    for side in shape if isinstance(shape, list) else [0]:
        count *= side if isinstance(side, int) and side >= 0 else 0
    return min(count, _LARGEST >> 8)


def _type(name: Any) -> str:
    """As Kineto writes it: `float` for `Tensor(float)`, `Scalar`, `TensorList`."""
    text = str(name)
    found = _TENSOR.match(text)
    if found is not None:
        return found[1]
    if text.startswith("GenericList[Tensor"):
        return "TensorList"
    return "Scalar" if text in _SCALARS else ""


def _whole(value: Any) -> int | None:
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST else None
    )
