"""The first answers about a run, kept for the next server: a page that was seen before is shown before its run is open."""

from __future__ import annotations

import threading

import msgspec

from stepscope.reports.kept import Asked, KeptReports, kept_reports
from stepscope.reports.report import Report
from stepscope.server.http.request import Query
from stepscope.server.runs.listed import ListedRun

# Of one open run: its layout, names, and the tiles that a screen or two ask for at first.
MOST_FIRST = 24


class First(msgspec.Struct):
    """An answer as it was sent; `data` follows it in the file."""

    content_type: str
    headers: dict[str, str]


class FirstAnswers:
    """What is kept of one run in its present state; nothing where nothing can be."""

    def __init__(self, listed: ListedRun) -> None:
        self._kept: KeptReports | None = kept_reports(listed.run)
        self._left = MOST_FIRST
        self._lock = threading.Lock()

    def report_json(self, asked: Asked) -> bytes | None:
        """A report that was made before."""
        return None if self._kept is None else self._kept.get_json(asked)

    def report(self, asked: Asked) -> Report | None:
        """The same as data."""
        return None if self._kept is None else self._kept.get(asked)

    def keep_report(self, asked: Asked, made: Report) -> Report:
        """For the next time; returns it as it will be found then."""
        return made if self._kept is None else self._kept.keep(asked, made)

    def get(self, route: str, query: Query) -> tuple[First, bytes] | None:
        """The answer that this route gave to these words before."""
        data = None if self._kept is None else self._kept.answers.get(_name(route, query))
        if data is None:
            return None
        head, _, body = data.partition(b"\n")
        try:
            return msgspec.json.decode(head, type=First), body
        except (msgspec.MsgspecError, UnicodeError):
            return None

    def keep(self, route: str, query: Query, first: First, body: bytes) -> None:
        """Keep the answer, if it is one of the first."""
        if self._kept is None or not self._may_keep():
            return
        name = _name(route, query)
        if self._kept.answers.get(name) is None:
            self._kept.keep_bytes(name, msgspec.json.encode(first) + b"\n" + body)

    def _may_keep(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0


def _name(route: str, query: Query) -> str:
    return f"{route} {query.words()}"
