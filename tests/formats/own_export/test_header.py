"""The header of our own export."""

from __future__ import annotations

import msgspec

from stepscope.formats.own_export.header import Header
from stepscope.trace.schema import TABLES


def test_a_job_that_ended_at_once_has_no_tracks() -> None:
    """Its table is empty, and has all its columns."""
    text = '{"form": 1, "shift_ns": 0, "info": {}, "problems": [], "tracks": [], "threads": []}'
    table = msgspec.json.decode(text, type=Header).track_table()
    assert table.schema == TABLES["tracks"]
    assert table.is_empty()
