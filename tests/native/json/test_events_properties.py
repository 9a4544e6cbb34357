"""Documents of every shape against json.loads, and damaged ones against the other build of the same scanner."""

from __future__ import annotations

import json
from collections import Counter
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stepscope.native.json import events as native
from tests.native.both import interpreted
from tests.native.json.test_events_document import RICH
from tests.native.scans import OP, Read, document, new_scanner, run, scan, told

PLAIN = interpreted("json.events")
KEYS = {"ph", "name", "cat", "ts", "dur", "pid", "tid", "id", "bp", "s", "args", "id2"}

numbers = st.integers(-(2**63) + 1, 2**63 - 1)
texts = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
times = st.decimals(min_value=-(10**12), max_value=10**12, places=3)
unknown_args = st.dictionaries(
    texts.filter(lambda key: key not in ("n", "share", "dims", "grid", "collective", "Bytes")),
    values,
    max_size=3,
)
events = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "X", "X", "B", "E", "i", "C", "M", "s", "f", "b", ""]),
        "name": texts,
        "cat": st.sampled_from(["op", "kernel", ""]) | texts,
        "ts": times,
        "dur": times,
        "pid": numbers | texts,
        "tid": numbers | texts,
        "id": numbers | texts,
        "args": unknown_args | st.builds(lambda n, more: {"n": n, **more}, numbers, unknown_args),
    },
)
others = st.dictionaries(texts.filter(lambda key: key not in KEYS), values, max_size=2)
headers = st.dictionaries(texts.filter(lambda key: key != "traceEvents"), values, max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """A valid document: members in any order, blanks and escapes as writers differ in them."""
    comma, colon = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n\t", " : ")]))
    is_ascii = draw(st.booleans())

    def written(value: Any) -> str:
        if isinstance(value, Decimal):
            return f"{value:f}"
        return json.dumps(value, ensure_ascii=is_ascii, separators=(comma, colon))

    def of(members: dict[str, Any]) -> str:
        return (
            "{" + comma.join(f"{written(key)}{colon}{written(value)}" for key, value in members.items()) + "}"
        )

    found = [
        of(dict(draw(st.permutations(list({**event, **draw(others)}.items())))))
        for event in draw(st.lists(events, max_size=6))
    ]
    listed = "[" + comma.join(found) + "]"
    if draw(st.booleans()):
        return listed.encode(errors="surrogatepass")
    before, after = (of(draw(headers))[1:-1] for _ in range(2))
    members = comma.join(part for part in (before, f'"traceEvents"{colon}{listed}', after) if part)
    return f"{{{members}}}".encode(errors="surrogatepass")


def rounded(value: Decimal) -> int:
    """Half up."""
    return int((value + Decimal("0.5")).to_integral_value(rounding=ROUND_FLOOR))


class Naive:
    """What json.loads makes of a document."""

    def __init__(self, text: bytes) -> None:
        self.counts: Counter[str] = Counter()
        self.rows: list[tuple[Any, ...]] = []
        self.args: list[Any] = []
        self.flows = self.metas = 0
        loaded = json.loads(text.decode(errors="surrogatepass"), parse_float=Decimal)
        for event in loaded if isinstance(loaded, list) else loaded["traceEvents"]:
            self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        if not event:
            self.counts["empty"] += 1
        elif event.get("ph") == "M":
            self.metas += 1
        elif not event.get("ph"):
            self.counts["without_phase"] += 1
        elif "ts" not in event:
            self.counts["untimed"] += 1
        elif event["ph"] in "sf":
            self.flows += 1
        else:
            self.counts["without_duration"] += event["ph"] == "X" and "dur" not in event
            start = rounded(event["ts"] * 1000)
            end = rounded((event["ts"] + event.get("dur", Decimal(0))) * 1000)
            track = (event.get("pid"), event.get("tid"))
            self.rows.append(
                (event["ph"], event.get("name"), event.get("cat"), track, start, end - start, event.get("id"))
            )
            self.args.append(
                {key: value for key, value in event.items() if key not in KEYS} | event.get("args", {})
            )


def decoded(read: Read, text: Any) -> Any:
    """A string as JSON means it."""
    if not isinstance(text, str):
        return text
    raw = text.encode(errors="surrogateescape")
    return json.loads(
        b'"%b"' % raw if dict(read.texts)[raw] else json.dumps(raw.decode(errors="surrogatepass"))
    )


@given(documents())
def test_any_document_is_read_as_json_loads_reads_it(text: bytes) -> None:
    found, naive = scan(native, text), Naive(text)
    assert found.ended == native.DONE
    assert found.bad() == {name: n for name, n in naive.counts.items() if n}
    assert (len(found.flows), len(found.metas)) == (naive.flows, naive.metas)
    ids: dict[int, Any] = dict(found.asyncs)
    tracks = [tuple(decoded(found, part) for part in track) for track in found.tracks]
    rows = [
        (
            ph,
            decoded(found, name),
            decoded(found, cat),
            tracks[track],
            start,
            dur,
            decoded(found, ids.get(row)),
        )
        for row, (ph, name, cat, track, start, dur) in enumerate(found.events)
    ]
    assert rows == naive.rows
    kept: list[dict[str, Any]] = [{} for _ in rows]
    for event, written in found.rest:
        if event >= 0:
            kept[event] |= json.loads(written.decode(errors="surrogatepass"), parse_float=Decimal)
    for event, n, *_ in found.layouts[OP]:
        kept[event] |= {} if n is None else {"n": n}
    assert kept == naive.args


@given(documents(), st.floats(0, 1))
def test_any_document_in_two_windows(text: bytes, share: float) -> None:
    cut = int(share * len(text))
    found, whole = scan(native, text[:cut], text[cut:]), scan(native, text)
    found.position = whole.position = 0
    assert found == whole


@given(documents())
def test_both_builds_read_the_same(text: bytes) -> None:
    assert scan(native, text) == scan(PLAIN, text)


places = st.floats(0, 1, exclude_max=True)
pieces = st.sampled_from([*b'"\\{}[],:0129eE.+-\n \x00\xff/tfnN']).map(
    lambda byte: bytes([byte])
) | st.sampled_from(
    [
        b'{"ph":',
        b"},{",
        b"]}",
        b'","',
        b'":"',
        b"[[[[",
        b"null",
        b'\\"',
        b"1e999",
        b'{"name":"',
        b"\xef\xbb\xbf",
    ]
)
damages = st.lists(
    st.tuples(st.sampled_from(["flip", "put", "cut", "move"]), places, places, pieces), min_size=1, max_size=6
)
bases = (
    st.just(RICH)
    | documents()
    | st.just(document(*['"ph": "X", "ts": 1.5, "dur": 2, "args": {"grid": [1, 2, 3]}'] * 4))
)


def damaged(text: bytes, damages: list[tuple[str, float, float, bytes]]) -> bytes:
    """The text with bytes changed, put in, cut out or moved."""
    for how, first, second, piece in damages:
        at, to = int(first * len(text)), int(second * len(text))
        if how == "flip":
            text = text[:at] + piece[:1] + text[at + 1 :]
        elif how == "put":
            text = text[:at] + piece + text[at:]
        elif how == "cut":
            text = text[:at] + text[at + int(second * 20) :]
        else:
            text = text[:to] + text[at : at + 30] + text[to:]
    return text


def salvaged(build: Any, text: bytes) -> Read:
    """All that can be had of a text: events that have no end are given up."""
    scanner = new_scanner(build)
    header: list[tuple[bytes, bytes]] = []
    scanner.feed(text, 0)
    ended = run(build, scanner, text, header)
    while ended == build.MORE and scanner.is_inside_events() and scanner.give_up():
        ended = run(build, scanner, text, header)
    return told(build, scanner, ended, header)


def check_sanity(found: Read, size: int) -> None:
    """Nothing that cannot be."""
    assert 0 <= found.position <= size
    assert 0 <= found.counts["bad_bytes"] <= size
    assert -1 <= found.counts["first_bad"] < max(size, 1)
    assert found.counts["bad_events"] <= found.counts["bad_bytes"]
    assert all(0 <= event[3] < len(found.tracks) for event in found.events)
    assert [event for event, *_ in found.layouts[OP]] == sorted(event for event, *_ in found.layouts[OP])
    assert all(-len(found.metas) <= event < max(len(found.events), 1) for event, _ in found.rest)


@given(bases, damages)
def test_damaged_documents_are_read_alike_by_both_builds(text: bytes, damages: list[Any]) -> None:
    text = damaged(text, damages)
    found = salvaged(native, text)
    check_sanity(found, len(text))
    assert found == salvaged(PLAIN, text)


@given(bases, damages, places)
def test_damaged_documents_in_windows(text: bytes, damages: list[Any], share: float) -> None:
    text = damaged(text, damages)
    cut = int(share * len(text))
    found = scan(native, text[:cut], text[cut:])
    assert found.counts["bad_bytes"] <= len(text)
    assert found == scan(PLAIN, text[:cut], text[cut:])


@given(st.binary(max_size=200))
def test_any_bytes(text: bytes) -> None:
    for start in (b"", b"[", b'{"traceEvents":[', b'[{"ph":"X","args":{'):
        found = salvaged(native, start + text)
        check_sanity(found, len(start + text))
        assert found == salvaged(PLAIN, start + text)
