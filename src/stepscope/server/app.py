"""The WSGI app: the page, its files, and the routes below api/."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any

from werkzeug.wrappers import Request, Response

from stepscope import __version__
from stepscope.errors import StepscopeError
from stepscope.server import api_flame, api_memory, api_report, api_tables
from stepscope.server.answers import error_response, file_response, not_yet, progress_of, response
from stepscope.server.listed import ListedRun
from stepscope.server.opened import Limits, NotYet, Opened
from stepscope.server.request import Query, Refused
from stepscope.server.routes import Answer, Ask, Json, RunRoute
from stepscope.server.runs import Place, Runs
from stepscope.server.static import page, plotly, web_file
from stepscope.server.timeline import routes as timeline

LONGEST_PATH = 1_000
LARGEST_BODY = 1 << 20
RUN_ROUTES: tuple[RunRoute, ...] = (
    *api_report.ROUTES,
    *api_tables.ROUTES,
    *api_flame.ROUTES,
    *api_memory.ROUTES,
    *timeline.ROUTES,
)


@dataclass(frozen=True)
class Settings:
    """How the app behaves where it is mounted."""

    capture: bool = True
    in_tensorboard: bool = False
    token: str = field(default_factory=lambda: token_urlsafe(24))
    limits: Limits = field(default_factory=Limits)


class App:
    """A WSGI callable over the runs below some places."""

    def __init__(self, places: Sequence[Place], settings: Settings) -> None:
        self.settings = settings
        self.runs = Runs(places)
        self.opened = Opened(settings.limits)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environ)
        return self._answered(request)(environ, start_response)

    def close(self) -> None:
        """End the threads."""
        self.runs.close()
        self.opened.close()

    def _answered(self, request: Request) -> Response:
        try:
            return self._answer(request)
        except NotYet as error:
            return response(request, not_yet(error))
        except StepscopeError as error:
            return error_response(request, error)
        except BaseException as error:
            # Polars reports its own faults as a PanicException, which is no Exception.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            logging.getLogger(__name__).exception("stepscope failed to answer %s", request.path)
            fault = f"stepscope failed: {type(error).__name__}"
            return error_response(request, Refused(fault, status=500, fix="This is a bug; please report it."))

    def _answer(self, request: Request) -> Response:
        path = request.path.lstrip("/")
        if len(path) > LONGEST_PATH:
            raise Refused("The address is too long.", status=414)
        if path.startswith("api/"):
            return response(request, self._api(request, path.removeprefix("api/")))
        if request.method not in ("GET", "HEAD"):
            raise Refused("Only GET here.", status=405)
        if path in ("", "index.html"):
            return file_response(request, page(self.settings.token))
        if path == "index.js":
            return file_response(request, web_file("index.js"))
        if path == "vendor/plotly.min.js":
            return file_response(request, plotly())
        if path.startswith("web/"):
            return file_response(request, web_file(path.removeprefix("web/")))
        raise Refused("There is no such page.", status=404)

    def _api(self, request: Request, path: str) -> Answer:
        if path == "state":
            return Json(self._state())
        if path == "runs":
            return Json(self._runs())
        words = path.split("/", 2)
        if words[0] == "runs" and len(words) == 3:
            return self._about_run(request, words[1], words[2])
        raise Refused("There is no such route.", status=404)

    def _state(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "places": [place.shown for place in self.runs.places],
            "scanning": self.runs.is_scanning,
            "capture": self.settings.capture,
            "in_tensorboard": self.settings.in_tensorboard,
        }

    def _runs(self) -> dict[str, Any]:
        found = self.runs.found()
        return {
            "runs": [self._row(run) for run in found.runs.values()],
            "skipped": [{"path": item.path, "reason": item.reason} for item in found.skipped],
            "scanning": not found.is_complete,
        }

    def _row(self, listed: ListedRun) -> dict[str, Any]:
        state, progress, error = self.opened.state(listed)
        return {
            "id": listed.id,
            "name": listed.name,
            "place": listed.place,
            "format": listed.format,
            "files": len(listed.run.entries),
            "bytes": listed.run.size,
            "ranks": len(listed.run.entries),
            "modified_ns": listed.run.time_ns,
            "state": state,
            "progress": progress_of(progress),
            "error": error.what if error is not None else None,
        }

    def _about_run(self, request: Request, run_id: str, rest: str) -> Answer:
        matching = [(route, words) for route in RUN_ROUTES if (words := route.words_of(rest)) is not None]
        if not matching:
            raise Refused("There is no such route.", status=404)
        method = "GET" if request.method == "HEAD" else request.method
        for route, words in matching:
            if route.method == method:
                run = self.opened.get(self._listed(run_id))
                query = Query(request.args.to_dict())
                return route.handler(Ask(run, query, request.get_data(), words))
        raise Refused(f"Only {matching[0][0].method} here.", status=405)

    def _listed(self, run_id: str) -> ListedRun:
        found = self.runs.get(run_id)
        if found is None:
            raise Refused(
                "There is no such run.",
                status=404,
                fix="Its files may be gone. Choose another run from the list.",
            )
        return found


def make_app(places: Sequence[Place], settings: Settings | None = None) -> App:
    """The app over these places; it looks for runs when it is first asked."""
    return App(places, settings or Settings())
