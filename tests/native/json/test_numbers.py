"""Decimal text to ns and to 64-bit integers, exactly."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.native.json import events as compiled
from tests.native.both import builds
from tests.native.scans import OP, document, scan


@pytest.fixture(scope="module", params=builds("json.events"))
def native(request: pytest.FixtureRequest) -> Any:
    """The scanner, compiled and interpreted."""
    return request.param


def time(native: Any, ts: str, dur: str = "0") -> tuple[int, int]:
    """Start and duration of an event, in ns."""
    found = scan(native, document(f'"ph": "X", "ts": {ts}, "dur": {dur}'))
    assert found.bad() == {}
    start, length = found.events[0][4:]
    return start, length


@pytest.mark.parametrize(
    ("ts", "ns"),
    [
        ("0", 0),
        ("1", 1000),
        ("1.5", 1500),
        ("0.001", 1),
        ("1700000000000000.123", 1_700_000_000_000_000_123),
        ("3843057428885.204", 3_843_057_428_885_204),
        ("3999999999999999.999", 3_999_999_999_999_999_999),
        ("1.0004", 1000),
        ("1.0005", 1001),
        ("1.0004999999999999999999999", 1000),
        ("1.00050000000000000000000001", 1001),
        ("-1.5", -1500),
        ("-1.0005", -1000),
        ("-1.0006", -1001),
        ("-0.0001", 0),
        ("+2", 2000),
        ("1e3", 1_000_000),
        ("1E+3", 1_000_000),
        ("1.25e-1", 125),
        ("12345e-4", 1235),
        ("0.0000000000000000000000000001", 0),
        ("0e99999999999999999999", 0),
        ("1e-99999999999999999999", 0),
        ("000012", 12_000),
        ("2.", 2000),
        (".5", 500),
        ('"7.25"', 7250),
        ("100000000000000000000000e-20", 1_000_000),
    ],
)
def test_microseconds_become_nanoseconds(native: Any, ts: str, ns: int) -> None:
    assert time(native, ts) == (ns, 0)


@pytest.mark.parametrize(
    ("ts", "dur", "start", "length"),
    [
        ("1.0004", "1.0004", 1000, 1001),
        ("1.0005", "1.0004", 1001, 1000),
        ("0.0009", "0.0009", 1, 1),
        ("0.0004", "0.0001", 0, 1),
        ("-1.0004", "1.0004", -1000, 1000),
        ("5", "-2.5", 5000, -2500),
        ("1", '"2.5"', 1000, 2500),
    ],
)
def test_start_and_end_are_rounded_on_one_grid(
    native: Any, ts: str, dur: str, start: int, length: int
) -> None:
    assert time(native, ts, dur) == (start, length)


@pytest.mark.parametrize("ts", ["4000000000000000.001", "-4000000000000001", "1e16", "1e9999999", "9" * 40])
def test_times_beyond_reach(native: Any, ts: str) -> None:
    found = scan(native, document(f'"ph": "X", "ts": {ts}, "dur": 1', f'"ph": "X", "ts": 1, "dur": {ts}'))
    assert found.events == []
    assert found.bad() == {"out_of_range": 2}


def test_the_farthest_times(native: Any) -> None:
    assert time(native, "4000000000000000", "4000000000000000") == (4 * 10**18, 4 * 10**18)
    assert time(native, "-4000000000000000") == (-4 * 10**18, 0)


@pytest.mark.parametrize(
    "word", ["N/A", "NaN", "nan", "inf", "-inf", "Infinity", "-", "+", ".", "e5", "1e5x", '"1"2"', "[1]"]
)
def test_durations_that_are_no_numbers(native: Any, word: str) -> None:
    found = scan(native, document(f'"ph": "X", "ts": 1, "dur": {word}, "name": "a"'))
    assert found.events == [("X", "a", None, 0, 1000, 0)]
    assert found.counts["without_duration"] == found.counts["unread_values"] == 1


@pytest.mark.parametrize(
    "id_",
    [0, 1, -1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63) + 1, 2**63 + 1, 2**64 - 10, 2**64 - 1, 0xFFFFFFFFF0],
)
def test_ids_of_64_bits(native: Any, id_: int) -> None:
    found = scan(native, document(f'"ph": "b", "ts": 1, "id": {id_}'))
    assert [value % 2**64 for _, value in found.asyncs] == [id_ % 2**64]
    assert [-(2**63) < value < 2**63 for _, value in found.asyncs] == [True]


@pytest.mark.parametrize(
    "id_", [2**63, -(2**63), -(2**63) - 1, -(2**64), 2**64, 10**30, "1.5", "1e40", "{}", "[1]"]
)
def test_ids_that_do_not_fit_are_none(native: Any, id_: Any) -> None:
    found = scan(native, document(f'"ph": "b", "ts": 1, "id": {id_}'))
    assert len(found.events) == 1
    assert found.asyncs == []


def test_a_number_of_a_million_digits(native: Any) -> None:
    digits = "1" * 1_000_000
    found = scan(native, document(f'"ph": "X", "ts": 0.{digits}, "dur": {digits}', '"ph": "i", "ts": 1'))
    assert [event[4] for event in found.events] == [1000]
    assert found.bad() == {"out_of_range": 1}


def rounded(value: Decimal) -> int:
    """Half up."""
    return int((value + Decimal("0.5")).to_integral_value(rounding=ROUND_FLOOR))


def times(most: int, places: int) -> st.SearchStrategy[Decimal]:
    """Up to as many µs, with as many digits after the point: 19 digits in all are exact."""
    return st.decimals(min_value=-most, max_value=most, places=places)


@given(times(10**12, 6), times(10**12, 6))
def test_any_times_are_exact(ts: Decimal, dur: Decimal) -> None:
    start = rounded(ts * 1000)
    assert time(compiled, f"{ts:f}", f"{dur:f}") == (start, rounded((ts + dur) * 1000) - start)


@given(times(10**15, 12))
def test_a_start_is_exact_whatever_follows(ts: Decimal) -> None:
    assert time(compiled, f"{ts:f}") == (rounded(ts * 1000), 0)


@given(st.integers(-(2**63) + 1, 2**64 - 1).filter(lambda n: n != 2**63))
def test_any_integers_are_exact(n: int) -> None:
    found = scan(compiled, document(f'"ph": "i", "ts": 1, "cat": "op", "args": {{"n": {n}}}'))
    assert found.layouts[OP][0][1] % 2**64 == n % 2**64
    assert found.rest == []


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-4e9, max_value=4e9))
def test_any_decimal_arguments_are_billionths(x: float) -> None:
    found = scan(compiled, document(f'"ph": "i", "ts": 1, "cat": "op", "args": {{"share": {x!r}}}'))
    assert found.layouts[OP][0][2] == rounded(Decimal(repr(x)) * 10**9)
