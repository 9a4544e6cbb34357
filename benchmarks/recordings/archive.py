"""Sets of recordings: some lie in tests/fixtures as profilers wrote them, the others are packed beside them, in one file a set."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks.recordings.json_trace import JsonTrace, pack_json, unpack_json
from benchmarks.recordings.xspace import XSpace, pack_xspace, unpack_xspace

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
OPENED = ROOT / ".bench" / "recordings"
PACKED = "packed.xz"
# One recording of a job helps to pack the next: all of a set lie within the reach of the compressor.
_REACH = 128 << 20
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": _REACH}]


class Member(msgspec.Struct, array_like=True):
    """One file: its name without .gz, and its columns."""

    name: str
    json: JsonTrace | None
    xspace: XSpace | None


class _Named(msgspec.Struct, array_like=True):
    """The same, its columns left as they are."""

    name: str
    json: msgspec.Raw
    xspace: msgspec.Raw


def pack(paths: Iterable[Path], target: Path) -> None:
    """Pack recordings into one file, and make sure that they come out again."""
    members = []
    for path in sorted(paths, key=lambda path: (path.name.endswith("pb.gz"), path.name)):
        data = gzip.decompress(path.read_bytes())
        member = _pack_member(path.name.removesuffix(".gz"), data)
        same = (
            unpack_member(member) == data
            if member.xspace
            else _values(unpack_member(member)) == _values(data)
        )
        if not same:
            raise ValueError(f"{path} does not come out as it went in")
        members.append(member)
    target.write_bytes(lzma.compress(msgspec.msgpack.encode(members), filters=_FILTERS))


def unpack(archive: Path, folder: Path) -> None:
    """All recordings of the file, gzipped as profilers leave them."""
    for member in msgspec.msgpack.decode(lzma.decompress(archive.read_bytes()), type=list[Member]):
        (folder / f"{member.name}.gz").write_bytes(_gzipped(member))


def open_set(name: str) -> Path:
    """A folder with the whole set, made on first use and kept until the set changes."""
    source = FIXTURES / name
    folder = OPENED / f"{name}-{_digest(source)}"
    if not folder.exists():
        OPENED.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=OPENED))
        for path in source.iterdir():
            if path.name != PACKED:
                shutil.copy(path, made)
        unpack(source / PACKED, made)
        _move(made, folder)
    return folder


def open_recording(name: str, file: str) -> Path:
    """One recording of the set: unpacking all of them takes a hundred times as long."""
    source = FIXTURES / name
    if (source / file).exists():
        return source / file
    target = OPENED / f"{name}-{_digest(source)}-some" / file
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        packed = lzma.decompress((source / PACKED).read_bytes())
        for raw in msgspec.msgpack.decode(packed, type=list[msgspec.Raw]):
            if f"{msgspec.msgpack.decode(raw, type=_Named).name}.gz" == file:
                draft = target.with_name(f"{file}.{os.getpid()}")
                draft.write_bytes(_gzipped(msgspec.msgpack.decode(raw, type=Member)))
                draft.replace(target)
                break
        else:
            raise FileNotFoundError(f"{source / PACKED} has no {file}")
    return target


def unpack_member(member: Member) -> bytes:
    """The file."""
    if member.json is not None:
        return unpack_json(member.json)
    assert member.xspace is not None
    return unpack_xspace(member.xspace)


def _gzipped(member: Member) -> bytes:
    return gzip.compress(unpack_member(member), 1, mtime=0)


def _pack_member(name: str, data: bytes) -> Member:
    if name.endswith(".json"):
        return Member(name, pack_json(data), None)
    return Member(name, None, pack_xspace(data))


def _values(data: bytes) -> object:
    return msgspec.json.decode(data)


def _digest(source: Path) -> str:
    """Of names, sizes and the packed file: another set gets another folder."""
    found = hashlib.sha256((source / PACKED).read_bytes())
    for path in sorted(source.iterdir()):
        found.update(f"{path.name} {path.stat().st_size}\n".encode())
    return found.hexdigest()[:12]


def _move(made: Path, folder: Path) -> None:
    """Whoever comes second finds the folder there, and throws its own away."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.exists():
            raise
        shutil.rmtree(made)
