"""Packs the recorded jobs into a few files that a slow link takes, and opens them again.

python -m benchmarks.trial.bundle OUT TARGET
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.trial.columns import join_numbers, split_numbers

OPENED = Path(__file__).parents[2] / ".bench" / "trial"
LARGEST = 15 << 20
# Both recordings of a job have the same names: the second lies within the compressor's reach of the first.
_REACH = 64 << 20
_COLUMNS, _GZIPPED_COLUMNS = ".columns", ".columns-gz"
_GZIP = b"\x1f\x8b"


def bundle(out: Path, target: Path) -> list[str]:
    """Pack each job, all at once, and gather them into files of at most LARGEST; a line for each file."""
    target.mkdir(parents=True, exist_ok=True)
    folders = sorted(path.parent for path in out.glob("*/result.json"))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        packed = dict(zip((folder.name for folder in folders), pool.map(pack_folder, folders), strict=True))
    lines = []
    for number, names in enumerate(_gather({name: len(data) for name, data in packed.items()})):
        path = target / f"trial.{number}.tar"
        with tarfile.open(path, "w") as archive:
            for name in names:
                _add(archive, f"{name}.tar.xz", packed[name])
        lines.append(f"{path}: {len(names)} jobs, {path.stat().st_size / 1e6:.1f} MB")
    return lines


def pack_folder(folder: Path) -> bytes:
    """One job as tar.xz."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            _add(archive, *_shrink(path.relative_to(folder.parent).as_posix(), path.read_bytes()))
    reach = max(1 << 16, min(_REACH, raw.tell()))
    return lzma.compress(raw.getvalue(), filters=[{"id": lzma.FILTER_LZMA2, "preset": 4, "dict_size": reach}])


def _shrink(name: str, data: bytes) -> tuple[str, bytes]:
    """What the compressor gets: JSON in columns, also where it is gzipped, whatever its name."""
    plain = _unzipped(data) if data.startswith(_GZIP) else data
    if plain[:64].lstrip()[:1] not in (b"{", b"["):
        return name, data
    return name + (_COLUMNS if plain is data else _GZIPPED_COLUMNS), split_numbers(plain)


def _unzipped(data: bytes) -> bytes:
    """Empty for a file that a crash cut short: it is sent as it is."""
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return b""


def _grow(name: str, data: bytes) -> tuple[str, bytes]:
    if name.endswith(_GZIPPED_COLUMNS):
        return name.removesuffix(_GZIPPED_COLUMNS), gzip.compress(join_numbers(data), 1, mtime=0)
    return (name.removesuffix(_COLUMNS), join_numbers(data)) if name.endswith(_COLUMNS) else (name, data)


def open_bundles(folder: Path) -> Path:
    """The folder itself where it holds jobs, else one with the jobs of its bundles, unpacked on first use."""
    bundles = sorted(folder.glob("trial.*.tar"))
    if not bundles:
        return folder
    seen = hashlib.sha256()
    for path in bundles:
        seen.update(path.read_bytes())
    target = OPENED / seen.hexdigest()[:12]
    if not target.exists():
        OPENED.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=OPENED))
        for path in bundles:
            unpack(path, made)
        made.rename(target)
    return target


def unpack(path: Path, target: Path) -> None:
    """The jobs of one file."""
    with tarfile.open(path) as archive:
        for _, packed in _members(archive):
            with tarfile.open(fileobj=io.BytesIO(lzma.decompress(packed))) as job:
                for name, data in _members(job):
                    _write(target, *_grow(name, data))


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        opened = archive.extractfile(member)
        if opened is not None:
            yield member.name, opened.read()


def _write(target: Path, name: str, data: bytes) -> None:
    path = (target / name).resolve()
    if path.is_relative_to(target.resolve()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _gather(sizes: dict[str, int]) -> Iterator[list[str]]:
    """Names in order, as many as fit into one file."""
    names: list[str] = []
    total = 0
    for name, size in sizes.items():
        if names and total + size > LARGEST:
            yield names
            names, total = [], 0
        names.append(name)
        total += size + 2048
    if names:
        yield names


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    print(*bundle(Path(sys.argv[1]), Path(sys.argv[2])), sep="\n")
