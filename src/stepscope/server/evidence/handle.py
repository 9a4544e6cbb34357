"""A handle: what a row, a mark or a finding of the page is about, as a text that fits into a link.

`kernel:NAME` is a kind and a name; further facts, as JSON, identify one of several rows of that name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from stepscope.server.http.request import BadRequest, Query

LONGEST_HANDLE = 20_000  # names of kernels fill pages
LONGEST_FACTS = 40_000
MOST_FACTS = 16


@dataclass(frozen=True)
class Handle:
    """`kind` decides which events are looked through, `name` and `facts` which of them are wanted."""

    kind: str
    name: str
    facts: dict[str, Any]

    def number(self) -> int:
        """The name where it is a whole number, as that of a step or an event is."""
        if not (self.name.isascii() and self.name.lstrip("-").isdigit() and len(self.name) <= 19):
            raise BadRequest(f"{self.kind}: wants a whole number.", where="of")
        return int(self.name)

    @property
    def key(self) -> str:
        """The same for the same wish."""
        return f"{self.kind}:{self.name} {msgspec.json.encode(self.facts, order='sorted').decode()}"


def handle_of(query: Query) -> Handle:
    """What the request is about; what is malformed is refused."""
    kind, colon, name = query.text("of", LONGEST_HANDLE).partition(":")
    if not colon:
        raise BadRequest("of must be a kind, a colon and a name.", where="of")
    return Handle(kind, name, _facts(query.text("with", LONGEST_FACTS, "")))


def _facts(text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise BadRequest("with must be a JSON object.", where="with") from None
    if len(found) > MOST_FACTS:
        raise BadRequest(f"with has more than {MOST_FACTS} facts.", where="with")
    return found
