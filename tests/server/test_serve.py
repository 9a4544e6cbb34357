"""The server behind a real socket: the command line, many clients at once, and bounded memory."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar
from pathlib import Path
from random import Random
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest

from stepscope.errors import StepscopeError
from stepscope.server.app import Settings, make_app
from stepscope.server.http.guard import Guard
from stepscope.server.http.sign_in import SignIn
from stepscope.server.runs.opened import Limits
from stepscope.server.runs.watch import Place
from stepscope.server.serve import Serving, listen
from tests.cli import inside
from tests.patience import PATIENCE_S, tries
from tests.server.conftest import ROOT, SAMPLE
from tests.tensorboard.proxy import proxied

SOAK = os.environ.get("STEPSCOPE_SOAK")
# The large trace of the benchmarks, where someone has made it.
LARGE = sorted((ROOT / ".bench" / "inputs").glob("*.json*")) if SOAK else []
CLIENTS = 50


@pytest.fixture
def serving(logs: Path) -> Iterator[Serving]:
    made = listen(make_app([Place(str(logs))]), "127.0.0.1", 0)
    made.in_background()
    yield made
    made.close()


def got(address: str, path: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urlopen(Request(address + path, headers=headers), timeout=PATIENCE_S) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()


def test_over_a_socket(serving: Serving) -> None:
    assert got(serving.address, "api/state")[0] == 200
    assert got(serving.address, "api/state", Host="evil.example")[0] == 403
    assert got(serving.address, "web/..%2f..%2fetc/passwd")[0] == 404


def test_paths_that_no_library_would_send(serving: Serving) -> None:
    """Dots are left as they are by this one."""
    for path in (
        "/web/../../errors.py",
        "//etc/passwd",
        "/web/./index.html",
        "*",
        "/%zz",
        "/\\..\\x",
    ):
        connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=PATIENCE_S)
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", "localhost")
        connection.endheaders()
        status = connection.getresponse().status
        connection.close()
        assert status in (400, 403, 404), path


def test_garbage_on_the_socket(serving: Serving) -> None:
    generator = Random(5)
    for start in (
        b"",
        b"GET / HTTP/1.1\r\n",
        b"POST /api/capture HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", serving.port), timeout=PATIENCE_S) as made:
            made.sendall(start + generator.randbytes(2000) + b"\r\n\r\n")
            try:
                answer = made.recv(200)
            except ConnectionResetError:  # it hung up before it had read all
                answer = b""
            assert not answer or answer.split()[1].startswith(b"4")
    assert got(serving.address, "api/state")[0] == 200


def test_clients_that_leave_early_do_no_harm(serving: Serving) -> None:
    run = next(iter(serving.app.runs.look_now().runs))
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", serving.port)) as made:
            made.sendall(
                f"GET /api/runs/{run}/table/events?as=csv HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            )
    assert any(got(serving.address, "api/state")[0] == 200 for _ in tries())


def test_a_taken_port_is_told(serving: Serving) -> None:
    with pytest.raises(StepscopeError, match="Cannot listen"):
        listen(serving.app, "127.0.0.1", serving.port)


def test_behind_a_prefix(logs: Path) -> None:
    made = listen(make_app([Place(str(logs))]), "127.0.0.1", 0, "/some/where/")
    made.in_background()
    assert made.address.endswith("/some/where/")
    assert got(made.address, "api/state")[0] == 200
    made.close()


@pytest.mark.parametrize("own", ["", "/some/where"], ids=["the proxy removes it", "--path-prefix"])
def test_signing_in_behind_a_prefix(logs: Path, own: str) -> None:
    """As jupyter-server-proxy passes on: the cookie is for the folder that the browser sees, and for no other."""
    app = make_app(
        [Place(str(logs))], Settings(guard=Guard(named=("hub.example",), sign_in=SignIn("let-me-in")))
    )
    made = listen(app, "127.0.0.1", 0, own)
    made.in_background()
    cookies = CookieJar()
    browser = build_opener(HTTPCookieProcessor(cookies))
    with proxied(made.address.rstrip("/"), "/user/me/proxy/6007") as address:
        assert browser.open(f"{address}/", timeout=PATIENCE_S).status == 200
        assert not list(cookies)
        with pytest.raises(HTTPError, match="403"):
            browser.open(f"{address}/api/state", timeout=PATIENCE_S)
        assert browser.open(f"{address}/?token=let-me-in", timeout=PATIENCE_S).status == 200
        assert [cookie.path for cookie in cookies] == ["/user/me/proxy/6007"]
        assert browser.open(f"{address}/api/state", timeout=PATIENCE_S).status == 200
        named = Request(f"{address}/", headers={"Host": "hub.example"})
        assert browser.open(named, timeout=PATIENCE_S).status == 200
    made.close()


class Memory:
    """The largest memory of this process while something goes on."""

    def __init__(self) -> None:
        self.highest = self.first = self._now()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def grown(self) -> int:
        return self.highest - self.first

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self.highest = max(self.highest, self._now())

    @staticmethod
    def _now() -> int:
        found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
        return int(found[1]) * 1024 if found else 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_fifty_clients_and_bounded_memory(tmp_path: Path) -> None:
    """All of them ask for everything at once, each in another order. The soak does it with 1.7 million events."""
    source = LARGE[0] if LARGE else SAMPLE
    (tmp_path / source.name).symlink_to(source)
    made = listen(make_app([Place(str(tmp_path))], Settings(limits=Limits(bytes=1 << 30))), "127.0.0.1", 0)
    made.in_background()
    run = next(iter(made.app.runs.look_now().runs))
    routes = [
        "report", "table/ops?sort=name", "table/kernels?sort=calls", "table/events?sort=dur_ns&desc=1&limit=100", "table/events?filter=gemm", "flame",
        "flame?by=stack&measure=device", "memory?points=500", "timeline/layout", "doctor", "table/events?filter=name:aten&sort=name",
    ]  # fmt: skip

    def client(number: int) -> list[int]:
        statuses = []
        for route in Random(number).sample(routes, len(routes)):
            for _ in tries():
                status, _body = got(made.address, f"api/runs/{run}/{route}")
                if status not in (202, 429):
                    break
            statuses.append(status)
        return statuses

    with Memory() as memory, ThreadPoolExecutor(CLIENTS) as pool:
        found = list(pool.map(client, range(CLIENTS)))
    made.close()
    assert {status for statuses in found for status in statuses} <= {200, 404}
    of_threads = (os.cpu_count() or 1) << 24  # Polars has one for each core, and each keeps memory of its own
    assert memory.grown < (3 << 30 if LARGE else 700 << 20) + of_threads, f"{memory.grown >> 20} MiB"


class TestCommand:
    """As users start it."""

    def start(self, folder: Path, *words: str, **env: str) -> tuple[subprocess.Popen[str], str]:
        paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        process = subprocess.Popen(
            [sys.executable, "-m", "stepscope", "serve", *words, "--no-open", "--port", "0", "--color", "never"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": paths, **env},
        )  # fmt: skip
        assert process.stdout is not None
        return process, process.stdout.readline()

    def test_loopback(self, logs: Path) -> None:
        process, line = self.start(logs, str(logs))
        try:
            found = re.search(r" at (http://127\.0\.0\.1:\d+/)\?token=(\S{32,})$", line.strip())
            assert found is not None
            address, token = found.groups()
            assert got(address, "")[0] == 200
            assert got(address, "api/state")[0] == 403
            assert got(address, f"?token={token}")[0] == 200
            state = json.loads(got(address, "api/state", Authorization=f"Bearer {token}")[1])
            assert state["places"] == [str(logs)]
        finally:
            process.terminate()
            _, said = process.communicate(timeout=PATIENCE_S)
        assert token not in said

    def test_a_token_of_ones_own(self, logs: Path) -> None:
        process, line = self.start(logs, str(logs), STEPSCOPE_TOKEN="correct-horse")
        try:
            address = line.split(" at ")[1].strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address), "it is not printed"
            assert got(address, "api/state")[0] == 403
            assert got(address, "api/state", Authorization="token correct-horse")[0] == 200
        finally:
            process.terminate()
            _, said = process.communicate(timeout=PATIENCE_S)
        assert "correct-horse" not in said
        assert "STEPSCOPE_TOKEN" in said

    def test_without_a_token(self, logs: Path) -> None:
        process, line = self.start(logs, str(logs), "--no-token")
        try:
            address = line.split(" at ")[1].strip()
            assert got(address, "api/state")[0] == 200
            assert got(address, "api/state", Host="evil.example")[0] == 403
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_S)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--no-token", "--host", "0.0.0.0"], "--no-token is for this machine alone"),
            (["--capture-server", "nonsense"], "This is not a profiler server: nonsense"),
            (["--allow-host", "a b"], "This is not a host name: a b"),
        ],
    )
    def test_options_that_make_no_sense(self, logs: Path, words: list[str], said: str) -> None:
        ended = inside.stepscope("serve", *words, "--no-open", "--port", "0", cwd=logs)
        assert (ended.stdout, ended.returncode) == ("", 1)
        assert said in " ".join(ended.stderr.split())

    def test_elsewhere_needs_the_link(self, logs: Path) -> None:
        process, line = self.start(logs, "--host", "0.0.0.0")
        try:
            link = line.split(" at ")[1].strip()
            port = re.search(r":(\d+)/\?token=", link)
            assert port is not None
            address, token = f"http://127.0.0.1:{port[1]}/", link.split("token=")[1]
            assert len(token) >= 32
            assert got(address, "api/state")[0] == 403
            assert got(address, f"?token={token}")[0] == 200
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_S)

    def test_a_wrong_folder(self, tmp_path: Path) -> None:
        process, line = self.start(tmp_path, "nowhere")
        assert line == ""
        _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1
        assert "No such file or folder: nowhere" in said
