"""Cuts a query into words, names, texts, numbers and signs. What could be read in two ways is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from stepscope.errors import QueryRefused

MAX_CHARACTERS = 100_000

Sort = Literal["word", "name", "text", "number", "sign"]


@dataclass(frozen=True)
class Token:
    """A piece of the query. `value` is the content: without quotes, and in lower case for words."""

    sort: Sort
    value: str
    source: str

    def is_word(self, *values: str) -> bool:
        """Whether this is one of these bare words; quoted names never are."""
        return self.sort == "word" and self.value in values

    def is_sign(self, value: str) -> bool:
        """Whether this is the sign."""
        return self.sort == "sign" and self.value == value


_PIECE = re.compile(
    r"""
    (?P<space>   [ \t\r\n\f]+ )
  | (?P<line>    --[^\n]* )
  | (?P<block>   /\* )
  | (?P<text>    '(?:[^']|'')*' )
  | (?P<name>    "(?:[^"]|"")*" | `[^`]*` )
  | (?P<number>  (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_'"]) )
  | (?P<word>    [A-Za-z_][A-Za-z0-9_]*(?!['"`A-Za-z0-9_]) )
  | (?P<sign>    :: | \|\| | <> | <= | >= | != | == | !~~?\*? | ~~?\*? | [-+*/%=<>(),.;|&^\[\]] )
    """,
    re.VERBOSE | re.ASCII,
)
_BLOCK_EDGE = re.compile(r"/\*|\*/")
# A reader that knows backslash escapes would see the text end elsewhere.
_AMBIGUOUS_END = re.compile(r"(?<!\\)(?:\\\\)*\\'")


def tokens(sql: str) -> list[Token]:
    """The query's tokens, without spaces and comments."""
    if len(sql) > MAX_CHARACTERS:
        raise QueryRefused(f"The query has {len(sql):,} characters; {MAX_CHARACTERS:,} are the most.")
    return list(_pieces(sql))


def _pieces(sql: str) -> Iterator[Token]:
    at = 0
    while at < len(sql):
        found = _PIECE.match(sql, at)
        if found is None:
            raise QueryRefused(_what_stands(sql, at))
        if found.lastgroup == "block":
            at = _end_of_comment(sql, at)
            continue
        at = found.end()
        if found.lastgroup not in ("space", "line"):
            yield _token(str(found.lastgroup), found.group())


def _token(sort: str, source: str) -> Token:
    if sort == "text":
        if _AMBIGUOUS_END.search(source):
            raise QueryRefused("A text holds a backslash before a quote, which can be read in two ways.")
        return Token("text", source[1:-1].replace("''", "'"), source)
    if sort == "name":
        value = source[1:-1].replace('""', '"') if source[0] == '"' else source[1:-1]
        return Token("name", value, '"' + value.replace('"', '""') + '"')
    if sort == "word":
        return Token("word", source.lower(), source)
    return Token("number" if sort == "number" else "sign", source, source)


def _end_of_comment(sql: str, start: int) -> int:
    depth, at = 0, start
    while True:
        edge = _BLOCK_EDGE.search(sql, at)
        if edge is None:
            raise QueryRefused("A comment that begins with /* is never closed.")
        depth += 1 if edge.group() == "/*" else -1
        at = edge.end()
        if depth == 0:
            return at


def _what_stands(sql: str, at: int) -> str:
    """Says why no token begins here."""
    rest = sql[at : at + 20]
    if rest[0] == "'":
        return "A text that begins with ' is never closed."
    if rest[0] in '"`':
        return f"A name that begins with {rest[0]} is never closed."
    if re.match(r"[A-Za-z_][A-Za-z0-9_]*&?['\"`]", rest):
        return f"Texts with a prefix are not allowed in queries: {rest!r}. Write them as 'text'."
    if rest[0] == "$":
        return "Dollar quotes and parameters are not allowed in queries. Write texts as 'text'."
    if not rest[0].isascii():
        return f"{rest[0]!a} is not allowed outside quotes in queries."
    return f"{rest[0]!r} is not allowed in queries, in {rest!r}."
