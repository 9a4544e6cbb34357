"""A file cut at any byte, plain or packed: all complete events are kept, and a problem says where it was cut."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import UnreadableFile
from stepscope.formats import read
from stepscope.formats.chrome.scan import parallel, streamed
from stepscope.formats.chrome.scan.parallel import scan
from stepscope.formats.reader import no_progress
from stepscope.formats.source import Source
from stepscope.native.json import events as native
from stepscope.problems.catalogue import CATALOGUE
from tests.builders.damage import document
from tests.builders.documents import codes
from tests.formats.ways import SOAKS, Way, examples
from tests.sample import pairs

pytestmark = pytest.mark.thorough

FIXTURE = Path(__file__).parents[2] / "fixtures" / "kineto" / "compiled.pt.trace.json.gz"
FEW = document(4)
MANY = document(400)
PACKED = gzip.compress(MANY.data)
END = FEW.data.rindex(b"}") + 1


def scanned(path: Path) -> tuple[list[str], dict[str, str]]:
    """The names of the events in the order of the file, and the problems' details by code."""
    found = scan(Source(str(path)), no_progress)
    return found.events["name"].to_list(), {problem.code: problem.detail for problem in found.problems.all()}


def test_a_plain_file_cut_at_every_byte(way: Way) -> None:
    step = (1 if SOAKS else 3) if way.name == "mapped" else 7  # the others only differ in how the bytes come
    for at in range(1, len(FEW.data) + 1, step):
        names, problems = scanned(way.put(FEW.data[:at]))
        assert names == FEW.complete(at), at
        if at >= END:
            assert problems == {}
        else:
            assert problems.keys() == {"truncated"}, at
            assert problems["truncated"].startswith(
                f"The file ends at byte {at:,} without closing its list of events; "
            )


def test_what_is_said_of_the_part_that_is_lost(way: Way) -> None:
    _, begin, end = FEW.events[2]
    _, problems = scanned(way.put(FEW.data[: begin + 10]))
    assert (
        f"; the 10 bytes from byte {begin:,} on are part of an event and were left out."
        in problems["truncated"]
    )
    _, problems = scanned(way.put(FEW.data[: end + 2]))
    assert "; no part of an event was lost." in problems["truncated"]


def test_the_whole_trace_of_a_cut_file(way: Way) -> None:
    trace = way(FEW.data[: FEW.events[3][2]])
    assert trace.events.sort("start_ns")["name"].to_list() == FEW.complete(FEW.events[3][2])
    (problem,) = trace.problems.iter_rows(named=True)
    assert (problem["code"], problem["severity"]) == ("truncated", "error")
    assert problem["title"] == "The file is truncated"
    assert problem["fix"] == CATALOGUE["truncated"].fix


@given(st.integers(2, len(PACKED) - 1))
def test_a_packed_file_cut_at_any_byte(tmp_path_factory: pytest.TempPathFactory, at: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "x.json.gz"
    path.write_bytes(PACKED[:at])
    length = len(Source(str(path)).content())
    # The quick library may hold back what one more byte of input would have completed.
    readable = len(zlib.decompressobj(wbits=31).decompress(PACKED[:at]))
    assert readable - 300 < length <= readable
    names, problems = scanned(path)
    assert names == MANY.complete(length)
    assert problems["damaged-gzip"] == (
        f"The gzip stream ends too early, after {at:,} packed bytes. The {length:,} bytes before that were read."
    )
    if length < len(MANY.data) - 1:
        assert problems["truncated"].startswith(f"The file ends at byte {length:,} ")


@examples(10)
@given(st.floats(0, 1), st.booleans())
def test_a_real_profile_cut_anywhere(
    tmp_path_factory: pytest.TempPathFactory, share: float, pack: bool
) -> None:
    whole = FIXTURE.read_bytes() if pack else gzip.decompress(FIXTURE.read_bytes())
    path = tmp_path_factory.mktemp("cut") / "x.pt.trace.json"
    path.write_bytes(whole[: int(share * len(whole))])
    try:
        trace = read(Source(str(path)))
    except UnreadableFile as error:
        assert "empty" in str(error) or "cut" in str(error) or "text" in str(error)
        return
    assert share == 1 or codes(trace).keys() & {"truncated", "damaged-gzip"}
    assert (trace.events["dur_ns"] >= 0).all()


@pytest.mark.skipif(not native.COMPILED, reason="pieces are scanned side by side only where that is fast")
@pytest.mark.parametrize(("share", "piece"), pairs([0.1, 0.5, 0.77, 1], [1 << 10, 1 << 12, 1 << 14]))
def test_pieces_join_without_a_seam(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, share: float
) -> None:
    monkeypatch.setattr(parallel, "PIECE_BYTES", piece)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    path = tmp_path / "x.json"
    path.write_bytes(MANY.data[: int(share * len(MANY.data))])
    names, problems = scanned(path)
    assert names == MANY.complete(int(share * len(MANY.data)))
    assert problems.keys() == (set() if share == 1 else {"truncated"})


@pytest.mark.parametrize("window", [1 << 8, 1 << 10, 1 << 13])
@pytest.mark.parametrize("piece", [2, 100, 1 << 12])
def test_windows_join_without_a_seam(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int, piece: int
) -> None:
    monkeypatch.setattr(streamed, "WINDOW_BYTES", window)
    monkeypatch.setattr(Source.pieces, "__defaults__", (piece,))
    few = document(20)
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(few.data))
    found = streamed.scan_windows(Source(str(path)), no_progress).result()
    assert found.events["name"].to_list() == few.complete(len(few.data))
    assert found.header["distributedInfo"] == {"rank": 1, "world_size": 2}
    assert len(found.problems) == 0
