"""A slow world for the tests of the page, where what a fast machine hides goes wrong: STEPSCOPE_SLOW_PAGE=SEED turns it on.

Answers of the server come up to 0.8 s late and so in another order than they were asked for, the page's processor is
several times slower, and changes of the address and frames are handled late. Another seed is another order.
"""

from __future__ import annotations

import os
import random
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

LATEST_S = 0.8
THROTTLE = 5  # times slower
_PIECE = 1 << 16
# Runs in the page before its own scripts. Frames and addresses are late at random, each by its own draw.
_LATE_EVENTS = """(() => {
  let state = SEED;
  const draw = (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (most * state) / 2 ** 32;
  };
  const listen = window.addEventListener.bind(window);
  window.addEventListener = (type, heard, options) => {
    const isAddress = type === "hashchange" || type === "popstate";
    const late = isAddress ? (event) => setTimeout(() => late.on && heard.call(window, event), draw(400)) : heard;
    if (isAddress) { late.on = true; heard.late = late; }
    return listen(type, late, options);
  };
  const forget = window.removeEventListener.bind(window);
  window.removeEventListener = (type, heard, options) => {
    if (heard?.late) heard.late.on = false;
    return forget(type, heard?.late ?? heard, options);
  };
  const frame = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (paint) => frame((now) => (draw(1) < 0.2 ? setTimeout(() => paint(performance.now()), draw(120)) : paint(now)));
})()"""


def seed() -> int | None:
    """The seed of the slow world; None in the usual one."""
    given = os.environ.get("STEPSCOPE_SLOW_PAGE")
    return int(given) if given else None


def slow_down(page: Any) -> None:
    """Make this page's processor and its events slow, if the world is."""
    number = seed()
    if number is None:
        return
    page.add_init_script(_LATE_EVENTS.replace("SEED", str(number)))
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": THROTTLE})


@contextmanager
def late(url: str) -> Iterator[str]:
    """The address at which the server of this one answers late; the same one where the world is not slow."""
    number = seed()
    if number is None:
        yield url
        return
    parts = urlsplit(url)
    with _Proxy((str(parts.hostname), int(parts.port or 80)), random.Random(number)) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield parts._replace(netloc=f"127.0.0.1:{proxy.server_address[1]}").geturl()
        proxy.shutdown()


class _Proxy(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, server: tuple[str, int], chance: random.Random) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.server = server
        self.chance = chance


class _Connection(socketserver.BaseRequestHandler):
    """Bytes pass unchanged; the first ones of each answer wait."""

    def handle(self) -> None:
        proxy = self.server
        assert isinstance(proxy, _Proxy)
        is_asked = threading.Event()

        def wait() -> None:
            if is_asked.is_set():
                is_asked.clear()
                time.sleep(LATEST_S * proxy.chance.random() ** 2)

        with suppress(OSError), socket.create_connection(proxy.server) as server:
            back = threading.Thread(target=_pass_on, args=(server, self.request, wait), daemon=True)
            back.start()
            _pass_on(self.request, server, is_asked.set)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket, before: Callable[[], object]) -> None:
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            before()
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
