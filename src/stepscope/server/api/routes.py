"""What the routes about one run take and give: plain functions from an Ask to an Answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from stepscope.server.http.request import Query
from stepscope.server.runs.first import First, FirstAnswers
from stepscope.server.runs.opened import OpenedRun


@dataclass(frozen=True)
class Ask:
    """A question about one run. `words` are the parts of the path that the route leaves open."""

    run: OpenedRun
    query: Query
    body: bytes = b""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Json:
    """Anything that msgspec writes; `status` is 200 unless the answer is that there is none yet."""

    value: Any
    status: int = 200


@dataclass(frozen=True)
class Binary:
    """Bytes as they are. `headers` may say how long to keep them, or what to call a download."""

    data: bytes | memoryview
    content_type: str = "application/octet-stream"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """A download of any length, made piece by piece while it is sent."""

    pieces: Iterator[bytes]
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Json | Binary | Stream
# Tiles and the like have OpenedRun.key in their address: another content has another address.
FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}


@dataclass(frozen=True)
class RunRoute:
    """A route below api/runs/{id}/. A part `*` of the path stands for any one word.

    `kept` answers from what an earlier server kept, before the run is open.
    """

    path: str
    handler: Callable[[Ask], Answer]
    method: Literal["GET", "POST"] = "GET"
    kept: Callable[[FirstAnswers, Query], Answer | None] | None = None

    def words_of(self, path: str) -> tuple[str, ...] | None:
        """The words in place of the route's *, or None if the path is another."""
        ours, theirs = self.path.split("/"), path.split("/")
        if len(ours) != len(theirs):
            return None
        if any(part not in (word, "*") or not word for part, word in zip(ours, theirs, strict=True)):
            return None
        return tuple(word for part, word in zip(ours, theirs, strict=True) if part == "*")


def kept_first(path: str, handler: Callable[[Ask], Answer]) -> RunRoute:
    """A route whose first answers are kept for the next server."""

    def answer(ask: Ask) -> Answer:
        found = handler(ask)
        sent = _as_sent(found)
        if sent is not None:
            ask.run.first.keep(
                path, ask.query, First(sent.content_type, dict(sent.headers)), bytes(sent.data)
            )
        return found

    def kept(first: FirstAnswers, query: Query) -> Answer | None:
        found = first.get(path, query)
        return None if found is None else Binary(found[1], found[0].content_type, found[0].headers)

    return RunRoute(path, answer, kept=kept)


def _as_sent(answer: Answer) -> Binary | None:
    if isinstance(answer, Json):
        return Binary(msgspec.json.encode(answer.value), "application/json") if answer.status == 200 else None
    return answer if isinstance(answer, Binary) else None


def download(name: str) -> dict[str, str]:
    """The headers of a download. Names come from traces: whatever is not plain becomes _."""
    plain = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name
    )
    return {"Content-Disposition": f'attachment; filename="{plain[-120:].lstrip(".") or "stepscope"}"'}
