"""Slow clients over real sockets: none is waited for for ever, and however many there are, others get their answers."""

from __future__ import annotations

import http.client
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from stepscope.server.app import make_app
from stepscope.server.http import connections
from stepscope.server.http.connections import CONNECTIONS, PACE_BYTES, PER_CLIENT
from stepscope.server.runs.watch import Place
from stepscope.server.serve import THREADS, Serving, listen
from tests.patience import PATIENCE_S, tries

HEAD = b"GET /api/state HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
BODY = b"POST /api/capture HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
FULL = b"GET /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n"
CROWD = CONNECTIONS + 60


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Slow:
    """A server whose answers the test holds back, or sends without end."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.clock = clock
        self.go = threading.Event()
        self.ended = threading.Semaphore(0)
        self.looks = 0
        self.serving: Serving = listen(make_app([Place(str(folder))]), "127.0.0.1", 0, wrap=self._wrapped)
        maintain = self.serving.server.maintenance

        def counted(now: float) -> None:
            maintain(now)
            self.looks += 1

        self.serving.server.maintenance = counted  # type: ignore[method-assign]
        self.thread = self.serving.in_background()

    def _wrapped(self, app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
        def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            if environ["PATH_INFO"] == "/hold":
                self.go.wait(PATIENCE_S)
            elif environ["PATH_INFO"] == "/endless":
                start_response("200 OK", [("Content-Type", "text/plain")])
                return self._pieces()
            return app(environ, start_response)

        return answer

    def _pieces(self) -> Iterator[bytes]:
        try:
            while True:
                yield b"x" * (1 << 20)
        finally:
            self.ended.release()

    def connect(self, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.serving.port), PATIENCE_S, (source, 0))
        made.sendall(sent)
        return made

    def channels(self) -> list[connections.Channel]:
        return self.serving.server._open()

    def until(self, wanted: Callable[[], object]) -> None:
        assert any(wanted() for _ in tries()), "it never came to that"

    def look_after(self, seconds: float) -> None:
        """Let time pass, and the server look at its connections, twice at least."""
        self.clock.now += seconds
        target = self.looks + 3
        self.until(lambda: self.looks >= target)

    def status(self) -> int:
        """A client like any other."""
        asking = http.client.HTTPConnection("127.0.0.1", self.serving.port, timeout=PATIENCE_S)
        asking.request("GET", "/api/state")
        status = asking.getresponse().status
        asking.close()
        return status


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    clock = Clock()
    monkeypatch.setattr(connections, "_clock", clock)
    made = Slow(tmp_path, clock)
    yield made
    made.go.set()
    made.serving.close()


def is_open(connection: socket.socket) -> bool:
    """Whether the server has said nothing and not hung up."""
    return not select.select([connection], [], [], 0)[0]


def status_of(connection: socket.socket) -> int:
    """The status of one answer, which is read to its end."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


def last_words(connection: socket.socket) -> bytes:
    """What the server said before it hung up."""
    said = b""
    try:
        while piece := connection.recv(1 << 16):
            said += piece
    except ConnectionResetError:
        pass
    return said


@pytest.mark.parametrize("start", [b"", HEAD, BODY, FULL], ids=["silent", "head", "body", "idle"])
def test_a_crowd_shuts_nobody_out(slow: Slow, start: bytes) -> None:
    """Time stands still, so no deadline helps: it is the room that is made for newcomers."""
    with ExitStack() as held:
        crowd = [held.enter_context(slow.connect(start)) for _ in range(CROWD)]
        for number in range(10):
            for each in crowd:
                try:
                    each.send(b"x" if start in (HEAD, BODY) else b"")
                except OSError:  # that one has lost its place
                    continue
            if number % 3 == 0:
                assert slow.status() == 200
        assert len(slow.channels()) <= CONNECTIONS
    assert slow.status() == 200


def test_a_crowd_that_comes_again_and_again(slow: Slow) -> None:
    """Whoever loses a place takes another: those that have asked for nothing yet go first, not those that are answered."""
    over = threading.Event()

    def return_always() -> None:
        held: list[socket.socket] = []
        while not over.is_set():
            try:
                held.append(slow.connect(HEAD))
            except OSError:
                continue
            if len(held) > PER_CLIENT:
                held.pop(0).close()
        for each in held:
            each.close()

    threads = [threading.Thread(target=return_always) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        served = 0
        for _ in tries():
            try:
                served += slow.status() == 200
            except OSError:  # a hundred newcomers in the moment between our connection and our request
                continue
            if served == 20:
                break
        assert served == 20
    finally:
        over.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize(
    ("start", "open_s", "over_s"),
    [
        pytest.param(b"", 9, 2, id="silent"),
        pytest.param(b"G", 9, 2, id="first byte"),
        pytest.param(HEAD, 9, 2, id="head"),
        pytest.param(b"\r\n\r\n", 9, 2, id="empty lines"),
        pytest.param(BODY, 39, 2, id="body"),
        pytest.param(FULL + HEAD, 9, 2, id="head of the second"),
    ],
)
def test_a_request_must_come_in_time(slow: Slow, start: bytes, open_s: float, over_s: float) -> None:
    with slow.connect(start) as made, slow.connect(start) as dripping:
        for each in (made, dripping) if start.startswith(FULL) else ():
            assert status_of(each) == 200
        slow.until(
            lambda: len(slow.channels()) == 2 and all(c._begun or not start.strip() for c in slow.channels())
        )
        slow.look_after(open_s)
        assert is_open(made)
        if start.strip():
            dripping.sendall(b"x")  # more bytes are no more time
        slow.look_after(over_s)
        slow.until(lambda: not slow.channels())
        said = last_words(made)
        assert said == b"" or said.startswith(b"HTTP/1.1 408 ")
        assert last_words(dripping) == said
    assert slow.status() == 200


def test_a_connection_is_kept_for_the_next_request(slow: Slow) -> None:
    with slow.connect(FULL) as made:
        assert status_of(made) == 200
        slow.until(lambda: not slow.channels()[0].is_working)
        for _ in range(3):
            slow.look_after(55)
            made.sendall(FULL)
            assert status_of(made) == 200
            slow.until(lambda: not slow.channels()[0].is_working)
        slow.look_after(62)
        slow.until(lambda: not slow.channels())
        assert last_words(made) == b""


def test_who_takes_no_answer_gives_its_thread_back(slow: Slow) -> None:
    """As many as there are threads: the next one would wait for ever."""
    ask = b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with ExitStack() as held:
        for _ in range(THREADS):
            held.enter_context(slow.connect(ask))
        slow.until(lambda: len(slow.channels()) == THREADS and all(c.is_sending for c in slow.channels()))
        with pytest.raises(TimeoutError):
            http_get(slow, timeout=0.2)
        for _ in tries():  # the system goes on taking a little for them
            slow.look_after(31)
            if not slow.channels():
                break
        assert slow.status() == 200
        for _ in range(THREADS):
            assert slow.ended.acquire(timeout=PATIENCE_S)


def http_get(slow: Slow, timeout: float) -> None:
    with socket.create_connection(("127.0.0.1", slow.serving.port), timeout) as made:
        made.sendall(FULL)
        made.recv(1)


def test_who_takes_an_answer_gets_all_of_it(slow: Slow) -> None:
    with slow.connect(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n") as made:
        slow.until(lambda: slow.channels() and slow.channels()[0]._pace_since is not None)
        (channel,) = slow.channels()
        for _ in range(3):
            target = channel._taken + 4 * PACE_BYTES
            while channel._taken < target:
                assert made.recv(1 << 16)
            slow.look_after(31)
        assert slow.channels() == [channel]


def test_a_long_computation_is_waited_for(slow: Slow) -> None:
    with slow.connect(b"GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n") as made:
        slow.until(lambda: slow.channels() and slow.channels()[0].is_working)
        slow.look_after(500)
        assert is_open(made)
        slow.go.set()
        assert status_of(made) == 404
        slow.look_after(30)
        made.sendall(FULL)
        assert status_of(made) == 200


def test_no_client_has_more_than_its_share(slow: Slow) -> None:
    """Not even with requests that are being answered, which are never given up for a newcomer."""
    hold = b"GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n"
    try:
        slow.connect(source="127.0.0.2").close()
    except OSError:
        pytest.skip("this system has one loopback address only")
    slow.until(lambda: not slow.channels())
    with ExitStack() as held:
        busy: list[socket.socket] = []
        for _ in range(PER_CLIENT):
            busy.append(held.enter_context(slow.connect(hold, "127.0.0.2")))
            slow.until(lambda: sum(channel.is_working for channel in slow.channels()) == len(busy))
        refused = held.enter_context(slow.connect(hold, "127.0.0.2"))
        assert last_words(refused) == b""
        other = held.enter_context(slow.connect(source="127.0.0.3"))
        slow.until(lambda: len(slow.channels()) == PER_CLIENT + 1)
        assert is_open(other)
        slow.go.set()
        assert all(status_of(each) == 404 for each in busy)
        assert slow.status() == 200
