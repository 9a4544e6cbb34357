"""The WSGI app: the page, its files, and the routes below api/."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request, Response

from stepscope import __version__
from stepscope.errors import StepscopeError
from stepscope.server.api import (
    compare,
    doctor,
    export,
    flame,
    memory,
    optree,
    report,
    snapshot,
    sql,
    tables,
)
from stepscope.server.api.capture import Captures
from stepscope.server.api.response import error_response, file_response, not_yet, page_response, response
from stepscope.server.api.routes import Answer, Ask, Binary, Json, RunRoute
from stepscope.server.api.runs import shown_runs
from stepscope.server.api.source import Sources
from stepscope.server.evidence import routes as evidence
from stepscope.server.http.documentation import document
from stepscope.server.http.guard import Guard
from stepscope.server.http.request import LARGEST_BODY, Query, Refused, json_object
from stepscope.server.http.static import page, plotly, web_file
from stepscope.server.runs.dashboard import Dashboard
from stepscope.server.runs.first import FirstAnswers
from stepscope.server.runs.listed import ListedRun
from stepscope.server.runs.memo import Progress, Values
from stepscope.server.runs.opened import Limits, NotYet, Opened, OpenedRun
from stepscope.server.runs.watch import Place, Runs
from stepscope.server.timeline import routes as timeline

LONGEST_PATH = 1_000
RUN_ROUTES: tuple[RunRoute, ...] = (
    *report.ROUTES,
    *tables.ROUTES,
    *flame.ROUTES,
    *optree.ROUTES,
    *memory.ROUTES,
    *snapshot.ROUTES,
    *export.ROUTES,
    *sql.ROUTES,
    *timeline.ROUTES,
    *evidence.ROUTES,
)


@dataclass(frozen=True)
class Settings:
    """How the app behaves where it is mounted."""

    capture: bool = True
    capture_servers: tuple[str, ...] = ()
    in_tensorboard: bool = False
    sources: Sources = field(default_factory=Sources)
    guard: Guard = field(default_factory=Guard)
    limits: Limits = field(default_factory=Limits)

    @property
    def capture_flag(self) -> str:
        """The option that names a profiler server to record from."""
        return (
            "tensorboard --stepscope_capture_server"
            if self.in_tensorboard
            else "stepscope serve --capture-server"
        )


class App:
    """A WSGI callable over the runs below some places."""

    def __init__(self, places: Sequence[Place], settings: Settings) -> None:
        self.settings = settings
        self.runs = Runs(places)
        self.opened = Opened(settings.limits)
        self.captures = Captures(self.runs, settings.capture_servers, settings.capture_flag)
        self._values = Values(self.opened.workers, most=20)
        self.dashboard = Dashboard()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environ)
        request.max_content_length = LARGEST_BODY
        return self.settings.guard.protect(self._answered(request))(environ, start_response)

    def close(self) -> None:
        """End the threads."""
        self.runs.close()
        self.opened.close()
        self.dashboard.close()

    def _answered(self, request: Request) -> Response:
        try:
            return self._answer(request)
        except NotYet as error:
            return response(request, not_yet(error))
        except StepscopeError as error:
            return error_response(request, error)
        except HTTPException as error:
            refused = Refused(error.name, status=error.code or 400)
            return error_response(request, refused)
        except BaseException as error:
            # Polars reports its own faults as a PanicException, which is no Exception.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            logging.getLogger(__name__).exception("stepscope failed to answer %s", request.path)
            fault = f"stepscope failed: {type(error).__name__}"
            return error_response(request, Refused(fault, status=500, fix="This is a bug; please report it."))

    def _answer(self, request: Request) -> Response:
        if not request.environ.get("PATH_INFO") and request.root_path:
            return _with_slash(request)
        path = request.path.lstrip("/")
        shown = self.settings.guard.check(request)
        if shown is not None:
            return shown
        if len(path) > LONGEST_PATH:
            raise Refused("The address is too long.", status=414)
        if path.startswith("api/"):
            return response(request, self._api(request, path.removeprefix("api/")))
        _only(request, "GET")
        if path in ("", "index.html"):
            return page_response(request, page(self.settings.guard.page_token))
        if path == "index.js":
            return file_response(request, web_file("index.js"))
        if path == "vendor/plotly.min.js":
            return file_response(request, plotly())
        if path.startswith("web/"):
            return file_response(request, web_file(path.removeprefix("web/")))
        raise Refused("There is no such page.", status=404)

    def _api(self, request: Request, path: str) -> Answer:
        words = path.split("/", 2)
        if words[0] == "runs" and len(words) == 3:
            return self._about_run(request, words[1], words[2])
        if words[0] == "capture":
            return self._captured(request, words[1:])
        _only(request, "GET")
        query = Query(request.args.to_dict())
        if path == "state":
            return Json(self._state())
        if path == "runs":
            return Json(shown_runs(self.runs, self.opened))
        if path == "figures":
            return Json(self.dashboard.shown(list(self.runs.found().runs.values())))
        if path == "compare":
            return Json(self._compared(query))
        if path == "diff":
            a, b = self._two(query)
            data = self._values.later(f"diff {a.key} {b.key}", lambda: compare.difference(a, b), "comparing")
            return Binary(data, "application/json")
        if path == "source":
            return Json(self.settings.sources.around(query))
        if path == "doctor":
            return Json(self._values.later("doctor", doctor.of_machine, "examining this machine"))
        if path.startswith("docs/"):
            text = document(path.removeprefix("docs/"))
            return Binary(text.encode(), "text/markdown; charset=utf-8")
        raise Refused("There is no such route.", status=404)

    def _state(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "places": [place.shown for place in self.runs.places],
            "scanning": not self.runs.found().is_complete,
            "capture": self.settings.capture and self.captures.folder is not None,
            "in_tensorboard": self.settings.in_tensorboard,
            "sources": bool(self.settings.sources.folders),
        }

    def _captured(self, request: Request, words: list[str]) -> Answer:
        """POST begins a recording; GET reports on one, or what can be recorded from."""
        if not self.settings.capture:
            raise Refused("Recording from this page is off.", status=403)
        self.settings.guard.check_order(request)
        if not words and request.method == "POST":
            return Json({"id": self.captures.begin(json_object(request.get_data())).id})
        _only(request, "GET")
        if len(words) > 1:
            raise Refused("There is no such route.", status=404)
        if words:
            return Json(self.captures.get(words[0]).told())
        return Json({"targets": self.captures.targets(), "servers": list(self.captures.servers)})

    def _compared(self, query: Query) -> dict[str, Any]:
        a, b = self._two(query)
        return self._values.later(f"compare {a.key} {b.key}", lambda: compare.comparison(a, b), "comparing")

    def _two(self, query: Query) -> tuple[OpenedRun, OpenedRun]:
        a, b = (self.opened.get(self._listed(query.text(name, 40))) for name in "ab")
        return a, b

    def _about_run(self, request: Request, run_id: str, rest: str) -> Answer:
        if rest == "doctor":
            _only(request, "GET")
            return Json(doctor.of_run(self.opened, self._listed(run_id)))
        found = next(
            ((route, words) for route in RUN_ROUTES if (words := route.words_of(rest)) is not None), None
        )
        if found is None:
            raise Refused("There is no such route.", status=404)
        route, words = found
        _only(request, route.method)
        if route.method == "POST":
            self.settings.guard.check_order(request)
        query, body = Query(request.args.to_dict()), request.get_data()
        listed = self._listed(run_id)
        kept = self._kept_answer(route, listed, query)
        answer = kept or route.handler(Ask(self.opened.get(listed), query, body, words))
        if rest == "report" and not request.args and isinstance(answer, Binary):
            self.dashboard.note_later(listed, bytes(answer.data))
        return answer

    def _kept_answer(self, route: RunRoute, listed: ListedRun, query: Query) -> Answer | None:
        """What an earlier server kept of a run that is not open yet, which then opens meanwhile."""
        if route.kept is None or self.opened.is_open(listed):
            return None
        found = route.kept(FirstAnswers(listed), query)
        if found is not None:
            self.opened.begin(listed)
        return found

    def _listed(self, run_id: str) -> ListedRun:
        found = self.runs.get(run_id)
        if found is None and not self.runs.found().is_complete:
            raise NotYet(Progress("looking for profiles"))
        if found is None:
            raise Refused(
                "There is no such run.",
                status=404,
                fix="Its files may be gone. Choose another run from the list.",
            )
        return found


def _with_slash(request: Request) -> Response:
    """Below a prefix: the page's addresses are relative to it, and would be relative to what is above it without the slash."""
    asked = f"?{request.query_string.decode('ascii', 'replace')}" if request.query_string else ""
    place = f"{request.root_path.rpartition('/')[2]}/{asked}"
    return Response(status=302, headers={"Location": place, "Cache-Control": "no-store"})


def _only(request: Request, method: str) -> None:
    if request.method != method and not (request.method == "HEAD" and method == "GET"):
        raise Refused(f"Only {method} here.", status=405)


def make_app(places: Sequence[Place], settings: Settings | None = None) -> App:
    """The app over these places; it looks for runs when it is first asked."""
    return App(places, settings or Settings())
