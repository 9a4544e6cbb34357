"""Records of TFRecord files: whole, cut and damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.formats.tf1 import records
from stepscope.formats.tf1.records import Records
from stepscope.trace.problems import Problem, Problems
from tests.builders.tf_wire import event, record

FIRST, SECOND, THIRD = event((2, 1)), event((2, 2), (3, "x" * 40)), event((2, 3))


def read(content: bytes) -> tuple[list[bytes], list[bytes], list[Problem]]:
    """(whole records, what is left of one, problems)."""
    problems = Problems()
    found = list(Records(memoryview(content), problems))
    whole = [bytes(r.data) for r in found if r.whole]
    return whole, [bytes(r.data) for r in found if not r.whole], problems.all()


def data(framed: bytes) -> bytes:
    """What the record holds."""
    return framed[12:-4]


def test_whole_records() -> None:
    assert read(b"") == ([], [], [])
    assert read(FIRST + record(b"") + SECOND) == ([data(FIRST), b"", data(SECOND)], [], [])


@pytest.mark.parametrize("size", range(len(FIRST), len(FIRST + SECOND)))
def test_a_cut_says_where(size: int) -> None:
    content = (FIRST + SECOND)[:size]
    whole, left, problems = read(content)
    assert whole == [data(FIRST)]
    assert left == ([content[len(FIRST) + 12 :]] if size >= len(FIRST) + 12 else [])
    if size == len(FIRST):
        assert problems == []
        return
    (problem,) = problems
    assert (problem.code, problem.severity) == ("truncated", "error")
    assert problem.detail == (
        f"Its last {size - len(FIRST)} bytes, from byte {len(FIRST)} on, "
        "are not a complete record; 1 records before them were read."
    )


def flipped(content: bytes, at: int) -> bytes:
    """The content with one bit turned."""
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


def test_wrong_checksums_are_counted_and_read() -> None:
    content = flipped(FIRST, 20) + SECOND + flipped(THIRD, len(THIRD) - 1)
    whole, _, (problem,) = read(content)
    assert whole == [data(flipped(FIRST, 20)), data(SECOND), data(THIRD)]
    assert (problem.code, problem.count) == ("crc-mismatch", 2)
    assert problem.detail == "{count} records do not match their checksum, the first at byte 0."


def test_a_wrong_checksum_of_a_right_length_loses_nothing() -> None:
    whole, _, (problem,) = read(FIRST + flipped(SECOND, 9) + THIRD)
    assert whole == [data(FIRST), data(SECOND), data(THIRD)]
    assert problem.code == "crc-mismatch"


@pytest.mark.parametrize("at", [0, 1, 5])
def test_a_wrong_length_loses_one_record(at: int) -> None:
    whole, _, (problem,) = read(FIRST + flipped(SECOND, at) + flipped(SECOND, at) + THIRD)
    assert whole == [data(FIRST), data(THIRD)]
    assert (problem.code, problem.count) == ("lost-records", 2 * len(SECOND))
    assert problem.detail == f"{{count}} bytes, from byte {len(FIRST)} on, are not a record and were skipped."


def test_checksums_of_large_files_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "CHECKED_BYTES", 10)
    whole, _, (problem,) = read(flipped(FIRST, 20))
    assert len(whole) == 1
    assert (problem.code, problem.severity) == ("crc-unchecked", "info")


@given(
    content=st.binary(max_size=200).filter(lambda content: bytes(4) not in content), where=st.integers(0, 3)
)
def test_any_bytes_among_records(content: bytes, where: int) -> None:
    parts = [FIRST, SECOND, THIRD]
    parts.insert(where, content)
    whole, _, _ = read(b"".join(parts))
    assert [item for item in whole if item in (data(FIRST), data(SECOND), data(THIRD))] == [
        data(FIRST),
        data(SECOND),
        data(THIRD),
    ]
