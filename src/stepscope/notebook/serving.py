"""The one server of this process: every `%stepscope` shows it, and none starts another.

Its address has a secret in its path. A frame of another site gets no cookies, so that is what lets the notebook in and
nobody else.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from secrets import compare_digest, token_urlsafe
from typing import Any

from stepscope.server.app import App, Settings, make_app
from stepscope.server.http.guard import Guard
from stepscope.server.runs.watch import Place, check_place
from stepscope.server.serve import Serving, listen


@dataclass(frozen=True)
class Shown:
    """What to put into a frame."""

    port: int
    path: str

    @property
    def address(self) -> str:
        """Where the browser finds it: on this machine, or behind JupyterHub through jupyter-server-proxy."""
        hub = os.environ.get("JUPYTERHUB_SERVICE_PREFIX")
        return (
            f"{hub.rstrip('/')}/proxy/{self.port}{self.path}"
            if hub
            else f"http://127.0.0.1:{self.port}{self.path}"
        )


_lock = threading.Lock()
_running: dict[int, tuple[Serving, str]] = {}


def shown(place: str | None) -> Shown:
    """The page over the place and over all that were shown before."""
    if place is not None:
        check_place(place)
    with _lock:
        serving, secret = _running.get(os.getpid()) or _start()
    run = None
    if place is not None:
        serving.app.runs.add(Place(os.path.abspath(place) if "://" not in place else place))  # noqa: PTH100
        run = _newest(serving.app, place)
    link = f"#/overview?run={run}" if run else ""
    return Shown(serving.port, f"/{secret}/{link}")


def _start() -> tuple[Serving, str]:
    secret = token_urlsafe(24)
    app = make_app([], Settings(guard=Guard(hosts=None, may_be_framed=True)))
    serving = listen(app, "127.0.0.1", 0, wrap=lambda inner: _behind(inner, secret))
    serving.in_background()
    atexit.register(serving.close)
    _running[os.getpid()] = serving, secret
    return serving, secret


def stop() -> None:
    """End the server of this process, if there is one."""
    with _lock:
        found = _running.pop(os.getpid(), None)
    if found is not None:
        atexit.unregister(found[0].close)
        found[0].close()


def _newest(app: App, place: str) -> str | None:
    """The newest run of the place."""
    wanted = Place(os.path.abspath(place) if "://" not in place else place).shown  # noqa: PTH100
    return next((run.id for run in app.runs.look_now().runs.values() if run.place == wanted), None)


def _behind(app: Callable[..., Iterable[bytes]], secret: str) -> Callable[..., Iterable[bytes]]:
    """The app below the secret; anything else is not there."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        _, _, asked = environ.get("PATH_INFO", "").partition("/")
        first, slash, rest = asked.partition("/")
        if not compare_digest(first.encode("utf-8", "replace"), secret.encode()):
            start_response(
                "404 Not Found", [("Content-Type", "text/plain"), ("X-Content-Type-Options", "nosniff")]
            )
            return [b"There is nothing here."]
        inner = {
            **environ,
            "SCRIPT_NAME": f"{environ.get('SCRIPT_NAME', '')}/{first}",
            "PATH_INFO": slash + rest,
        }
        return app(inner, start_response)

    return answer
