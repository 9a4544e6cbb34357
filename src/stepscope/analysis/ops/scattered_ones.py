"""One-hot matrices of PyTorch that are written by hand: ones scattered into zeros, one in each row."""

from __future__ import annotations

import math

import msgspec
import polars as pl

from stepscope.lazy import dataclass
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_OPS = r"^aten::(scatter_?|zero_)$"
_NODE = r"Backward\d*$"


@dataclass(frozen=True)
class Scattered:
    """A one-hot matrix with its number of rows and classes, made from `start_ns` on."""

    track: int
    start_ns: int
    rows: int
    classes: int

    @property
    def side(self) -> tuple[int, int]:
        """Its sizes as those of a matrix."""
        return self.rows, self.classes


def scattered_ones(trace: Trace) -> list[Scattered]:
    """The matrices, in order: of zeros that were made last on the same thread, outside of the backward pass."""
    events = trace.events
    wanted = is_named(events, _OPS) & (events["kind"] == "op") & events["step"].is_not_null()
    if not wanted.any():
        return []
    on_node = ancestors(events, is_named(events, _NODE)).is_not_null()
    rows = events.select("id", "track", "start_ns", "name").filter(wanted & ~on_node)
    texts = trace.ops.select(
        id="event", shapes=pl.col("shapes").cast(pl.String), inputs=pl.col("concrete_inputs").cast(pl.String)
    )
    rows = rows.join(texts, on="id").sort("track", "start_ns", "id")
    columns = rows.select("track", "start_ns", pl.col("name").cast(pl.String), "shapes", "inputs")
    found: list[Scattered] = []
    zeros: dict[int, tuple[int, list[int]]] = {}
    for track, start, name, shapes, inputs in columns.iter_rows():
        sizes = _decode(shapes, list[list[int]])
        if name == "aten::zero_":
            zeros[track] = (start, sizes[0] if sizes else [])
        elif track in zeros and _writes_a_one_in_each_row(sizes, inputs, zeros[track][1]):
            rows_of = math.prod(sizes[0][:-1])
            found.append(Scattered(track, zeros[track][0], rows_of, sizes[0][-1]))
    return found


def _writes_a_one_in_each_row(sizes: list[list[int]], inputs: str | None, zeros: list[int]) -> bool:
    """Whether an op scatters the number 1 along the last axis of these zeros, at one place of each row."""
    values = _decode(inputs, list[str])
    try:
        matrix, _, places, of_number, *_ = sizes
        _, axis, _, number, *_ = values
    except ValueError:
        return False
    if matrix != zeros or len(zeros) < 2 or of_number:
        return False
    last = len(zeros) - 1
    return places == [*zeros[:-1], 1] and axis in (str(last), "-1") and number in ("1", "1.")


def _decode(text: str | None, kind: type) -> list:  # type: ignore[type-arg]
    try:
        return list(msgspec.json.decode(text or "[]", type=kind))
    except (msgspec.DecodeError, ValueError):
        return []
