"""Recording from the page: of a job that listens, and of a profiler server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stepscope.errors import StepscopeError
from stepscope.server.api.capture import server_addresses
from stepscope.server.app import Settings, make_app
from stepscope.server.http.guard import TOKEN_HEADER
from stepscope.server.runs.watch import Place
from tests.patience import tries
from tests.server.conftest import ROOT, SAMPLE, Asking

JOB = """
import time, stepscope
print(stepscope.listen(), flush=True)
end = time.monotonic() + 600
while time.monotonic() < end:
    sum(range(5_000))
    time.sleep(0.002)
    stepscope.step()
"""
XSPACE = ROOT / "tests" / "fixtures" / "diagnosis" / "jax_input.slow.xplane.pb.gz"


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    (tmp_path / "logs").mkdir()
    made = make_app([Place(str(tmp_path / "logs"))])
    yield Asking(made)
    made.close()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[int]:
    """A process that listens, by its number."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen([sys.executable, "-c", JOB], stdout=subprocess.PIPE, env=env, cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    yield process.pid
    process.kill()
    process.communicate()


def ended(asking: Asking, capture_id: str) -> dict[str, Any]:
    """What became of the recording."""
    told: dict[str, Any] = {}
    for _ in tries():
        told = asking.get(f"api/capture/{capture_id}").get_json()
        if told["state"] in ("done", "failed"):
            break
        assert told["progress"]["stage"]
    return told


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="jobs listen on Unix sockets")
def test_a_job_that_listens(asking: Asking, job: int) -> None:
    targets = asking.get("api/capture").get_json()["targets"]
    assert job in [target["pid"] for target in targets]
    begun = asking.post("api/capture", {"target": str(job), "steps": 3})
    assert begun.status_code == 200
    told = ended(asking, begun.get_json()["id"])
    assert told["state"] == "done", told
    report = asking.get(f"api/runs/{told['run']}/report").get_json()
    assert report["steps"]["count"] >= 1
    assert report["profile"]["framework"] is not None or report["profile"]["events"] > 0


def naming(folder: Path, *servers: str) -> Asking:
    """An app that may record from these."""
    return Asking(make_app([Place(str(folder))], Settings(capture_servers=server_addresses(servers))))


def test_a_profiler_server(tmp_path: Path) -> None:
    grpc = pytest.importorskip("grpc")
    import gzip

    from stepscope.capture.remote.profiler_servers import _field

    answer = _field(8, gzip.decompress(XSPACE.read_bytes()))
    handler = grpc.method_handlers_generic_handler(
        "tensorflow.ProfilerService", {"Profile": grpc.unary_unary_rpc_method_handler(lambda *_: answer)}
    )
    server = grpc.server(ThreadPoolExecutor(1), options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    asking = naming(tmp_path, f"127.0.0.1:{port}")
    assert asking.get("api/capture").get_json()["servers"] == [f"127.0.0.1:{port}"]
    try:
        begun = asking.post("api/capture", {"target": f"127.0.0.1:{port}", "duration_ms": 100}).get_json()
        told = ended(asking, begun["id"])
    finally:
        server.stop(None)
    assert told["state"] == "done", told
    assert asking.get(f"api/runs/{told['run']}/report").get_json()["profile"]["format"] == "xplane"


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens there
        target = f"127.0.0.1:{taken.getsockname()[1]}"
        asking = naming(tmp_path, target)
        begun = asking.post("api/capture", {"target": target, "duration_ms": 10}).get_json()
        told = ended(asking, begun["id"])
    assert told["state"] == "failed"
    assert told["error"]["what"]
    assert told["error"]["fix"]


@pytest.mark.parametrize(
    "body",
    [{}, {"target": ""}, {"target": None}, {"target": True}, {"target": "nowhere"}, {"target": "a b:1"}, {"target": "x:99999"},
     {"target": "/tmp/x.sock"}, {"target": "../../x:1"}, {"target": "999999999"}, {"target": "localhost:1", "duration_ms": 10**9},
     {"target": "localhost:1", "duration_ms": "x"}, {"target": "localhost:1", "steps": 0}, {"target": "http://evil.example:80"}, {"target": [1]}],
)  # fmt: skip
def test_wrong_orders(asking: Asking, body: dict[str, Any]) -> None:
    answer = asking.post("api/capture", body)
    assert answer.status_code == 400
    assert answer.get_json()["error"]["what"]
    assert not asking.app.captures._all


@pytest.mark.parametrize(
    "target",
    ["127.0.0.1:6009", "localhost:6008", "other.example:6009", "grpc://other.example:6009", "169.254.169.254:80", "[::1]:6009",
     "localhost.:6009", "127.1:6009"],
)  # fmt: skip
def test_a_server_that_was_not_named(tmp_path: Path, target: str) -> None:
    """Nothing is connected to, whatever answers there."""
    asking = naming(tmp_path, "localhost:6009,Host.example:6009")
    answer = asking.post("api/capture", {"target": target})
    assert answer.status_code == 403
    assert "--capture-server" in answer.get_json()["error"]["fix"]
    assert not asking.app.captures._all


def test_servers_are_named_as_people_write_them() -> None:
    given = ["grpc://Host.example:06009", "localhost:1,[fd00::1]:2", "localhost:1"]
    assert server_addresses(given) == ("host.example:6009", "localhost:1", "[fd00::1]:2")


@pytest.mark.parametrize(
    "given", ["nonsense", "host:0", "host:99999", "/tmp/x.sock:1", "a b:1", "http://host:1"]
)
def test_what_is_no_server(given: str) -> None:
    with pytest.raises(StepscopeError, match="not a profiler server"):
        server_addresses([given])


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="jobs listen on Unix sockets")
def test_only_sockets_that_processes_of_this_user_made(
    asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link, a file and a process that does not listen: none of them is a target."""
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("STEPSCOPE_SOCKETS", str(folder))
    pid = os.getpid()
    elsewhere = tmp_path / "other.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(elsewhere))
        listening.listen()
        (folder / f"{pid}.sock").symlink_to(elsewhere)
        for target in (str(pid), pid, str(os.getppid()), "0", "00", "²", str(elsewhere), f"../{pid}"):
            answer = asking.post("api/capture", {"target": target})
            assert answer.status_code == 400, target
        assert asking.get("api/capture").get_json()["targets"] == []
        (folder / f"{pid}.sock").unlink()
        (folder / f"{pid}.sock").write_text("no socket")
        assert asking.post("api/capture", {"target": str(pid)}).status_code == 400
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert not asking.app.captures._all


def test_not_without_the_token(asking: Asking) -> None:
    answer = asking.client.post("/api/capture", json={"target": "1"})
    assert answer.status_code == 403
    assert not asking.app.captures._all


def test_off_where_it_is_turned_off(tmp_path: Path) -> None:
    asking = Asking(make_app([Place(str(tmp_path))], Settings(capture=False)))
    assert asking.get("api/state").get_json()["capture"] is False
    assert asking.post("api/capture", {"target": "localhost:1"}).status_code == 403
    assert asking.get("api/capture").status_code == 403
    asking.app.close()


def test_nowhere_to_write_to() -> None:
    asking = Asking(make_app([Place(str(SAMPLE))]))
    assert asking.get("api/state").get_json()["capture"] is False
    assert asking.post("api/capture", {"target": "localhost:1"}).status_code == 409
    asking.app.close()


@pytest.mark.parametrize("path", ["nix", "a/b", "", "%00"])
def test_unknown_recordings(asking: Asking, path: str) -> None:
    assert asking.get(f"api/capture/{path}").status_code == 404
    assert asking.client.get("/api/capture/x", headers={TOKEN_HEADER: "x"}).status_code == 404
