"""Names as they stand in the file, however broken; and bare words where values should be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.native.json import events as compiled
from tests.native.both import builds
from tests.native.scans import Read, document, scan


@pytest.fixture(scope="module", params=builds("json.events"))
def native(request: pytest.FixtureRequest) -> Any:
    """The scanner, compiled and interpreted."""
    return request.param


def named(native: Any, name: bytes, after: bytes = b", ") -> Read:
    """An event whose name is written like this between quotes; and another one after it."""
    event = b'{"ph": "i", "ts": 1, "name": "' + name + b'"' + after + b'"cat": "c"}'
    return scan(native, b"[" + event + b', {"ph": "i", "ts": 2, "name": "next"}]')


@pytest.mark.parametrize(
    "name",
    [
        b"",
        b"a",
        b"1234567",
        b"12345678",
        b"123456789",
        b"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int, float)",
        "größe → 🚀".encode(),
        b"#" * 40,
        b"{[,]}:",
        b"// <script>alert(1)</script>",
    ],
)
def test_names_are_kept_byte_for_byte(native: Any, name: bytes) -> None:
    found = named(native, name)
    assert [text for text, _ in found.texts if text not in (b"op", b"c", b"next")] == [name]
    assert len(found.events) == 2
    assert found.bad() == {}


@pytest.mark.parametrize(
    "name", [rb"\"", rb"a\"b", rb"\\", rb"\\\"", rb"C:\\temp\\", rb"\u00e9", rb"1234567\"", rb"12345678\\"]
)
def test_escapes_are_flagged_and_left_to_the_reader(native: Any, name: bytes) -> None:
    found = named(native, name)
    assert (name, native.ESCAPED) in found.texts
    assert (b"next", 0) in found.texts
    assert found.bad() == {}


@pytest.mark.parametrize(
    "name", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\x00\x01\x1f", b"a\tb", b"a\nb", b"\x7f", b"\x80" * 9]
)
def test_bytes_that_are_no_text_are_kept(native: Any, name: bytes) -> None:
    found = named(native, name)
    assert (name, 0) in found.texts
    assert len(found.events) == 2
    assert found.bad() == {}


@pytest.mark.parametrize(
    "name",
    [b'operator"" _x', b'a"b', b'"', b'""', b'a" b', b'say "hi" twice "x', b'a": b', b'\\"x"y', b'x"\\"y'],
)
def test_quotes_that_were_not_escaped_are_part_of_the_name(native: Any, name: bytes) -> None:
    found = named(native, name)
    assert [text for text, _ in found.texts][1:] == [name, b"c", b"next"]
    assert found.bad() == {"repaired": 1}


def test_names_with_forgotten_quotes_end_with_the_line(native: Any) -> None:
    found = scan(
        native,
        b'[{"ph": "i", "ts": 1, "name": "a" b\n},\n{"ph": "i", "ts": 2, "name": "next"}]',
    )
    assert [event[1] for event in found.events] == ["next"]
    assert found.bad() == {"bad_events": 1, "bad_bytes": len(b'{"ph": "i", "ts": 1, "name": "a" b\n},\n')}


@pytest.mark.parametrize("blank", [b"", b" ", b"\n", b" \r\n\t "])
def test_blanks_are_allowed_wherever_json_has_them(native: Any, blank: bytes) -> None:
    parts = [
        b"[",
        b"{",
        b'"ph"',
        b":",
        b'"i"',
        b",",
        b'"ts"',
        b":",
        b"1",
        b",",
        b'"name"',
        b":",
        b'"a"',
        b"}",
        b"]",
    ]
    found = scan(native, blank.join([b"", *parts, b""]))
    assert found.events == [("i", "a", None, 0, 1000, 0)]
    assert (found.ended, found.bad()) == (native.DONE, {})


@pytest.mark.parametrize("word", ["N/A", "NaN", "inf", "-inf", "None", "True", "0x1F", "1.2.3", "nullx", "ä"])
def test_bare_words_are_values(native: Any, word: str) -> None:
    found = scan(
        native,
        document(f'"ph": "i", "ts": 1, "x": {word}, "args": {{"a": {word}, "b": [{word}]}}, "name": "n"'),
    )
    assert found.events == [("i", "n", None, 0, 1000, 0)]
    assert found.rest == [(0, f'{{"x": {word}}}'.encode()), (0, f'{{"a": {word}, "b": [{word}]}}'.encode())]
    assert found.bad() == {}


def test_values_that_were_left_out(native: Any) -> None:
    found = scan(native, document('"ph": "i", "ts": 1, "x": , "args": {"n": }, "dur":, "name": "n"'))
    assert found.events == [("i", "n", None, 0, 1000, 0)]


@pytest.mark.parametrize("event", ['"ph": "i", "ts": 1, ', '"ph": "i", , "ts": 1', ', "ph": "i", "ts": 1 ,,'])
def test_commas_too_many(native: Any, event: str) -> None:
    found = scan(native, document(event, "", event).replace(b", {}", b",, ,"))
    assert len(found.events) == 2
    assert found.bad() == {}


@given(st.binary(max_size=30).filter(lambda name: not set(name) & set(b'"\\')))
def test_any_bytes_make_a_name(name: bytes) -> None:
    found = named(compiled, name)
    assert found.texts[1][0] == name
    assert (len(found.events), found.bad()) == (2, {})


@given(st.text())
def test_any_escaped_text_makes_a_name(text: str) -> None:
    written = text.encode("unicode_escape").replace(b'"', b'\\"')
    found = named(compiled, written)
    assert (written, int(b"\\" in written)) in found.texts
    assert found.bad() == {}


@given(st.lists(st.binary(max_size=24), max_size=8), st.integers(0, 7))
def test_strings_are_told_apart_at_any_place_in_memory(names: list[bytes], offset: int) -> None:
    clean = [name.translate(None, b'"\\') for name in names]
    events = b",".join(b'{"ph":"i","ts":1,"name":"' + name + b'"}' for name in clean)
    found = scan(compiled, b" " * offset + b"[" + events + b"]")
    assert [event[1].encode(errors="surrogateescape") for event in found.events] == clean
    assert len({text for text, _ in found.texts}) == len(found.texts)
