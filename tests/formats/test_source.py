"""The bytes of a file, plain or packed, whole or broken, and what is said when it cannot be opened."""

from __future__ import annotations

import gzip
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import UnreadableFile
from stepscope.formats import gzip_stream, source
from stepscope.formats.source import Source

CONTENT = b"".join(b'{"ph":"X","name":"op%d","ts":%d,"dur":1},\n' % (i, 7 * i) for i in range(3000))
PACKED = gzip.compress(CONTENT)


def put(folder: Path, data: bytes) -> Source:
    """A source over a file with these bytes."""
    path = folder / "file"
    path.write_bytes(data)
    return Source(str(path))


def content(found: Source) -> tuple[bytes, list[str]]:
    """All bytes, and what was wrong with them."""
    data = bytes(found.content())
    return data, [problem.detail for problem in found.problems.all()]


@pytest.mark.parametrize(
    "data", [CONTENT, PACKED, gzip.compress(CONTENT, 1)], ids=["plain", "packed", "fast"]
)
def test_content_is_the_same_however_it_is_stored(tmp_path: Path, data: bytes) -> None:
    assert content(put(tmp_path, data)) == (CONTENT, [])
    assert put(tmp_path, data).head(100) == CONTENT[:100]
    assert put(tmp_path, data).opening(100) == (CONTENT[:100], data is not CONTENT)
    assert put(tmp_path, data).is_packed() == (data is not CONTENT)


def test_content_from_another_filesystem(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/a.gz", PACKED)
    found = Source("/bucket/a.gz", memory)
    assert (found.name, found.size()) == ("a.gz", len(PACKED))
    assert content(found) == (CONTENT, [])
    assert found.bytes_read == len(PACKED)


def test_streams_that_were_put_together_are_one(tmp_path: Path) -> None:
    parts = gzip.compress(CONTENT[:1000]) + gzip.compress(CONTENT[1000:]) + b"\0" * 512
    assert content(put(tmp_path, parts)) == (CONTENT, [])


@pytest.mark.parametrize("read", [1, 2, 3, 7, 64])
def test_a_stream_may_end_with_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: int
) -> None:
    monkeypatch.setattr(gzip_stream, "READ_BYTES", read)
    monkeypatch.setattr(source, "READ_BYTES", max(read, 2))
    small = gzip.compress(b"abc") + b"\0" * 5 + gzip.compress(b"def") + b"\0\0"
    assert content(put(tmp_path, small)) == (b"abcdef", [])


@given(st.binary(max_size=300), st.integers(1, 50), st.integers(1, 40))
def test_pieces_are_never_larger_than_asked_for(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, size: int, read: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gzip_stream, "READ_BYTES", read)
        found = put(tmp_path_factory.mktemp("pieces"), gzip.compress(data))
        pieces = list(found.pieces(max(size, 2)))
    assert b"".join(pieces) == data
    assert max(map(len, pieces), default=0) <= max(size, 2)
    assert len(found.problems) == 0


@pytest.mark.parametrize("at", [11, 300, len(PACKED) // 2, len(PACKED) - 9, len(PACKED) - 1])
def test_a_cut_stream_gives_all_that_came_before(tmp_path: Path, at: int) -> None:
    data, problems = content(put(tmp_path, PACKED[:at]))
    assert CONTENT.startswith(data)
    assert len(data) >= len(CONTENT) * (at - 300) // len(PACKED)
    assert problems == [
        f"The gzip stream ends too early, after {at:,} packed bytes. The {len(data):,} bytes before that were read."
    ]


def test_a_damaged_stream_gives_all_that_came_before(tmp_path: Path) -> None:
    half = len(PACKED) // 2
    broken = PACKED[:half] + b"\xff" * 20 + PACKED[half + 20 :]
    data, (problem,) = content(put(tmp_path, broken))
    assert data[: len(CONTENT) // 3] == CONTENT[: len(CONTENT) // 3]
    place = re.match(
        r"The gzip stream is damaged at packed byte ([\d,]+) \(.+\)\. The ([\d,]+) bytes before that were read\.",
        problem,
    )
    assert place
    assert int(place[2].replace(",", "")) == len(data)


def test_a_wrong_checksum_costs_no_byte(tmp_path: Path) -> None:
    data, problems = content(put(tmp_path, PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:]))
    assert data == CONTENT
    assert len(problems) == 1


def test_bytes_after_the_stream_are_told(tmp_path: Path) -> None:
    data, problems = content(put(tmp_path, PACKED + b"left over"))
    assert data == CONTENT
    assert problems == [
        f"Something that is not gzip follows packed byte {len(PACKED):,}. "
        f"The {len(CONTENT):,} bytes before that were read."
    ]


@given(st.integers(0, len(PACKED) - 1), st.integers(1, 255), st.integers(1, 1 << 16))
def test_a_flipped_byte_never_fails_and_is_never_silent(
    tmp_path_factory: pytest.TempPathFactory, at: int, flip: int, size: int
) -> None:
    broken = bytearray(PACKED)
    broken[at] ^= flip
    found = put(tmp_path_factory.mktemp("flipped"), bytes(broken))
    data = b"".join(found.pieces(max(size, 2)))
    assert data == CONTENT or len(found.problems) == 1 or broken[:2] != gzip_stream.GZIP_MAGIC


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_stream, "BOMB_BYTES", 1 << 20)
    found = put(tmp_path, gzip.compress(bytes(1 << 23), 9))
    sizes = [len(piece) for piece in found.pieces(1 << 16)]
    assert (1 << 20) < sum(sizes) <= (1 << 20) + (1 << 16)
    (problem,) = found.problems.all()
    assert problem.code == "gzip-bomb"
    assert problem.severity == "error"
    assert (
        problem.detail
        == f"It expands to more than 400 times its size; reading stopped after {sum(sizes):,} bytes."
    )
    assert problem.fix.endswith("decompress it with gunzip and open the plain file.")


def test_what_shrinks_as_profiles_do_is_no_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_stream, "BOMB_BYTES", 1 << 10)
    assert content(put(tmp_path, PACKED)) == (CONTENT, [])


OPENINGS: list[Callable[[Source], object]] = [Source.head, Source.content, Source.is_packed, Source.size]


@pytest.mark.parametrize("use", OPENINGS)
def test_a_file_that_is_gone(tmp_path: Path, use: Callable[[Source], object]) -> None:
    with pytest.raises(UnreadableFile) as told:
        use(Source(f"{tmp_path}/gone"))
    assert str(told.value) == f"No such file or folder: {tmp_path}/gone"


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile) as told:
        Source(str(tmp_path)).head()
    assert str(told.value) == f"This is a folder, not a file: {tmp_path}"


def test_a_circle_of_symlinks(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UnreadableFile) as told:
        Source(f"{tmp_path}/a").head()
    assert str(told.value) == f"Cannot open {tmp_path}/a: Too many levels of symbolic links"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableFile) as told:
        Source(f"{tmp_path}/pipe").head()
    assert str(told.value) == f"{tmp_path}/pipe is a pipe or a device, not a file\nCopy it to a file first."


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = put(tmp_path, CONTENT)
    Path(found.path).chmod(0)
    if os.access(found.path, os.R_OK):  # root may read anything

        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UnreadableFile) as told:
        found.head()
    assert str(told.value) == (
        f"No permission to read {found.path}\nTry: chmod u+r '{found.path}', or run as its owner."
    )


def test_a_disk_that_fails_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def __init__(self) -> None:
            self.reads = 0

        def __enter__(self) -> Failing:
            return self

        def __exit__(self, *_: object) -> None: ...

        def read(self, count: int) -> bytes:
            self.reads += 1
            if self.reads > 2:
                raise OSError(5, "Input/output error")
            return b"x" * count

    found = put(tmp_path, b"")
    monkeypatch.setattr(found, "_open", Failing)
    assert b"".join(found.pieces(10)) == b"x" * 20
    (problem,) = found.problems.all()
    assert problem.detail == "Reading stopped after 20 bytes: [Errno 5] Input/output error."
    assert problem.fix.startswith("Copy the file again")


def test_a_file_may_vanish_once_it_is_mapped(tmp_path: Path) -> None:
    found = put(tmp_path, CONTENT)
    data = found.content()
    Path(found.path).unlink()
    assert bytes(data) == CONTENT


def test_random_bytes_behind_the_magic_number(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(1000)
    data, problems = content(put(tmp_path, gzip_stream.GZIP_MAGIC + noise))
    assert data == b""
    assert len(problems) == 1
