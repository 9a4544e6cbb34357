"""What is wrong with a query, from what DuckDB says about it.

Whatever has to do with files, networks, extensions and settings gets one and the same answer: it must not reveal whether
something exists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from stepscope.profiles.sql.wire import Outcome
from stepscope.trace.schema import TABLES

NOTHING_ELSE = "Refused: queries read the tables of the profile, and no file, address, extension or setting."
_TABLE = re.compile(r"Table with name (?P<name>.+?) does not exist")
_FUNCTION = re.compile(r"Function with name \"?(?P<name>.+?)\"? (?:does not exist|is not in the catalog)")
_COLUMN = re.compile(
    r"Referenced column \"(?P<a>.+?)\" not found|does not have a column named \"(?P<b>.+?)\"|"
    r"Referenced column \"(?P<c>.+?)\" was not found"
)
_KIND_OF_ERROR = re.compile(r"^[\w ]*Error: ")
_MORE = re.compile(r"\n\s*(?:LINE \d+:|Candidate functions:|Did you mean|Candidate bindings:)", re.IGNORECASE)
_NO_MEMORY = re.compile(r"bad[_ ]alloc|allocat|out of memory", re.IGNORECASE)
# After these the database is of no use any more.
BROKEN = ("InternalException", "FatalException")
# What DuckDB raises for a query that is merely wrong. Everything else may speak of what lies outside.
_WRONG = (
    "BinderException",
    "CatalogException",
    "ConversionException",
    "ConstraintException",
    "DataError",
    "InvalidInputException",
    "InvalidTypeException",
    "NotImplementedException",
    "NotSupportedError",
    "OutOfRangeException",
    "ParserException",
    "ProgrammingError",
    "SyntaxException",
    "TypeMismatchException",
)
_OUTSIDE = re.compile(
    r"extension|secret|configuration|disabled|\bfiles?\b|\bfolder|director|permission|install|attach|"
    r"https?:|\bs3\b|setting|read-only",
    re.IGNORECASE,
)


def explained(
    error: BaseException, functions: Sequence[str], columns: Mapping[str, Sequence[str]]
) -> Outcome:
    """The outcome of a query that DuckDB refused or could not run."""
    kind, message = type(error).__name__, str(error)
    # What goes wrong while rows already come reaches us as an error of Polars, with DuckDB's words in it.
    if kind == "InterruptException" or "INTERRUPT Error" in message:
        return Outcome("too-long")
    if kind == "OutOfMemoryException" or isinstance(error, MemoryError) or _NO_MEMORY.search(message):
        return Outcome("too-large")
    if kind in BROKEN:
        return Outcome("failed", "The SQL engine cannot run this query.")
    if kind == "CatalogException":
        return _not_found(message, functions)
    if kind not in _WRONG or _OUTSIDE.search(_first_part(message)):
        return refused()
    column = _COLUMN.search(message)
    if column is not None:
        return _no_column(column["a"] or column["b"] or column["c"], columns)
    hint = (
        'Columns named like words of SQL need quotes: "from", "to", "group".'
        if kind == "ParserException"
        else None
    )
    return Outcome("failed", f"The query is wrong: {_first_part(message)}", hint)


def refused(what: str = NOTHING_ELSE) -> Outcome:
    """A query that asks for something else than rows of our tables."""
    return Outcome("refused", what, f"Ask with one SELECT over the tables {', '.join(TABLES)}.")


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A hint, if something is spelled nearly like it."""
    by_small = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), list(by_small), 1, 0.6)
    return f" Did you mean {by_small[found[0]]}?" if found else ""


def _not_found(message: str, functions: Sequence[str]) -> Outcome:
    table = _TABLE.search(message)
    if table is not None:
        name = table["name"].strip('"')
        if not name.replace("_", "").replace(".", "").isalnum():
            return refused()  # the name of a file, most likely
        hint = did_you_mean(name, list(TABLES))
        return Outcome("refused", f"There is no table {name}.{hint}", f"The tables are {', '.join(TABLES)}.")
    function = _FUNCTION.search(message)
    if function is not None:
        return Outcome(
            "refused", f"There is no function {function['name']}.{did_you_mean(function['name'], functions)}"
        )
    return refused()


def _no_column(name: str, columns: Mapping[str, Sequence[str]]) -> Outcome:
    hint = did_you_mean(name, [each for names in columns.values() for each in names])
    listed = "\n".join(f"{table} has {', '.join(names)}." for table, names in columns.items())
    return Outcome("failed", f"There is no column {name}.{hint}", listed or None)


def _first_part(message: str) -> str:
    return _KIND_OF_ERROR.sub("", _MORE.split(message, maxsplit=1)[0].strip())
