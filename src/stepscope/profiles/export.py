"""Profiles for other tools: Chrome trace JSON, a file per rank or one for all; Parquet, a file per table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, cast

import polars as pl

from stepscope.formats.own_export.write import chrome_text
from stepscope.formats.own_export.write_merged import RankPart, merged_text
from stepscope.profiles.cache.atomic_files import ready_folder, refuse_existing, whole_file
from stepscope.profiles.profile import Profile
from stepscope.trace.schema import TABLES
from stepscope.trace.trace import Trace

try:
    from isal import igzip as gzip
except ImportError:  # no wheel for this machine: slower, but the same content
    import gzip  # type: ignore[no-redef]

_ENDINGS = re.compile(r"(\.pt)?(\.trace)?(\.json|\.xplane\.pb)?(\.gz)?$")
# Fast; stronger ones take far longer for a tenth less.
_GZIP_LEVEL = 2


def chrome(profile: Profile, target: Path, force: bool = False) -> Path:
    """Chrome trace JSON: a file, or with several ranks a folder with a file for each. Names in .gz are packed."""
    if len(profile.traces) == 1:
        return chrome_file(profile.traces[0], target, force)
    ready_folder(target, force)
    for rank, trace in zip(profile.ranks, profile.traces, strict=True):
        chrome_file(trace, target / f"rank{rank}.trace.json.gz", force)
    return target


def chrome_to(trace: Trace, stream: IO[bytes]) -> None:
    """One rank's Chrome trace JSON, not packed."""
    _send(chrome_text(trace), stream)


def chrome_file(trace: Trace, path: Path, force: bool = False) -> Path:
    """One rank's Chrome trace JSON. A name in .gz is packed."""
    return _file(chrome_text(trace), path, force)


def merged(
    parts: Sequence[RankPart], clocks: Sequence[dict[str, object]], target: Path, force: bool = False
) -> Path:
    """All ranks as one Chrome trace JSON. A name in .gz is packed."""
    return _file(merged_text(parts, clocks), target, force)


def merged_to(parts: Sequence[RankPart], clocks: Sequence[dict[str, object]], stream: IO[bytes]) -> None:
    """The same, not packed."""
    _send(merged_text(parts, clocks), stream)


def parquet(profile: Profile, target: Path, force: bool = False) -> Path:
    """A folder with a Parquet file for each table that has rows. Names are plain texts in them."""
    ready_folder(target, force)
    for name in TABLES:
        frame = profile.table(name)
        if len(frame):
            with whole_file(target / f"{name}.parquet", force) as file:
                frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)).write_parquet(file)
    return target


WRITERS: dict[str, Callable[[Profile, Path, bool], Path]] = {"chrome": chrome, "parquet": parquet}


def default_name(profile: Profile, to: str, merge: bool = False) -> Path:
    """A name in the current folder that shows where it came from."""
    last = profile.name.rstrip("/").rsplit("/", 1)[-1]
    stem = re.sub(r"[^\w.-]+", "_", _ENDINGS.sub("", last)).strip("._") or "profile"
    if to == "parquet":
        return Path(f"{stem}.tables")
    return Path(f"{stem}.chrome.json.gz" if merge or len(profile.traces) == 1 else f"{stem}.chrome")


def check_target(target: Path, to: str, force: bool) -> None:
    """Refuse what is refused anyway before the profile is read: a file that exists already."""
    if to == "chrome" and not target.is_dir():
        refuse_existing(target, force)


def is_one_file(target: Path) -> bool:
    """Whether the name is that of a Chrome trace, and not of a folder."""
    return not target.is_dir() and bool(re.search(r"\.json(\.gz)?$", target.name))


def _file(pieces: Iterable[str], path: Path, force: bool) -> Path:
    with whole_file(path, force) as file:
        if path.suffix == ".gz":
            with gzip.open(file, "wb", compresslevel=_GZIP_LEVEL) as packed:  # type: ignore[no-untyped-call, unused-ignore]
                _send(pieces, cast("IO[bytes]", packed))
        else:
            _send(pieces, file)
    return path


def _send(pieces: Iterable[str], file: IO[bytes]) -> None:
    for piece in pieces:
        file.write(piece.encode())
