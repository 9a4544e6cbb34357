"""Lets one SELECT over our tables pass and refuses everything else, before the engine sees any of it.

The engine's SQL can read any file (`read_csv('/any/path')`) and change tables. So this is a list of what is allowed:
one statement that begins with SELECT or WITH; names of our tables, or of its own WITH, where a table is expected;
calls of the functions listed here. The engine gets the checked tokens written anew, not the user's text: there is no
second reading of comments, quotes or odd spaces.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from difflib import get_close_matches

from stepscope.errors import QueryRefused
from stepscope.profiles.sql_tokens import Token, tokens
from stepscope.profiles.sql_words import (
    AFTER_FROM,
    CALLS_WITH_FROM,
    FUNCTIONS,
    OPENERS,
    REFUSED_WORDS,
    SET_OPERATORS,
    SIZED_TYPES,
)

# Past these the engine's own recursion overflows its stack. Tables and UNIONs count together.
MAX_TOKENS, MAX_DEPTH, MAX_SOURCES = 2_000, 40, 100


@dataclass(frozen=True)
class Checked:
    """A query that may run: its text written anew, and which of our tables it reads."""

    sql: str
    tables: frozenset[str]


@dataclass
class _Bracket:
    """What an open bracket holds: a query, the tables of a FROM, or an expression (of which call)."""

    what: str
    call: str = ""
    in_from: bool = False
    wants_table: bool = False


@dataclass
class _Guard:
    tables: Collection[str]
    tokens: list[Token]
    at: int = 0
    used: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    open: list[_Bracket] = field(default_factory=list)
    sources: int = 0


def check(sql: str, tables: Collection[str]) -> Checked:
    """The query, if it is one SELECT over these tables; else QueryRefused says what was refused and what is allowed."""
    try:
        found = tokens(sql)
        while found and found[-1].is_sign(";"):
            found.pop()
        guard = _Guard(tables, found)
        _check(guard)
    except QueryRefused as refused:
        raise QueryRefused(refused.what, fix=refused.fix or _allowed(tables)) from None
    return Checked(" ".join(token.source for token in found), frozenset(guard.used))


def did_you_mean(name: str, known: Collection[str]) -> str:
    """A sentence that names the closest one, where one is close."""
    near = get_close_matches(name.lower(), sorted(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]}?" if near else ""


def _allowed(tables: Collection[str]) -> str:
    return (
        f"A query is one SELECT over the tables {', '.join(tables)}; it cannot read files or change anything."
    )


def _check(guard: _Guard) -> None:
    _check_size(guard.tokens)
    first = guard.tokens[0]
    if not first.is_word("select", "with"):
        raise QueryRefused(f"Refused: a query begins with SELECT or WITH, not with {first.source}.")
    guard.open.append(_Bracket("query"))
    if first.is_word("with"):
        _with(guard)
    while guard.at < len(guard.tokens):
        _step(guard)
    if len(guard.open) != 1:
        raise QueryRefused("A bracket ( is never closed.")
    if guard.open[-1].wants_table:
        raise QueryRefused("The query ends where a table is expected.")


def _check_size(found: list[Token]) -> None:
    if not found:
        raise QueryRefused("The query is empty.")
    weighty = sum(token.sort not in ("text", "number") and not token.is_sign(",") for token in found)
    if weighty > MAX_TOKENS:
        raise QueryRefused(
            f"The query is too long: {weighty:,} words and signs; {MAX_TOKENS:,} are the most."
        )


def _peek(guard: _Guard, ahead: int = 0) -> Token:
    """The token that many places ahead, or an empty sign past the end."""
    place = guard.at + ahead
    return (
        guard.tokens[place] if 0 <= place < len(guard.tokens) else Token("sign", "", "the end of the query")
    )


def _step(guard: _Guard) -> None:
    token, bracket = _peek(guard), guard.open[-1]
    if bracket.wants_table:
        _table(guard, bracket)
    elif token.is_sign("("):
        _open(guard)
    elif token.is_sign(")"):
        _close(guard)
    elif token.is_sign(";"):
        raise QueryRefused("Refused: more than one statement.")
    elif token.is_sign(","):
        bracket.wants_table = bracket.in_from
        guard.at += 1
    elif token.sort in ("word", "name"):
        _word(guard, token, bracket)
    else:
        guard.at += 1


def _table(guard: _Guard, bracket: _Bracket) -> None:
    """A place where a table is expected: ours, one of the query's own, or a bracket."""
    token = _peek(guard)
    bracket.wants_table = False
    if token.is_sign("("):
        _open(guard, for_table=True)
        return
    _count_source(guard)
    if token.sort == "text":
        raise QueryRefused(
            f"Refused: {token.source} stands where a table is expected. Queries cannot read files."
        )
    if token.sort not in ("word", "name"):
        raise QueryRefused(f"A table is expected, not {token.source}.")
    if token.is_word(*REFUSED_WORDS):
        raise QueryRefused(f"Refused: {token.source.upper()} is not allowed in queries.")
    after = _peek(guard, 1)
    if after.is_sign("("):
        raise QueryRefused(
            f"Refused: {token.source}(…) stands where a table is expected. Table functions are not allowed."
        )
    if after.is_sign(".") or after.is_sign("["):
        raise QueryRefused(f"Refused: {token.source}{after.source}… is not a table. Tables have plain names.")
    _note_table(guard, token)
    guard.at += 1


def _note_table(guard: _Guard, token: Token) -> None:
    name = token.value.lower()
    if name in guard.own:
        return
    if name not in guard.tables:
        raise QueryRefused(
            f"There is no table {token.source}.{did_you_mean(name, [*guard.tables, *guard.own])}"
        )
    guard.used.add(name)


def _count_source(guard: _Guard) -> None:
    guard.sources += 1
    if guard.sources > MAX_SOURCES:
        raise QueryRefused(f"The query has more than {MAX_SOURCES} tables and UNIONs.")


def _open(guard: _Guard, for_table: bool = False) -> None:
    """A bracket: what it may hold depends on what stands before and after it."""
    before, after = _peek(guard, -1), _peek(guard, 1)
    if len(guard.open) > MAX_DEPTH:
        raise QueryRefused(f"The query nests more than {MAX_DEPTH} brackets.")
    guard.at += 1
    if after.is_word("select", "with"):
        guard.open.append(_Bracket("query"))
        if after.is_word("with"):
            _with(guard)
    elif for_table:
        guard.open.append(_Bracket("tables", in_from=True, wants_table=True))
    else:
        guard.open.append(_Bracket("expression", before.value if before.sort == "word" else ""))


def _close(guard: _Guard) -> None:
    if len(guard.open) == 1:
        raise QueryRefused("A bracket ) has no partner.")
    guard.open.pop()
    guard.at += 1


def _word(guard: _Guard, token: Token, bracket: _Bracket) -> None:
    before, after = _peek(guard, -1), _peek(guard, 1)
    if after.is_sign("("):
        _check_call(token, before)
    is_column = before.is_sign(".") or token.sort == "name"
    if not is_column:
        if token.value in REFUSED_WORDS:
            raise QueryRefused(f"Refused: {token.source.upper()} is not allowed in queries.")
        if token.value in SET_OPERATORS:
            _count_source(guard)
        _clause(token, before, _peek(guard, -2), bracket)
    guard.at += 1


def _check_call(token: Token, before: Token) -> None:
    """A word before a bracket is a call, and must be a function of the list."""
    name = token.value.lower()
    if token.sort == "word" and (name in OPENERS or _is_sized_type(name, before)):
        return
    if name not in FUNCTIONS:
        hint = did_you_mean(name, FUNCTIONS)
        raise QueryRefused(f"Refused: {token.source}(…) is not a function that queries may call.{hint}")


def _is_sized_type(name: str, before: Token) -> bool:
    return name in SIZED_TYPES and (before.is_word("as") or before.is_sign("::"))


def _clause(token: Token, before: Token, earlier: Token, bracket: _Bracket) -> None:
    """Follow where tables are expected: from FROM or JOIN up to the next clause."""
    if token.value == "from":
        if before.is_word("distinct") and earlier.is_word("is", "not"):
            return
        if bracket.what == "expression":
            if bracket.call not in CALLS_WITH_FROM:
                raise QueryRefused("FROM stands inside an expression.")
            return
        bracket.in_from = bracket.wants_table = True
    elif bracket.in_from and token.value == "join":
        bracket.wants_table = True
    elif bracket.in_from and token.value == "select":
        raise QueryRefused("SELECT stands after FROM.")
    elif bracket.what == "query" and token.value in AFTER_FROM:
        bracket.in_from = False


def _with(guard: _Guard) -> None:
    """WITH name [(columns)] AS (query), …: notes the names that the query gives itself."""
    guard.at += 1
    depth = len(guard.open)
    while True:
        name = _peek(guard)
        if name.sort not in ("word", "name") or name.is_word(*REFUSED_WORDS):
            raise QueryRefused(f"WITH wants a name, not {name.source}.")
        guard.at += 1
        _skip_columns(guard)
        if not (
            _peek(guard).is_word("as")
            and _peek(guard, 1).is_sign("(")
            and _peek(guard, 2).is_word("select", "with")
        ):
            raise QueryRefused(f"WITH {name.source} wants AS (SELECT …).")
        guard.at += 1
        _step(guard)
        while len(guard.open) > depth:
            if guard.at >= len(guard.tokens):
                raise QueryRefused("A bracket ( is never closed.")
            _step(guard)
        guard.own.add(name.value.lower())
        if not _peek(guard).is_sign(","):
            break
        guard.at += 1
    if not _peek(guard).is_word("select"):
        raise QueryRefused(f"After WITH a query goes on with SELECT, not with {_peek(guard).source}.")


def _skip_columns(guard: _Guard) -> None:
    """The column names after a WITH name."""
    if not _peek(guard).is_sign("("):
        return
    guard.at += 1
    while not _peek(guard).is_sign(")"):
        if _peek(guard).sort not in ("word", "name") and not _peek(guard).is_sign(","):
            raise QueryRefused(f"A column's name is expected, not {_peek(guard).source}.")
        guard.at += 1
    guard.at += 1
