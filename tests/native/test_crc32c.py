"""The checksum of records, against published values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.native.both import builds


@pytest.fixture(scope="module", params=builds("crc32c"))
def native(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
    ids=["empty", "check value", "zeros", "ones", "ascending"],
)
def test_known_values(native: Any, data: bytes, expected: int) -> None:
    assert native.crc32c(data) == expected
    assert native.crc32c(memoryview(b"x" + data)[1:]) == expected
