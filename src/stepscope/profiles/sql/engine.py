"""SQL over a profile's tables and nothing else."""

from __future__ import annotations

import re
from typing import Protocol

import polars as pl

from stepscope.errors import QueryRefused, StepscopeError
from stepscope.profiles.sql_guard import check, did_you_mean
from stepscope.trace.schema import TABLES

_SCAN = re.compile(r"^\s*\w+ SCAN ", re.MULTILINE)
_NO_COLUMN = re.compile(r"unable to find column \"(?P<a>.+?)\";|no column named '(?P<b>.+?)' found")
_END_OF_MESSAGE = re.compile(
    r"\n\n(?:Resolved plan|This error occurred|You might want)| at Line: \d+, Column: \d+"
)


class HasTables(Protocol):
    """A profile, as far as queries need it."""

    def table(self, name: str) -> pl.DataFrame:
        """The table of all ranks."""


class QueryFailed(StepscopeError):
    """A query that is allowed, but wrong."""


def query(profile: HasTables, sql: str) -> pl.DataFrame:
    """The rows that the query selects. Names in `TABLES` are its tables; a wrong or refused query is a StepscopeError."""
    checked = check(sql, TABLES)
    frames = {name: _for_sql(profile.table(name)) for name in sorted(checked.tables)}
    try:
        plan = pl.SQLContext(frames=frames, register_globals=False, eager=False).execute(checked.sql)
        _refuse_scans(plan)
        return plan.collect()
    except (pl.exceptions.PolarsError, OSError, OverflowError) as error:
        raise _explained(str(error), frames) from error
    except pl.exceptions.PanicException as error:
        raise QueryFailed(f"The SQL engine cannot run this query: {_first_part(str(error))}") from None


def _for_sql(frame: pl.DataFrame) -> pl.LazyFrame:
    """The table as queries see it: names are texts, so that LIKE and || work on them, and arrays are lists."""
    casts = {}
    for name, dtype in frame.schema.items():
        if isinstance(dtype, pl.Categorical | pl.Enum):
            casts[name] = pl.col(name).cast(pl.String)
        elif isinstance(dtype, pl.Array):
            casts[name] = pl.col(name).arr.to_list()
    return frame.lazy().with_columns(**casts)


def _refuse_scans(plan: pl.LazyFrame) -> None:
    """A second fence behind the guard: our tables are in memory, so a plan that reads a file is not ours."""
    if _SCAN.search(plan.explain(optimized=False)):
        raise QueryRefused("Refused: the query would read a file.")


def _explained(message: str, frames: dict[str, pl.LazyFrame]) -> QueryFailed:
    column = _NO_COLUMN.search(message)
    if column is None:
        return QueryFailed(f"The query is wrong: {_first_part(message)}", fix=_quoting_hint(message))
    name = column["a"] or column["b"]
    known = {table: frame.collect_schema().names() for table, frame in frames.items()}
    hint = did_you_mean(name, {each for names in known.values() for each in names})
    listed = "\n".join(f"{table} has {', '.join(names)}." for table, names in known.items())
    return QueryFailed(f"There is no column {name}.{hint}", fix=listed or None)


def _first_part(message: str) -> str:
    return _END_OF_MESSAGE.split(message, maxsplit=1)[0].strip()


def _quoting_hint(message: str) -> str | None:
    if "parser error" not in message:
        return None
    return 'Columns named like words of SQL need quotes: "from", "to", "group".'
