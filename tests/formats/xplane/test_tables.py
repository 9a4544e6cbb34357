"""TensorFlow's collectives: group and number, by the keys that its workers agree on."""

from __future__ import annotations

import polars as pl

from stepscope.formats.xplane.stats import Stats
from stepscope.formats.xplane.tables import collectives
from stepscope.trace.schema import Text

_NONE = pl.DataFrame(schema={"owner": pl.UInt32, "key": pl.UInt32, "value": pl.UInt64})


def found(*keys: int) -> pl.DataFrame:
    """Of calls with these instance keys, all of group 7."""
    rows = [(at, key, value) for at, number in enumerate(keys) for key, value in ((0, number), (1, 7))]
    ints = pl.DataFrame(rows, schema={**_NONE.schema, "value": pl.Int64}, orient="row")
    events = pl.DataFrame({"name": pl.Series(["CollectiveReduceV2"] * len(keys), dtype=Text)})
    return collectives(events, Stats(["instance_key", "group_key"], ints, _NONE, _NONE, _NONE, _NONE))


def test_keys_number_the_calls() -> None:
    rows = found(103, 104)
    assert rows["sequence"].to_list() == [103, 104]
    assert rows["group"].to_list() == ["7", "7"]


def test_one_key_for_ever_numbers_nothing() -> None:
    """Graphs of TensorFlow 1: the same op has the same key in every step."""
    assert found(1, 2, 1, 2)["sequence"].to_list() == [None] * 4


def test_no_collectives() -> None:
    assert found().is_empty()
