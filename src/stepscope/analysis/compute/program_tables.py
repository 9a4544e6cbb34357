"""Embedding tables of compiled programs: gradients that are scattered into an array of the table's size, and passes over all of it."""

from __future__ import annotations

import math

import msgspec
import polars as pl

from stepscope.registers.calibration.kernels import (
    ADDED_ROWS_TENSORS,
    LOOKUP_BEST,
    LOOKUP_WORST,
    PARAMETER_BYTES,
    PLAIN_UPDATE_TENSORS,
    SPARSE_SORT_BYTES,
    STATE_TENSORS,
    TABLE_PASS_SLOWER,
)
from stepscope.registers.policy.device_findings import FEW_ROWS_OF_TABLE
from stepscope.trace.lookup import distinct
from stepscope.trace.schema import Columns
from stepscope.trace.trace import Trace

_SCATTERS = r"(^|[_.-])scatter"
# What only reads or writes arrays from end to end.
_PASSES = ("elementwise", "copy", "optimizer", "reduction", "layout", "other")
TABLES: Columns = {"shape": pl.String, "rows": pl.Int64, "touched": pl.Int64, "elements": pl.Int64}


def program_tables(trace: Trace, ops: pl.DataFrame) -> pl.DataFrame:
    """shape, rows, touched (at most), elements of tables of which a program updates a few rows; `ops` has event and shapes."""
    found: dict[str, tuple[int, int, int]] = {}
    for text in _shapes_of_scatters(trace, ops):
        sizes = _table(text)
        if sizes is not None:
            rows, width, touched = sizes
            before = found.get(f"[{rows},{width}]", (rows, 0, 0))
            found[f"[{rows},{width}]"] = (rows, max(touched, before[1]), rows * width)
    table = pl.DataFrame(
        [(shape, *sizes) for shape, sizes in found.items()], schema=dict(TABLES), orient="row"
    )
    return table.filter(pl.col("touched") < FEW_ROWS_OF_TABLE * pl.col("rows"))


def whole_passes(
    ops: pl.DataFrame, kernels: pl.DataFrame, tables: pl.DataFrame, bytes_per_ns: float = 0.0
) -> pl.Series:
    """Kernels that go over a whole table, and those that clear an array of its size; `kernels` has event, class, bytes and time_ns.

    What takes less time than the device's memory needs for a byte of each element reads or writes some rows of the table only.
    """
    known = kernels.filter(pl.col("class").is_in(_PASSES)).join(ops.select("event", "shapes"), on="event")
    shapes = known["shapes"].cast(pl.String)
    over = pl.repeat(False, len(known), dtype=pl.Boolean, eager=True)
    for shape, elements in tables.select("shape", "elements").iter_rows():
        long = (known["time_ns"] * bytes_per_ns >= elements) | (bytes_per_ns == 0)
        over |= shapes.str.contains(shape, literal=True).fill_null(False) & long
        over |= shapes.is_null() & (known["bytes"] == PARAMETER_BYTES * elements).fill_null(False)
    found: pl.Series = known["event"].filter(over)
    return found


def rows_left(tables: pl.DataFrame, ns: float, bytes_per_ns: float) -> tuple[float, float]:
    """What the rows of a batch need at best and at worst instead of passes over whole tables, as shares of the `ns` that these take.

    They are read, and added to those of the table. An optimizer with a state needs the whole gradient of a row before it
    changes that: rows are sorted and merged, and those of the state are read and written. Without one, what added them to the
    gradient adds them to the table.
    """
    if not bytes_per_ns or not ns:
        return 0.0, 0.0
    states = count_states(tables, ns, bytes_per_ns)
    elements = float((tables["touched"] * tables["elements"] / tables["rows"]).sum())
    moved = PARAMETER_BYTES * elements * (ADDED_ROWS_TENSORS + STATE_TENSORS * states)
    sorting = SPARSE_SORT_BYTES * float(tables["touched"].sum())
    least = (sorting + LOOKUP_BEST * moved) / bytes_per_ns / ns if states else 0.0
    return least, LOOKUP_WORST * moved / bytes_per_ns / ns


def count_states(tables: pl.DataFrame, ns: float, bytes_per_ns: float) -> int:
    """How many arrays of the tables' size the optimizer keeps, by how many the passes can move in their time."""
    tensors = ns * bytes_per_ns / TABLE_PASS_SLOWER / PARAMETER_BYTES / float(tables["elements"].sum())
    return max(0, round((tensors - PLAIN_UPDATE_TENSORS) / STATE_TENSORS))


def _shapes_of_scatters(trace: Trace, ops: pl.DataFrame) -> list[str]:
    """The shapes that kernels named after a scatter take, each once."""
    names = trace.events["name"].gather(ops["event"])
    wanted = distinct(names)
    wanted = wanted.filter(wanted.cast(pl.String).str.contains(_SCATTERS))
    mine = ops.filter(names.is_in(wanted.implode()).fill_null(False))
    found: list[str] = mine["shapes"].cast(pl.String).drop_nulls().unique(maintain_order=True).to_list()
    return found


def _table(text: str) -> tuple[int, int, int] | None:
    """Rows and width of what is scattered into, and how many rows the others can hold; None where it is not a table."""
    try:
        target, *others = msgspec.json.decode(text, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return None
    if len(target) != 2 or not others or min(target) <= 0:
        return None
    rows, width = target
    return rows, width, max(math.prod(other) for other in others) // width
