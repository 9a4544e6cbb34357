"""A small reverse proxy: what stands between people and TensorBoard on shared machines."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.patience import PATIENCE_S

_OWN = ("connection", "transfer-encoding", "content-length", "date", "server")


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, target: str, prefix: str, keeps_host: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        parts = urlsplit(target)
        self.place = (str(parts.hostname), int(parts.port or 80))
        self.path = parts.path
        self.prefix = prefix
        self.keeps_host = keeps_host


class _Handler(BaseHTTPRequestHandler):
    """Takes its prefix off the address and passes the rest on. Whether with its own name as Host is a matter of taste."""

    def _pass_on(self) -> None:
        proxy = self.server
        assert isinstance(proxy, _Proxy)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
        if not proxy.keeps_host:
            headers["Host"] = "{}:{}".format(*proxy.place)
        asked = http.client.HTTPConnection(*proxy.place, timeout=PATIENCE_S)
        asked.request(self.command, proxy.path + self.path.removeprefix(proxy.prefix), body or None, headers)
        answer = asked.getresponse()
        data = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _OWN:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        asked.close()

    do_GET = do_POST = _pass_on

    def log_message(self, *_: object) -> None:
        """Tests print nothing."""


@contextmanager
def proxied(target: str, prefix: str = "", *, keeps_host: bool = True) -> Iterator[str]:
    """The address of a proxy in front of the target."""
    with _Proxy(target, prefix, keeps_host) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_address[1]}{prefix}"
        proxy.shutdown()
