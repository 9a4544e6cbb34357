"""Event files with and without a profile."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.formats.tf1.search import search


def record(event: bytes) -> bytes:
    return struct.pack("<QI", len(event), 0) + event + b"\0\0\0\0"


SCALAR = b"\x09" + b"\0" * 8 + b"\x10\x83\x01" + b"\x2a\x03abc"
RUN_METADATA = b"\x09" + b"\0" * 8 + b"\x10\x05" + b"\x42\x04xxxx"


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([SCALAR, RUN_METADATA], ""),
        ([SCALAR], "a TensorBoard event file without a profile (no RunMetadata)"),
        ([], "a TensorBoard event file without a profile (no RunMetadata)"),
    ],
)
def test_event_files_by_their_records(records: list[bytes], reason: str) -> None:
    data = b"".join(map(record, records))
    assert search(io.BytesIO(data), len(data)) == reason


@given(st.binary(max_size=300))
def test_any_file_can_be_searched(data: bytes) -> None:
    assert isinstance(search(io.BytesIO(data), len(data)), str)


def test_event_files_are_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.formats.tf1.search.RECORDS_LOOKED_AT", 2)
    data = record(SCALAR) * 3 + record(RUN_METADATA)
    assert "first 2 records" in search(io.BytesIO(data), len(data))
