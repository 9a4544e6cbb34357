"""Profiles from the gRPC profiler servers of TensorFlow and JAX."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.remote import profiler_servers
from stepscope.capture.remote.profiler_servers import Server, ServerFailed
from tests.capture.running import PATIENCE_SECONDS, environment, needs, sidecars, start, traces

LENGTHS = (0.4, 2, 10)


@contextmanager
def closed_port() -> Iterator[int]:
    """One at which nobody listens, and nobody else can."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


def started(framework: str) -> tuple[subprocess.Popen[str], int]:
    """A job whose server listens. Its port must be named: another program may take one that was free a moment ago."""
    for _ in range(5):
        with closed_port() as port:
            pass
        process = start("profiler_servers", framework, port, PATIENCE_SECONDS)
        assert process.stdout is not None
        if process.stdout.readline() == "ready\n":
            return process, port
        process.kill()
        _, told = process.communicate()
    raise AssertionError(told)


@contextmanager
def server(framework: str) -> Iterator[str]:
    process, port = started(framework)
    try:
        yield f"localhost:{port}"
    finally:
        process.kill()
        process.communicate()


class Page:
    """`stepscope serve` over a folder, asked as scripts ask."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token

    def ask(self, path: str, body: dict[str, object] | None = None) -> Any:
        """JSON; with a body it is sent."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)

    def until(self, path: str, is_done: Callable[[Any], bool]) -> Any:
        """The first answer that is wanted."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_done(found := self.ask(path)):
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found


@contextmanager
def page(folder: Path, server: str) -> Iterator[Page]:
    folder.mkdir()
    words = ["--no-open", "--port", "0", "--capture-server", server]
    command = [sys.executable, "-m", "stepscope", "serve", str(folder), *words]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = next(line for line in process.stdout if "http://" in line)
        found = re.search(r"(http://\S+/)\?token=(\S+)", said)
        assert found is not None
        yield Page(found[1], found[2])
    finally:
        process.kill()
        process.communicate()


def capture(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stepscope", "capture", *map(str, words)]
    return subprocess.run(
        command, env=environment(), cwd=folder, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )


def captured(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """For longer if need be: where the job did not get to compute meanwhile, there is nothing to record."""
    for seconds in LENGTHS:
        ended = capture(folder, *words, "--seconds", seconds)
        if ended.returncode == 0:
            break
    assert ended.returncode == 0, ended.stderr
    return ended


@pytest.mark.parametrize(
    "framework", [pytest.param(name, marks=needs(name, "grpc")) for name in ("jax", "tensorflow")]
)
def test_the_profile_is_sent_or_written(tmp_path: Path, framework: str) -> None:
    import stepscope

    with server(framework) as address:
        sent = captured(tmp_path, address, "-o", "out")
        assert "Next: stepscope report out" in sent.stderr
        (path,) = traces(tmp_path / "out")
        assert path.parent.parent == tmp_path / "out" / "plugins" / "profile"
        (note,) = sidecars(tmp_path / "out")
        assert (note["backend"], note["server"]) == ("server", address)
        assert len(stepscope.load(tmp_path / "out").events) > 10
        _recorded_by_the_page(tmp_path / "page", framework, address)
        written = captured(tmp_path, f"grpc://{address}", "--remote", tmp_path / "theirs")
        (path,) = traces(tmp_path / "theirs")
        assert f"wrote {path}" in written.stderr
        with closed_port() as other:
            captured(tmp_path, address, f"127.0.0.1:{other}", "-o", "some")


def _recorded_by_the_page(folder: Path, framework: str, address: str) -> None:
    """An order by POST, its progress, and the result as a run with a report and a trace."""
    with page(folder, address) as shown:
        for seconds in LENGTHS:
            order = shown.ask("api/capture", {"target": address, "duration_ms": round(1000 * seconds)})
            told = shown.until(f"api/capture/{order['id']}", lambda each: each["state"] in ("done", "failed"))
            if told["state"] == "done":
                break
        assert told["state"] == "done", told
        report = shown.until(f"api/runs/{told['run']}/report", lambda each: "profile" in each)
        assert report["profile"]["framework"] == framework
        assert report["profile"]["events"] > 10
        assert not [problem for problem in report["problems"] if problem["severity"] == "error"]
        layout = shown.until(f"api/runs/{told['run']}/timeline/layout", lambda each: "key" in each)
        assert any(group["tracks"] for group in layout["groups"])


@needs("grpc")
def test_nobody_answers(tmp_path: Path) -> None:
    with closed_port() as port:
        ended = capture(tmp_path, f"127.0.0.1:{port}", "--seconds", 0.1)
    assert ended.returncode == 1
    assert "No profiler server answers" in ended.stderr
    assert "jax.profiler.start_server" in ended.stderr


@needs("grpc")
def test_a_server_that_is_no_profiler(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    other = grpc.server(ThreadPoolExecutor(1))
    port = other.add_insecure_port("localhost:0")
    other.start()
    try:
        with pytest.raises(ServerFailed, match="is not a profiler server"):
            profiler_servers.fetch(Server(f"localhost:{port}", 0.1))
    finally:
        other.stop(None)


@needs("grpc")
def test_an_old_server_that_only_writes(tmp_path: Path) -> None:
    """It knows nothing of sending: it is asked again, to write where we can read."""
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    def profile(request: bytes, _context: object) -> bytes:
        fields = dict(profiler_servers._fields(request))
        if 5 in fields:
            root, session, host = (bytes(fields[key]).decode() for key in (5, 6, 7))
            folder = Path(root, session)
            folder.mkdir(parents=True)
            (folder / f"{host}.xplane.pb").write_bytes(b"\x0a\x00")
        return b""

    handler = grpc.unary_unary_rpc_method_handler(profile)
    old = grpc.server(ThreadPoolExecutor(2))
    old.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("tensorflow.ProfilerService", {"Profile": handler}),)
    )
    port = old.add_insecure_port("localhost:0")
    old.start()
    try:
        ended = capture(tmp_path, f"localhost:{port}", "--seconds", 0.1, "-o", "out")
        assert ended.returncode == 0, ended.stderr
        assert len(traces(tmp_path / "out")) == 1
    finally:
        old.stop(None)


def test_without_grpcio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ServerFailed, match=r"pip install grpcio"):
        profiler_servers.fetch(Server("localhost:1", 0.1))


def test_messages() -> None:
    message = (
        profiler_servers._number(1, 300) + profiler_servers._text(5, "a/b") + profiler_servers._number(9, 1)
    )
    assert list(profiler_servers._fields(message)) == [(1, 300), (5, b"a/b"), (9, 1)]
    assert list(profiler_servers._fields(message[:-3])) == [(1, 300)]
    assert list(profiler_servers._fields(b"\x0d\x01\x02\x03\x04")) == []
