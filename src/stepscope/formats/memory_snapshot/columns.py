"""The columns of a snapshot, as the worker packed them."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl

from stepscope.errors import UnreadableFile
from stepscope.formats.memory_snapshot.opcodes import COMPILED, read_opcodes
from stepscope.formats.memory_snapshot.packer import NO_STACK
from stepscope.formats.pickles.read import run_worker
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.trace.columns import series

_PACKER = Path(__file__).with_name("packer.py")
_TYPES: dict[str, Any] = {"B": pl.UInt8, "I": pl.UInt32, "Q": pl.UInt64, "q": pl.Int64}


@dataclass(frozen=True)
class Packed:
    """The header, and frames of events, segments, blocks, frames, stacks and notes; `texts` are behind their numbers."""

    header: dict[str, Any]
    tables: dict[str, pl.DataFrame]

    def table(self, name: str) -> pl.DataFrame:
        """The columns of one kind of row; without any, an empty frame."""
        return self.tables.get(name, pl.DataFrame())


def unpack(source: Source, progress: Progress) -> Packed:
    """The snapshot: by its opcodes where that is quick and it is as PyTorch writes it, else opened by the worker."""
    found = read_opcodes(source, progress) if COMPILED else None
    return assemble(*found) if found is not None else _ask_worker(source, progress)


def _ask_worker(source: Source, progress: Progress) -> Packed:
    with tempfile.TemporaryFile() as out:
        run_worker(source.path, _watched(source, progress), out, packer=_PACKER)
        out.seek(0)
        return _decode(out, source.path)


def _watched(source: Source, progress: Progress) -> Any:
    for piece in source.pieces():
        progress(source.bytes_read)
        yield piece


def _decode(file: IO[bytes], path: str) -> Packed:
    header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    if not header["known"]:
        keys = ", ".join(header["keys"]) or header["type"]
        raise UnreadableFile(
            f"{path} is a pickle, but no memory snapshot; it holds {keys}.",
            fix="Write one with: torch.cuda.memory._dump_snapshot('snapshot.pickle')",
        )
    return assemble(
        header, ((name, code, _read(file, code, count)) for name, code, count in header["columns"])
    )


def _read(file: IO[bytes], typecode: str, count: int) -> array[Any]:
    data = array(typecode)
    data.fromfile(file, count)
    return data


def assemble(header: dict[str, Any], found: Iterable[tuple[str, str, Any]]) -> Packed:
    """The tables of columns that come as a name, the code of a type, and a buffer or a series."""
    columns: dict[str, dict[str, pl.Series]] = {}
    texts = pl.Series("text", list(map(_writable, header["texts"])), dtype=pl.String)
    for name, typecode, data in found:
        table, column = name.split("_", 1)
        made = _column(data, column, typecode)
        columns.setdefault(table, {})[column] = texts.gather(made) if column in _TEXTS else made
    return Packed(header, {name: _frame(name, made) for name, made in columns.items()})


def _writable(text: str) -> str:
    """Halves of characters, which no table can hold, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


_TEXTS = ("action", "kind", "state", "name", "file")


def _column(data: Any, name: str, typecode: str) -> pl.Series:
    found = data if isinstance(data, pl.Series) else series(name, data, _TYPES[typecode])
    if name != "stack":
        return found
    return pl.select(pl.when(found != NO_STACK).then(found).alias(name)).to_series()


def _frame(name: str, columns: dict[str, pl.Series]) -> pl.DataFrame:
    if name == "stack":
        return _expand_stacks(columns["frames"], columns["ends"])
    return pl.DataFrame([column.alias(key) for key, column in columns.items()])


def _expand_stacks(frames: pl.Series, ends: pl.Series) -> pl.DataFrame:
    """stack, depth, frame: a row for each frame of each stack, the innermost first."""
    counts = ends.cast(pl.Int64) - ends.cast(pl.Int64).shift(1, fill_value=0)
    stack = pl.int_range(len(ends), dtype=pl.UInt32, eager=True).repeat_by(counts).explode()
    begin = (ends.cast(pl.Int64) - counts).gather(stack)
    depth = pl.int_range(len(frames), dtype=pl.Int64, eager=True) - begin
    return pl.DataFrame({"stack": stack, "depth": depth.cast(pl.UInt16), "frame": frames})
