"""The database of an export: opened for reading only, its tables and columns probed, its values checked."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from stepscope.errors import UnreadableFile
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source

ROWS_AT_ONCE = 200_000
_WAIT_S = 1.0  # for a writer that holds a lock
AGAIN = "Export it again: nsys export --type sqlite --force-overwrite true REPORT.nsys-rep"


@dataclass
class Database:
    """Tables by name, each with its columns. Views and virtual tables are left out: they run what the file says."""

    path: str
    connection: sqlite3.Connection
    columns: dict[str, set[str]] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)  # rows without usable times, by table
    damaged: dict[str, str] = field(default_factory=dict)  # what SQLite says of tables that end early

    def has(self, table: str, *columns: str) -> bool:
        """Whether the table is there with these columns."""
        return table in self.columns and self.columns[table].issuperset(columns)

    def rows(
        self,
        table: str,
        numbers: Sequence[str],
        texts: Sequence[str] = (),
        where: tuple[str, int] | None = None,
    ) -> pl.DataFrame:
        """These columns of all rows, or of those where a column has a value.

        They are integers and texts, null where the file has something else or no such column.
        """
        wanted = [*(_number(name) for name in numbers), *(_text(name) for name in texts)]
        schema: dict[str, type[pl.DataType]] = {
            **dict.fromkeys(numbers, pl.Int64),
            **dict.fromkeys(texts, pl.String),
        }
        if table not in self.columns or (where is not None and where[0] not in self.columns[table]):
            return pl.DataFrame(schema=schema)
        known = self.columns[table]
        chosen = [
            expression if name in known else f'NULL AS "{name}"'
            for name, expression in zip(schema, wanted, strict=True)
        ]
        pieces = [pl.DataFrame(schema=schema)]
        query = f'SELECT {", ".join(chosen)} FROM "{table}"'
        if where is not None:
            query += f' WHERE "{where[0]}" = {where[1]:d}'
        for piece in self._fetch(table, query):
            pieces.append(pl.DataFrame(piece, schema=schema, orient="row"))
        return pl.concat(pieces)

    def _fetch(self, table: str, query: str) -> Iterator[list[tuple[Any, ...]]]:
        """The rows piece by piece; those before a damaged page are kept. A lock is an error."""
        with in_words(self.path), closing(self.connection.cursor()) as cursor:
            is_over = False
            rows: Iterator[tuple[Any, ...]] = iter(())
            while not is_over:
                found: list[tuple[Any, ...]] = []
                try:
                    rows = rows if cursor.description else cursor.execute(query)
                    found.extend(islice(rows, ROWS_AT_ONCE))  # keeps what it got before an error
                    is_over = len(found) < ROWS_AT_ONCE
                except sqlite3.DatabaseError as error:
                    if is_locked(error):
                        raise
                    self.damaged[table] = str(error)
                    is_over = True
                if found:
                    yield found

    def timed(self, table: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> pl.DataFrame:
        """The same with `start` and `end`; rows whose times are missing or absurd are left out and counted."""
        found = self.rows(table, ["start", "end", *numbers], texts)
        good = found.filter(
            pl.col("start").is_between(0, _LATEST), pl.col("end").is_between(pl.col("start"), _LATEST)
        )
        if len(good) < len(found):
            self.skipped[table] = len(found) - len(good)
        return good


_LATEST = 2**62


def _number(name: str) -> str:
    return f'CASE typeof("{name}") WHEN \'integer\' THEN "{name}" END AS "{name}"'


def _text(name: str) -> str:
    return f'CASE typeof("{name}") WHEN \'text\' THEN "{name}" END AS "{name}"'


@contextmanager
def opened(source: Source, progress: Progress) -> Iterator[Database]:
    """The database of the file. A packed or remote one is unpacked to a temporary file first."""
    with _local(source, progress) as path:
        address = f"file:{quote(str(path))}?mode=ro"
        with in_words(source.path):
            connection = sqlite3.connect(address, uri=True, timeout=_WAIT_S, isolation_level=None)
        with closing(connection):
            connection.text_factory = _decode
            with in_words(source.path):
                for setting in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON"):
                    connection.execute(f"PRAGMA {setting}")
                columns = _probe(connection)
            yield Database(source.path, connection, columns)


def _decode(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _probe(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """The ordinary tables and their ordinary columns; hidden and generated ones are none."""
    master = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    names = [
        name
        for name, sql in master
        if isinstance(name, str)
        and '"' not in name
        and not str(sql).lstrip().upper().startswith("CREATE VIRTUAL")
    ]
    found = {}
    for name in names:
        rows = connection.execute(f'PRAGMA table_xinfo("{name}")').fetchall()
        found[name] = {row[1] for row in rows if row[6] == 0}
    return found


@contextmanager
def _local(source: Source, progress: Progress) -> Iterator[Path]:
    if source.filesystem is None and not source.is_packed():
        yield Path(source.path).absolute()
        progress(source.size())
        return
    with tempfile.TemporaryDirectory(prefix="stepscope-nsys-") as folder:
        target = Path(folder) / "export.sqlite"
        with target.open("wb") as file:
            for piece in source.pieces():
                file.write(piece)
                progress(source.bytes_read)
        yield target


def is_locked(error: Exception) -> bool:
    """Whether another program keeps us out."""
    return any(word in str(error) for word in ("locked", "busy"))


@contextmanager
def in_words(path: str) -> Iterator[None]:
    """What SQLite refuses, in words for the user."""
    try:
        yield
    except sqlite3.OperationalError as error:
        text = str(error)
        if is_locked(error):
            raise UnreadableFile(
                f"{path} is locked: another program is writing it.",
                fix="Wait until nsys export has ended, then try again.",
            ) from None
        if "unable to open" in text:
            raise UnreadableFile(
                f"{path} cannot be opened by SQLite: {text}.", fix=f"Check its permissions. {AGAIN}"
            ) from None
        raise UnreadableFile(f"{path} is damaged: {text}.", fix=AGAIN) from None
    except (sqlite3.DatabaseError, OverflowError) as error:
        raise UnreadableFile(f"{path} is cut or damaged: {error}.", fix=AGAIN) from None


def read_values(database: Database, table: str, key: str, value: str) -> dict[str, str]:
    """A table of names and values."""
    if not database.has(table, key, value):
        return {}
    return dict(database.rows(table, [], [key, value]).drop_nulls().iter_rows())
