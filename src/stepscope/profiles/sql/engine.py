"""A profile's tables in DuckDB, locked up: one SELECT at a time, and nothing outside of the tables.

Tables are copied once into DuckDB's own form, since it then knows how many rows there are. Without that, it took minutes for an
ASOF join that takes half a second. Columns of names are stored as numbers into a list of names, and read as text.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import polars as pl

from stepscope.profiles.sql.explain import BROKEN, explained, refused
from stepscope.profiles.sql.wire import Order, Outcome, Table
from stepscope.trace.schema import TABLES

# DuckDB reads and writes its temporary folder whatever it is told about external access, so there is none.
_CLOSED = (
    "SET temp_directory = ''",
    "SET python_enable_replacements = false",
    "SET autoload_known_extensions = false",
    "SET autoinstall_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET allow_persistent_secrets = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
PROTECTION = "DuckDB: no external access, no extensions, no temporary folder, configuration locked, read-only"
_STORED = "stored"
_INCOMING = "incoming"
_AS_THEY_ARE = frozenset(
    [
        "boolean",
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "utinyint",
        "usmallint",
        "uinteger",
        "ubigint",
        "float",
        "double",
        "varchar",
        "blob",
    ]
)
# The limit is set before the tables come, so they have room of their own. On Linux the worker bounds each query more closely.
_TABLES_BYTES = 4 << 30
_MOST_NAMES = 100_000  # a column of more is no list of names
_TEXT_AS_QUERY = {"query", "query_table"}
_LARGEST = 2**63 - 1


class _Stream:
    """A frame as nothing but an Arrow stream: for one that it knows, DuckDB would want pyarrow."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


class Database:
    """The tables of one profile. Its threads start with `lock`, so that whatever binds the caller by then binds them too."""

    def __init__(self) -> None:
        self.tables: dict[str, list[str]] = {}
        self.is_broken = False
        self._named: set[str] = set()
        self._connection = duckdb.connect(":memory:", config=_without_threads())
        self._connection.execute(f"CREATE SCHEMA {_STORED}")

    def lock(self, threads: int | None, memory_bytes: int | None) -> None:
        """Before the first query: no setting can be changed from here on."""
        self._connection.execute(f"SET threads = {threads or os.cpu_count() or 1}")
        if memory_bytes is not None:
            self._connection.execute(f"SET memory_limit = '{(memory_bytes + _TABLES_BYTES) >> 20}MiB'")
        for setting in _CLOSED:
            self._connection.execute(setting)

    def put(self, table: Table, pieces: Iterable[pl.DataFrame]) -> None:
        """Another table."""
        chosen: list[str] = []
        shown: list[str] = []
        names = {column: pl.Series(values, dtype=pl.String) for column, values in table.names.items()}
        for number, piece in enumerate(pieces):
            if number == 0:
                chosen, shown = self._columns(table, piece.columns)
            self._register(_with_names(piece, names))
            rows = f"SELECT {', '.join(chosen)} FROM {_INCOMING}"
            target = f"{_STORED}.{_quoted(table.name)}"
            self._connection.execute(
                f"INSERT INTO {target} {rows}" if number else f"CREATE TABLE {target} AS {rows}"
            )
            self._connection.unregister(_INCOMING)
            self.tables[table.name] = piece.columns
        view = f"SELECT {', '.join(shown)} FROM {_STORED}.{_quoted(table.name)}"
        self._connection.execute(f"CREATE VIEW {_quoted(table.name)} AS {view}")

    def _columns(self, table: Table, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """How each column is stored, and how queries see it."""
        chosen, shown = [], []
        for name in map(_quoted, names):
            values = table.names.get(name[1:-1].replace('""', '"'))
            if not values or len(values) > _MOST_NAMES:
                chosen.append(name)
                shown.append(name)
                continue
            kind = _quoted(f"{table.name} {name}")
            self._register(pl.DataFrame({"name": values}))
            self._connection.execute(f"CREATE TYPE {kind} AS ENUM (SELECT name FROM {_INCOMING})")
            self._connection.unregister(_INCOMING)
            chosen.append(f"{name}::{kind} AS {name}")
            shown.append(f"{name}::VARCHAR AS {name}")
        return chosen, shown

    def _register(self, frame: pl.DataFrame) -> None:
        self._connection.register(_INCOMING, _Stream(frame))

    def _one(self, sql: str, parameters: list[str] | None = None) -> tuple[Any, ...]:
        (found,) = self._connection.execute(sql, parameters).fetchall()
        return tuple(found)

    def check(self, sql: str) -> Outcome | None:
        """Why it is not one SELECT, by DuckDB's own parser; None if it is one."""
        try:
            statements = self._connection.extract_statements(sql)
        except duckdb.Error as error:
            return self._explained(error)
        if not statements:
            return refused("The query is empty.")
        if len(statements) > 1:
            return refused("Refused: more than one statement.")
        if statements[0].type != duckdb.StatementType.SELECT:
            return refused(f"Refused: a query is a SELECT, not {statements[0].type.name}.")
        return None

    def named(self, sql: str) -> set[str]:
        """The tables that the query may need, by DuckDB's own parser: all where a text is going to be the query."""
        tree = json.loads(self._one("SELECT json_serialize_sql(?)", [sql])[0])
        words = set(_words(tree))
        self._named = set(TABLES) if tree["error"] or words & _TEXT_AS_QUERY else words.intersection(TABLES)
        return self._named

    def answer(self, order: Order) -> tuple[Outcome, pl.DataFrame | None]:
        """The rows of the query, or what is wrong with it."""
        timer = threading.Timer(order.seconds, self._connection.interrupt) if order.seconds else None
        try:
            self._connection.execute("BEGIN TRANSACTION READ ONLY")
            if timer is not None:
                timer.start()
            found = self._selected(order.sql)
            kept = found if order.most_rows is None else found.head(order.most_rows)
            return Outcome("rows", rows=len(found)), kept
        except (duckdb.Error, pl.exceptions.PolarsError, MemoryError) as error:
            return self._explained(error), None
        finally:
            if timer is not None:
                timer.cancel()
            self._end()

    def _end(self) -> None:
        try:
            self._connection.execute("ROLLBACK")
        except duckdb.Error:  # an error inside has ended the transaction already
            pass

    def _selected(self, sql: str) -> pl.DataFrame:
        (statement,) = self._connection.extract_statements(sql)  # what was checked is what runs
        relation = self._connection.sql(statement)
        columns = [
            f"{_as_known(place, kind)} AS {_quoted(name)}"
            for place, (name, kind) in enumerate(
                zip(_distinct(relation.columns), relation.types, strict=True), 1
            )
        ]
        frame = pl.DataFrame(relation.project(", ".join(columns)))
        return frame.with_columns(
            _as_integer(frame[name]) for name, kind in frame.schema.items() if kind == pl.Decimal
        )

    def _explained(self, error: BaseException) -> Outcome:
        self.is_broken = type(error).__name__ in BROKEN
        functions: list[str] = []
        if "Function with name" in str(error):
            self._end()
            known = "SELECT LIST(DISTINCT function_name) FROM duckdb_functions() WHERE function_name SIMILAR TO '\\w+'"
            functions = self._one(known)[0]
        return explained(
            error, functions, {name: self.tables[name] for name in self.tables if name in self._named}
        )

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()


def _with_names(piece: pl.DataFrame, names: Mapping[str, pl.Series]) -> pl.DataFrame:
    """The piece with names in place of their numbers."""
    return piece.with_columns(known.gather(piece[column]).alias(column) for column, known in names.items())


def _words(node: Any) -> Iterator[str]:
    """The names of tables and functions in a parsed query, in small letters."""
    if isinstance(node, dict):
        yield from (str(node[key]).lower() for key in ("table_name", "function_name") if key in node)
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _words(each)


def _without_threads() -> dict[str, str | bool | int | float | list[str]]:
    """One thread is the caller's. Versions before 2 have no others for reading files."""
    settings = duckdb.connect(":memory:", config={"threads": 1})
    has_readers = settings.execute("SELECT 1 FROM duckdb_settings() WHERE name = 'async_threads'").fetchall()
    settings.close()
    return {"threads": 1, "async_threads": 0} if has_readers else {"threads": 1}


def _as_known(place: int, kind: Any) -> str:
    """The column in a form that Polars has: decimals as floats, and what is neither number nor text as text."""
    if kind.id == "decimal":
        return f"#{place}::DOUBLE"
    return f"#{place}" if kind.id == "hugeint" or _is_known(kind) else f"#{place}::VARCHAR"


def _is_known(kind: Any) -> bool:
    if kind.id in ("list", "array"):
        return _is_known(kind.children[0][1])
    if kind.id == "struct":
        return bool(kind.children) and all(name and _is_known(child) for name, child in kind.children)
    return kind.id in _AS_THEY_ARE


def _as_integer(values: pl.Series) -> pl.Series:
    """Sums of whole numbers have 128 bits in DuckDB, which few readers of our files know."""
    largest = max(abs(int(values.max() or 0)), abs(int(values.min() or 0)))  # type: ignore[arg-type]
    exact: pl.Series = values.cast(pl.Int64 if largest <= _LARGEST else pl.Float64)
    return exact


def _distinct(names: Sequence[str]) -> list[str]:
    """Columns of joined tables may have the same name: the second `name` becomes name_1."""
    found: list[str] = []
    for name in names:
        count, free = 0, name
        while free in found or (count and free in names):
            count += 1
            free = f"{name}_{count}"
        found.append(free)
    return found


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
