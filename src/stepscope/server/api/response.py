"""Answers as HTTP responses: types, caching, compression, and errors in the one form that the page knows."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

import msgspec
from werkzeug.datastructures import Headers
from werkzeug.wrappers import Request, Response

from stepscope.errors import NothingFound, StepscopeError, UnreadableFile
from stepscope.server.api.routes import FOREVER, Answer, Json, Stream
from stepscope.server.http.request import Refused
from stepscope.server.http.static import StaticFile
from stepscope.server.runs.opened import NotYet, Progress

COMPRESS_FROM = 4 << 10
_COMPRESSED = ("text/", "application/json", "image/svg+xml")
_LONGEST_MESSAGE = 4_000


class _Unchanged(Response):
    """Says what kind of file it is although it sends none: TensorBoard misses it otherwise."""

    def get_wsgi_headers(self, environ: Any) -> Headers:
        headers = super().get_wsgi_headers(environ)
        headers["Content-Type"] = self.content_type or ""
        return headers


def response(request: Request, answer: Answer) -> Response:
    """The answer of a route."""
    if isinstance(answer, Json):
        data = msgspec.json.encode(answer.value)
        return _sent(request, data, "application/json", {"Cache-Control": "no-store"}, answer.status)
    headers = {"Cache-Control": "no-store", **answer.headers}
    if isinstance(answer, Stream):
        return Response(answer.pieces, 200, headers, content_type=answer.content_type)
    return _sent(request, answer.data, answer.content_type, headers)


def file_response(request: Request, file: StaticFile) -> Response:
    """A file of the page: the browser asks each time whether it is still the same, unless its address says which one it is."""
    tag = f'"{file.tag}"'
    is_named = request.args.get("v") == file.tag
    headers = {"Cache-Control": "no-cache", **(FOREVER if is_named else {}), "ETag": tag}
    if tag in request.headers.get("If-None-Match", ""):
        return _Unchanged(status=304, headers=headers, content_type=file.content_type)
    if not _is_packed(request, file.content_type, file.data):
        return _sent(request, file.data, file.content_type, headers)
    packed = {"Vary": "Accept-Encoding", "Content-Encoding": "gzip"}
    return Response(file.packed, 200, headers | packed, content_type=file.content_type)


def page_response(request: Request, file: StaticFile) -> Response:
    """The page itself, which is never cached: its token is of this server alone."""
    return _sent(request, file.data, file.content_type, {"Cache-Control": "no-store"})


def error_response(request: Request, error: StepscopeError) -> Response:
    """What went wrong, where, and what to do."""
    told = {"what": error.what, "where": getattr(error, "where", ""), "fix": error.fix}
    cut = {name: text[:_LONGEST_MESSAGE] if text else "" for name, text in told.items()}
    return response(request, Json({"error": cut}, status_of(error)))


def not_yet(error: NotYet) -> Json:
    """The page shows the progress and asks again."""
    return Json({"state": "loading", "progress": progress_of(error.progress)}, 202)


def progress_of(progress: Progress | None) -> dict[str, Any] | None:
    """As the page gets it."""
    if progress is None:
        return None
    return {"stage": progress.stage, "done": progress.done, "total": progress.total}


def status_of(error: StepscopeError) -> int:
    """4xx: an error in words is the asker's, or the profile's; only what says otherwise itself is a fault of ours."""
    if isinstance(error, Refused):
        return error.status
    return 404 if isinstance(error, NothingFound) else 422 if isinstance(error, UnreadableFile) else 400


def _sent(
    request: Request,
    data: bytes | memoryview,
    content_type: str,
    headers: Mapping[str, str],
    status: int = 200,
) -> Response:
    sent = dict(headers)
    body = bytes(data)
    if content_type.startswith(_COMPRESSED):
        sent["Vary"] = "Accept-Encoding"
    if _is_packed(request, content_type, body):
        body = gzip.compress(body, 1)
        sent["Content-Encoding"] = "gzip"
    return Response(body, status, sent, content_type=content_type)


def _is_packed(request: Request, content_type: str, body: bytes) -> bool:
    return (
        content_type.startswith(_COMPRESSED)
        and len(body) >= COMPRESS_FROM
        and "gzip" in request.headers.get("Accept-Encoding", "")
    )
