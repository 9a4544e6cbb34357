"""Values as places of work hold them."""

from __future__ import annotations

import polars as pl
from distributed.protocol.serialize import serialize_bytes

from stepscope.cluster.packed import apply, open_packed, pack

TABLE = pl.DataFrame({"rank": [3] * 80, "number": range(80), "name": ["all_reduce"] * 80})


def _heights(one: pl.DataFrame, several: list[pl.DataFrame], more: int) -> list[int]:
    return [len(one), *map(len, several), more]


def test_what_is_opened_is_what_was_packed() -> None:
    again = open_packed(pack({"table": TABLE, "error": None}))
    assert again["table"].equals(TABLE) and again["table"].schema == TABLE.schema and again["error"] is None


def test_it_takes_a_small_part_of_what_is_sent() -> None:
    assert len(pack(TABLE).held) < 0.5 * len(serialize_bytes(TABLE))


def test_packed_arguments_are_opened_also_in_lists() -> None:
    packed = pack(TABLE)
    assert open_packed(apply(_heights, packed, [packed, pack(TABLE.head(2))], 7)) == [80, 80, 2, 7]
    assert open_packed(apply(_heights, TABLE, [], 0)) == [80, 0]


def test_bytes_that_were_not_packed_are_never_opened() -> None:
    """They may come from a profile."""
    hostile = pack(TABLE).held
    assert open_packed(apply(_same, hostile, [hostile])) == [hostile, [hostile]]


def _same(*values: object) -> list[object]:
    return [*values]
