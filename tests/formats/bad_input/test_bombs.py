"""Small files that unpack to more than any machine has: memory stays bounded, and the end is a clear word."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepscope.formats import gzip_stream
from stepscope.formats.chrome.scan import driver, streamed
from stepscope.formats.chrome.scan.parallel import scan
from stepscope.formats.chrome.scan.streamed import scan_windows
from stepscope.formats.reader import no_progress
from stepscope.formats.source import Source
from stepscope.native.json import events as native
from tests.builders.damage import document
from tests.builders.protobuf import varint
from tests.patience import PATIENCE_S
from tests.sample import SOAKS

pytest.importorskip("resource")

MIB = 1 << 20
# Polars has one for each core, and each keeps memory of its own.
OF_THREADS = 16 * MIB * (os.cpu_count() or 1)
ROOT = Path(__file__).parents[3]
SCRIPT = """
import json, sys
from benchmarks.drivers.meter import peak_bytes
from stepscope.errors import UnreadableFile
from stepscope.formats import gzip_stream, read
from stepscope.formats.source import Source

path, bomb_bytes = sys.argv[1:]
gzip_stream.BOMB_BYTES = int(bomb_bytes)
try:
    trace = read(Source(path))
    told = {code: detail for code, detail in trace.problems.select("code", "detail").iter_rows()}
    events = len(trace.events)
except UnreadableFile as error:
    told, events = {"refused": error.what}, 0
print(json.dumps({"told": told, "events": events, "peak": peak_bytes()}))
"""


def bomb(path: Path, head: bytes, unit: bytes, size: int) -> Path:
    """A file that unpacks to the head and then the unit again and again, as many gzip streams put together."""
    block = unit * (MIB // len(unit))
    path.write_bytes(gzip.compress(head) + gzip.compress(block, 9) * (size // len(block) + 1))
    return path


def read_apart(path: Path, bomb_bytes: int = gzip_stream.BOMB_BYTES) -> dict[str, Any]:
    """What a process of its own reads, and how much memory it took."""
    command = [sys.executable, "-c", SCRIPT, str(path), str(bomb_bytes)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True, cwd=ROOT)
    assert ended.stderr == ""
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


quick = pytest.mark.skipif(not native.COMPILED, reason="gigabytes take minutes where nothing is compiled")


@quick
@pytest.mark.parametrize(
    ("head", "unit"),
    [
        (b'{"traceEvents":[', b"\0"),
        (b'{"traceEvents":[', b" "),
        (b'{"traceEvents":[{"ph":"X","name":"', b"a"),
        (b'{"traceEvents":[{"ph":"X","args":', b"["),
        (b'{"nodes":"', b"a"),
    ],
    ids=["zeros", "spaces", "a name", "brackets", "a member"],
)
def test_two_gigabytes_of_nothing(tmp_path: Path, head: bytes, unit: bytes) -> None:
    path = bomb(tmp_path / "x.json.gz", head, unit, 2048 * MIB)
    assert path.stat().st_size < 4 * MIB
    found = read_apart(path)
    assert found["events"] == 0
    assert found["peak"] < 1200 * MIB + OF_THREADS
    if unit == b"[":
        assert found["told"]["refused"].endswith("what its list holds are not events.")
    else:
        assert "the gzip file expands to far more than any profile. " in found["told"]["refused"]
        assert (
            "It expands to more than 400 times its size; reading stopped after 6" in found["told"]["refused"]
        )


@quick
def test_two_gigabytes_of_tiny_events(tmp_path: Path) -> None:
    path = bomb(tmp_path / "x.json.gz", b"[", b'{"ph":"X","ts":1,"dur":1},', 2048 * MIB)
    found = read_apart(path)
    assert 2_000_000 < found["events"] < 5_000_000
    assert found["peak"] < 1500 * MIB + OF_THREADS
    assert found["told"].keys() == {"gzip-bomb", "truncated", "unnamed-events"}


@quick
@pytest.mark.parametrize(
    ("unit", "events"),
    [
        *([pytest.param(b'"\0', 33_554_432, id="events")] if SOAKS else []),
        pytest.param(b'"\2\x22\0', 16_777_216, id="events with stats"),
        pytest.param(b"\0", 0, id="zeros"),
    ],
)
def test_two_gigabytes_of_a_plane(tmp_path: Path, unit: bytes, events: int) -> None:
    """A plane and a line whose length is beyond all bounds, and in it as many events as there is room for."""
    head = packed_field(1, 1 << 40) + packed_field(3, 1 << 39) + packed_field(2, 1) + b"t"
    path = bomb(tmp_path / "x.xplane.pb.gz", head, unit, 2048 * MIB)
    found = read_apart(path)
    assert events * 0.9 <= found["events"] <= events
    assert found["peak"] < 3000 * MIB + OF_THREADS
    if events:
        assert found["told"].keys() == {"gzip-bomb", "truncated"}
        assert found["told"]["gzip-bomb"].startswith(
            "It expands to more than 400 times its size; reading stopped after 6"
        )


def packed_field(number: int, length: int) -> bytes:
    """The tag and length of a field that holds bytes."""
    return varint(number << 3 | 2) + varint(length)


SOME = document(30)


def limits(monkeypatch: pytest.MonkeyPatch, window: int, largest: int) -> None:
    monkeypatch.setattr(streamed, "WINDOW_BYTES", window)
    monkeypatch.setattr(streamed, "LARGEST_WINDOW_BYTES", largest)
    monkeypatch.setattr(Source.pieces, "__defaults__", (1 << 12,))


def test_an_event_that_never_ends_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, 1 << 14, 1 << 16)
    _, begin, _ = SOME.events[10]
    endless = b'{"ph": "X", "args": {"text": "' + b"a" * (1 << 18)
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(SOME.data[:begin] + endless + b'"}},\n' + SOME.data[begin:]))
    found = scan_windows(Source(str(path)), no_progress).result()
    assert found.events["name"].to_list() == SOME.complete(len(SOME.data))
    assert found.header["traceName"] == "x.json"
    (problem,) = found.problems.all()
    assert problem.code == "bad-events"
    assert f"byte {begin:,}" in problem.detail


def test_a_member_that_never_ends_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, 1 << 14, 1 << 16)
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(b'{"large": "' + b"a" * (1 << 18) + b'", ' + SOME.data[1:]))
    found = scan_windows(Source(str(path)), no_progress).result()
    assert found.events["name"].to_list() == SOME.complete(len(SOME.data))
    assert found.header["large"] is None
    details = {problem.code: problem.detail for problem in found.problems.all()}
    assert details["large-member"] == ("The member 'large' is longer than 65,536 bytes; it was not read.")
    assert "bytes from byte 1 on are not valid JSON and were skipped." in details["bad-events"]


def test_a_large_member_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LARGEST_HEADER_BYTES", 100)
    path = tmp_path / "x.json"
    path.write_bytes(b'{"large": [%b 1], ' % (b"1," * 100) + SOME.data[1:])
    found = scan(Source(str(path)), no_progress)
    assert found.header["large"] is None
    assert found.events["name"].to_list() == SOME.complete(len(SOME.data))
    assert [problem.code for problem in found.problems.all()] == ["large-member"]
