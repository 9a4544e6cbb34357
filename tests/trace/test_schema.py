"""The tables' columns and types, which outside tools and saved caches rely on."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.trace.schema import EVENT_REFERENCES, KINDS, TABLES, Text, conform, empty


@pytest.mark.parametrize("table", TABLES)
def test_empty_tables(table: str) -> None:
    for frame in (empty(table), conform(table, pl.DataFrame())):
        assert frame.schema == pl.Schema(TABLES[table])
        assert len(frame) == 0


def test_conform_orders_casts_and_fills() -> None:
    found = conform("links", pl.DataFrame({"to": [2], "from": [1]}))
    assert found.schema == pl.Schema(TABLES["links"])
    assert found.rows() == [(1, 2, None)]


def test_a_column_that_no_table_has_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"table links has no column \['form'\]"):
        conform("links", pl.DataFrame({"form": [1]}))


def test_a_kind_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(pl.exceptions.InvalidOperationError):
        conform("events", pl.DataFrame({"kind": ["karnel"]}))
    assert conform("events", pl.DataFrame({"kind": list(KINDS)}))["kind"].to_list() == list(KINDS)


def test_texts_of_two_traces_are_one_type() -> None:
    one, other = pl.Series(["a", "b"], dtype=Text), pl.Series(["b", "c"], dtype=Text)
    assert pl.concat([one, other]).n_unique() == 3
    assert one[1] == other[0]


def test_references_are_columns_of_event_numbers() -> None:
    for table, columns in EVENT_REFERENCES.items():
        assert {TABLES[table][column] for column in columns} == {pl.UInt32}


def test_an_event_stays_small() -> None:
    rows = 10_000
    filled = {
        "kind": pl.Series(["op"] * rows),
        "role": pl.Series(["input"] * rows),
        "name": pl.Series(["aten::mm"] * rows),
        "source_category": pl.Series(["cpu_op"] * rows),
    }
    numbers = {name: pl.zeros(rows, dtype=pl.Int32, eager=True) for name in TABLES["events"]}
    assert conform("events", pl.DataFrame(numbers | filled)).estimated_size() < 60 * rows
