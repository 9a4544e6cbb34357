"""The app under waitress: one process, a bounded number of threads and bytes, until it is interrupted."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.server.app import App
from stepscope.server.http.connections import Server
from stepscope.server.http.request import LARGEST_BODY

THREADS = 16


@dataclass
class Serving:
    """A server that listens; `run` answers until `close`."""

    app: App
    host: str
    port: int
    server: Server
    prefix: str = ""
    _is_closed: bool = False

    @property
    def address(self) -> str:
        """What to open."""
        known = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(self.host, self.host)
        host = f"[{known}]" if ":" in known else known
        place = f"{self.prefix}/" if self.prefix else ""
        return f"http://{host}:{self.port}/{place}"

    def run(self) -> None:
        """Answer until interrupted."""
        try:
            self.server.run()
        finally:
            self.close()

    def in_background(self) -> threading.Thread:
        """Answer from a thread of its own."""
        thread = threading.Thread(target=self._until_closed, name="stepscope-http", daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """Listen no more."""
        self._is_closed = True
        self.server.close()
        self.server.task_dispatcher.shutdown(timeout=1)
        self.app.close()

    def _until_closed(self) -> None:
        try:
            self.server.run()
        except (OSError, ValueError):  # its sockets were closed while it waited for them
            if not self._is_closed:
                raise


def listen(
    app: App, host: str, port: int, prefix: str = "", wrap: Callable[[App], Any] = lambda app: app
) -> Serving:
    """Bind the address; port 0 takes any that is free. `wrap` may be a layer around the app."""
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a short queue is nothing to tell
    try:
        bound = socket.create_server((host, port), family=_family(host), backlog=128)
    except (OSError, OverflowError) as error:
        raise _cannot_listen(host, port, error) from None
    server = Server(
        wrap(app),
        bound,
        THREADS,
        max_request_body_size=LARGEST_BODY,
        max_request_header_size=64 << 10,
        ident="stepscope",
        url_prefix=prefix.rstrip("/"),
    )
    return Serving(app, host, int(bound.getsockname()[1]), server, prefix.strip("/"))


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _cannot_listen(host: str, port: int, error: Exception) -> StepscopeError:
    why = getattr(error, "strerror", None) or str(error)
    return StepscopeError(
        f"Cannot listen on {host}:{port}: {why}", fix="Choose another port with --port, or --port 0 for any."
    )
