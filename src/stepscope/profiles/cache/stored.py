"""A trace as files: one uncompressed Arrow file per table, read in place, and one packed file per cold frame."""

from __future__ import annotations

import inspect
import mmap
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from weakref import WeakSet

import msgspec
import polars as pl

from stepscope.profiles.cache.mapped import Damaged, mapped
from stepscope.profiles.cache.private_folder import make_file
from stepscope.safe import readable
from stepscope.trace.schema import TABLES, Text, empty
from stepscope.trace.trace import Trace

try:
    from isal.isal_zlib import crc32
except ImportError:  # no wheel for this machine: slower, but the same sums
    from zlib import crc32

STRINGS = "strings"
# Up to here all names known to the process are stored as they are numbered: cheaper than finding those in use.
FEW_NAMES = 100_000
_FAILURES = (Damaged, OSError, pl.exceptions.PolarsError)
_used: WeakSet[mmap.mmap] = WeakSet()
# Older Polars has no such option and writes one batch anyway.
_CAN_SET_BATCH = "record_batch_size" in inspect.signature(pl.DataFrame.write_ipc).parameters


class StoredFile(msgspec.Struct, frozen=True):
    """One file of a stored trace, as it must be found again."""

    file: str
    size: int
    crc32: int


class Contents(msgspec.Struct):
    """The files of a stored trace. Tables that are not named have no rows."""

    tables: dict[str, StoredFile]
    cold: dict[str, StoredFile]

    def files(self) -> list[StoredFile]:
        """All of them."""
        return [*self.tables.values(), *self.cold.values()]

    def size(self) -> int:
        """Bytes on disk."""
        return sum(stored.size for stored in self.files())


def write(trace: Trace, folder: Path) -> Contents:
    """Put the trace's tables into the folder."""
    strings, number_of = _dictionary(trace)

    def table(name: str) -> StoredFile:
        frame = trace.tables[name]
        plain = _encoded(frame, number_of) if is_plain(name) else frame
        return _write_file(plain, folder / f"{name}.arrow", "uncompressed")

    def cold(number: int, frame: pl.DataFrame) -> StoredFile:
        # Twice as large as with zstd, but still an eighth of the tables, and packed in two thirds of the time.
        return _write_file(frame, folder / f"cold{number}.arrow", "lz4")

    # One after the other: whoever waits for a trace has it by now, and the processors have better things to do.
    tables = {name: table(name) for name in TABLES if len(trace.tables[name])}
    tables[STRINGS] = _write_file(strings.to_frame(), folder / f"{STRINGS}.arrow", "uncompressed")
    return Contents(tables, {name: cold(i, frame) for i, (name, frame) in enumerate(trace.cold.items())})


def is_plain(table: str) -> bool:
    """Whether the table holds nothing but numbers and names, so that it can be used in place."""
    return not any(
        isinstance(_as_type(dtype), pl.String | pl.Binary | pl.Array) for dtype in TABLES[table].values()
    )


def _as_type(dtype: pl.DataType | type[pl.DataType]) -> pl.DataType:
    return dtype() if isinstance(dtype, type) else dtype


def _is_coded(dtype: Any) -> bool:
    return isinstance(dtype, pl.Categorical | pl.Enum)


def _stored_columns(table: str) -> dict[str, Any]:
    codes = {pl.Categorical: pl.UInt32, pl.Enum: pl.UInt8}
    return {name: codes.get(type(_as_type(dtype)), dtype) for name, dtype in TABLES[table].items()}


def _dictionary(trace: Trace) -> tuple[pl.Series, pl.Series | None]:
    """The names in the trace, and the number of each by its code in this process: None where they are the same."""
    columns = [
        trace.tables[table][column]
        for table in TABLES
        if is_plain(table)
        for column, dtype in TABLES[table].items()
        if isinstance(dtype, pl.Categorical)
    ]
    every_name = Text.categories.to_series().alias(STRINGS)
    if len(every_name) <= FEW_NAMES:
        return every_name, None
    used = pl.concat([column.to_physical().unique() for column in columns]).unique().drop_nulls()
    number_of = pl.Series([0], dtype=pl.UInt32).new_from_index(0, len(every_name))
    number_of = number_of.scatter(used, pl.int_range(len(used), dtype=pl.UInt32, eager=True))
    return every_name.gather(used), number_of


def _encoded(frame: pl.DataFrame, number_of: pl.Series | None) -> pl.DataFrame:
    """The frame with names as their numbers."""
    codes = frame.select(pl.all().to_physical())
    if number_of is None:
        return codes
    named = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.Categorical)]
    return codes.with_columns(number_of.gather(codes[name]).alias(name) for name in named)


def _write_file(frame: pl.DataFrame, path: Path, compression: Any) -> StoredFile:
    options: dict[str, Any] = {"record_batch_size": max(1, len(frame))} if _CAN_SET_BATCH else {}
    make_file(path)
    frame.rechunk().write_ipc(path, compression=compression, **options)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return StoredFile(path.name, len(data), crc32(data))


class StoredTrace:
    """Reads the tables of a stored trace when they are asked for, each after its checksum."""

    def __init__(self, folder: Path, contents: Contents) -> None:
        self.folder = folder
        self.contents = contents
        self._strings: pl.Series | None = None

    def check_sizes(self) -> None:
        """Cheap: every file is there with the bytes it had. The content is checked when it is read."""
        for stored in self.contents.files():
            try:
                found = (self.folder / stored.file).stat().st_size
            except OSError as error:
                raise Damaged(f"{stored.file} is missing") from error
            if found != stored.size or "/" in stored.file or "\\" in stored.file:
                raise Damaged(f"{stored.file} has {found:,} bytes instead of {stored.size:,}")

    def table(self, name: str) -> pl.DataFrame:
        """One table, exactly as it was."""
        stored = self.contents.tables.get(name)
        if stored is None:
            return empty(name)
        if is_plain(name):
            data = self._checked(stored)
            frame = self._decoded(name, mapped(data, _stored_columns(name)))
            _let_go(data)
            _used.add(data)
        else:
            frame = self._copied(stored)
        if dict(frame.schema) != dict(pl.Schema(TABLES[name])):
            raise Damaged(f"table {name} has other columns")
        return frame

    def cold(self, name: str) -> pl.DataFrame:
        """One cold frame, unpacked."""
        return self._copied(self.contents.cold[name])

    def _decoded(self, table: str, frame: pl.DataFrame) -> pl.DataFrame:
        columns = TABLES[table]
        coded = [(name, self._names(dtype)) for name, dtype in columns.items() if _is_coded(dtype)]
        if not coded:
            return frame
        # Side by side: each of them is a copy in one thread, outside of Python's lock.
        with ThreadPoolExecutor(len(coded)) as pool:
            return frame.with_columns(
                pool.map(lambda each: each[1].gather(frame[each[0]]).alias(each[0]), coded)
            )

    def _names(self, dtype: Any) -> pl.Series:
        """What the codes of such a column stand for."""
        if isinstance(dtype, pl.Enum):
            return pl.Series(dtype.categories, dtype=dtype)
        if self._strings is None:
            stored = self.contents.tables.get(STRINGS)
            if stored is None:
                raise Damaged("the names are missing")
            self._strings = self._copied(stored)[STRINGS].cast(Text)
        return self._strings

    def _copied(self, stored: StoredFile) -> pl.DataFrame:
        self._checked(stored).close()
        return pl.read_ipc(self.folder / stored.file)

    def _checked(self, stored: StoredFile) -> mmap.mmap:
        try:
            with (self.folder / stored.file).open("rb") as file:
                # Private and writable as the Arrow interface wants it, but never written: pages stay those of the file.
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except (OSError, ValueError) as error:
            raise Damaged(f"{stored.file} cannot be mapped: {error}") from error
        if len(data) != stored.size or crc32(data) != stored.crc32:
            raise Damaged(f"{stored.file} fails its checksum")
        return data


def let_go() -> None:
    """Give back the memory of all stored tables: whatever is used again comes back from its file.

    For those that serve many traces for a long time, after they went through whole columns once.
    """
    for data in list(_used):
        _let_go(data)


def _let_go(data: mmap.mmap) -> None:
    if hasattr(mmap, "MADV_DONTNEED") and not data.closed:
        data.madvise(mmap.MADV_DONTNEED)


class LazyFrames(Mapping[str, pl.DataFrame]):
    """Frames by name, each read on first use and then kept; `over` has those that others are made of."""

    def __init__(
        self,
        names: tuple[str, ...],
        read: Callable[[str], pl.DataFrame],
        over: Mapping[str, pl.DataFrame] | None = None,
    ) -> None:
        self.over = over
        self._names = names
        self._read = read
        self._frames: dict[str, pl.DataFrame] = {}
        self._bytes: dict[str, int] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self._names:
            raise KeyError(name)
        with self._lock:
            if name not in self._frames:
                self._frames[name] = self._read(name)
                self._bytes[name] = _copied_bytes(name, self._frames[name])
            return self._frames[name]

    @property
    def nbytes(self) -> int:
        """What the frames that were read take in memory; numbers are in the mapped file, which the system may drop."""
        with self._lock:
            return sum(self._bytes.values())

    def forget(self) -> None:
        """Let go of all that was read; the next request reads it again."""
        with self._lock:
            self._frames.clear()
            self._bytes.clear()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _copied_bytes(name: str, frame: pl.DataFrame) -> int:
    """Of a table that is read in place only the names, which are decoded; all of any other frame."""
    plain = name in TABLES and is_plain(name)
    columns = [each for each in frame.get_columns() if not plain or _is_coded(each.dtype)]
    return sum(int(each.to_physical().estimated_size()) for each in columns)


def lazily(stored: StoredTrace, path: str, reload: Callable[[], Trace]) -> Trace:
    """The stored trace. Files found damaged later, or gone, are replaced by reading the profile again.

    `path` is how the profile is called this time.
    """
    fresh: list[Trace] = []
    lock = threading.Lock()

    def afresh() -> Trace:
        with lock:
            if not fresh:
                fresh.append(reload())
            return fresh[0]

    def table(name: str) -> pl.DataFrame:
        try:
            frame = afresh().tables[name] if fresh else stored.table(name)
        except _FAILURES:
            frame = afresh().tables[name]
        return frame.with_columns(path=pl.lit(readable(path))) if name == "traces" else frame

    def cold(name: str) -> pl.DataFrame:
        try:
            return afresh().cold[name] if fresh else stored.cold(name)
        except _FAILURES:
            return afresh().cold[name]

    return Trace.over(LazyFrames(tuple(TABLES), table), LazyFrames(tuple(stored.contents.cold), cold))
