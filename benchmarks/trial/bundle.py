"""Packs the recorded jobs into a few files that a slow link takes, and opens them again.

python -m benchmarks.trial.bundle OUT TARGET
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

OPENED = Path(__file__).parents[2] / ".bench" / "trial"
LARGEST = 15 << 20
# Both recordings of a job have the same names: the second lies within the compressor's reach of the first.
_REACH = 64 << 20


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
        archive.add(folder, folder.name)
    reach = max(1 << 16, min(_REACH, raw.tell()))
    return lzma.compress(raw.getvalue(), filters=[{"id": lzma.FILTER_LZMA2, "preset": 4, "dict_size": reach}])


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
        for member in archive:
            inner = archive.extractfile(member)
            if inner is not None:
                with tarfile.open(fileobj=io.BytesIO(lzma.decompress(inner.read()))) as job:
                    job.extractall(target, filter="data")


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
