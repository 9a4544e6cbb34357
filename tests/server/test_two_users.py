"""Two users of one machine: what one serves, records from and caches is closed to the other.

Everything is asked twice, by the owner and by the other user: what the owner gets is what the other one must not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S, tries
from tests.server.conftest import ROOT, SAMPLE

OWNER, OTHER = 65534, 65533
ONE_USER = (
    "ONE USER ONLY: what a second user of this machine gets is not tested. Run these tests as root, with a Python that "
    "every user may run."
)
JOB = """
import time, stepscope
print(stepscope.listen(), flush=True)
end = time.monotonic() + 600
while time.monotonic() < end:
    time.sleep(0.01)
    stepscope.step()
"""
# What a user gets: statuses of the server, whether the socket and the files of the cache can be opened, and what is listed.
LOOK = """
import json, os, socket, sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from stepscope.capture.remote import ask

wish = json.loads(sys.argv[1])
headers = {"Authorization": f"Bearer {wish['token']}"} if wish["token"] else {}

def status(path, data=None):
    try:
        with urlopen(Request(wish["url"] + path, data, headers | {"Content-Type": "application/json"}), timeout=300) as answer:
            return answer.status
    except HTTPError as error:
        return error.code

def tried(action):
    try:
        return action()
    except OSError as error:
        return type(error).__name__

def said(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(300)
        made.connect(path)
        made.sendall(b'{"verb": "status"}\\n')
        return json.loads(made.makefile().readline())["pid"]

def command(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode() if Path(f"/proc/{pid}/cmdline").exists() else ""

print(json.dumps({
    "page": status(""),
    "statuses": [status(path) for path in wish["paths"]],
    "order": status("api/capture", json.dumps({"target": str(wish["job"])}).encode()),
    "socket": tried(lambda: said(wish["socket"])),
    "listening": [path.name for path in ask.listening()],
    "cache": tried(lambda: len(os.listdir(wish["cache"]))),
    "files": [tried(lambda: len(Path(path).read_bytes()) >= 0) for path in wish["files"]],
    "command": command(wish["server"]),
}))
"""


@dataclass(frozen=True)
class Scene:
    """A folder that both users may enter, with a home for each; nothing but stepscope itself closes anything."""

    base: Path
    python: str

    def home(self, user: int) -> Path:
        return self.base / str(user)

    def start(self, user: int, *words: str, temporary: str = "tmp") -> subprocess.Popen[str]:
        env = {"HOME": str(self.home(user)), "TMPDIR": str(self.base / temporary)}
        return _as(user, self.python, *words, cwd=self.home(user), env=env)

    def look(self, user: int, wish: dict[str, Any]) -> dict[str, Any]:
        """What this user gets."""
        said, trouble = self.start(user, "-c", LOOK, json.dumps(wish)).communicate(timeout=PATIENCE_S)
        assert said, trouble
        found: dict[str, Any] = json.loads(said)
        return found


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    if os.getuid() != 0:
        warnings.warn(ONE_USER, stacklevel=1)
        pytest.skip(ONE_USER)
    python = python_for_everyone()
    made = Scene(Path(tempfile.mkdtemp(prefix="stepscope-users-")), python)
    try:
        made.base.chmod(0o755)
        (made.base / "tmp").mkdir()
        (made.base / "tmp").chmod(0o1777)
        for user in (OWNER, OTHER):
            made.home(user).mkdir()
            made.home(user).chmod(0o755)
            os.chown(made.home(user), user, user)
        yield made
    finally:
        shutil.rmtree(made.base)


def python_for_everyone() -> str:
    """A Python of our version that both users may run: ours may lie in the home of root."""
    system = shutil.which(
        f"python{sys.version_info[0]}.{sys.version_info[1]}", path="/usr/local/bin:/usr/bin"
    )
    for found in filter(None, (sys.executable, system)):
        try:
            works = [
                _as(user, found, "-c", "import stepscope.server.app").wait(PATIENCE_S) == 0
                for user in (OWNER, OTHER)
            ]
        except OSError:
            continue
        if all(works):
            return found
    warnings.warn(ONE_USER, stacklevel=1)
    pytest.skip(ONE_USER)


def _as(
    user: int, *command: str, cwd: str | Path = "/", env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """A process of this user, to whom nothing is closed by the mode of new files."""
    packages = [path for path in sys.path if path.endswith("-packages")]
    paths = os.pathsep.join([str(ROOT / "src"), *packages])
    own = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": paths, **(env or {})}
    return subprocess.Popen(
        command, user=user, group=user, extra_groups=[], umask=0, cwd=cwd, env=own,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@contextmanager
def running(process: subprocess.Popen[str]) -> Iterator[tuple[int, str]]:
    """The number of the process, and the first line that it says."""
    assert process.stdout is not None
    try:
        yield process.pid, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def wish(scene: Scene) -> Iterator[dict[str, Any]]:
    """The owner serves a folder and runs a job that listens; and has opened a run, which is in the cache now."""
    logs = scene.home(OWNER) / "logs"
    logs.mkdir()
    shutil.copy(SAMPLE, logs)
    for path in (logs, *logs.iterdir()):
        os.chown(path, OWNER, OWNER)
    cache = scene.home(OWNER) / ".cache" / "stepscope"
    with ExitStack() as stack:
        job, address = stack.enter_context(running(scene.start(OWNER, "-c", JOB)))
        serve = ("-m", "stepscope", "serve", "logs", "--no-open", "--port", "0", "--color", "never")
        server, line = stack.enter_context(running(scene.start(OWNER, *serve)))
        link = re.search(r"(http://\S+/)\?token=(\S+)", line)
        assert link is not None, line
        for _ in tries():
            files = [str(path) for path in cache.glob("[!.]*/*")]  # what is being written has another name
            if files:
                break
        yield {
            "url": link[1], "token": link[2], "paths": ["api/runs", "api/state", "api/capture", "web/shell/main.js"], "job": job,
            "server": server, "socket": address, "cache": str(cache), "files": files,
        }  # fmt: skip


def test_the_owner_gets_everything(scene: Scene, wish: dict[str, Any]) -> None:
    found = scene.look(OWNER, wish)
    assert found["page"] == 200
    assert set(found["statuses"]) == {200}
    assert found["order"] == 200
    assert found["socket"] == wish["job"]
    assert found["listening"] == [f"{wish['job']}.sock"]
    assert found["cache"] > 0
    assert found["files"]
    assert all(each is True for each in found["files"])


def test_the_other_user_gets_nothing(scene: Scene, wish: dict[str, Any]) -> None:
    found = scene.look(OTHER, wish | {"token": ""})
    assert found["page"] == 200, "the page that asks for the token"
    assert set(found["statuses"]) == {403}
    assert found["order"] == 403
    assert found["socket"] == "PermissionError"
    assert found["listening"] == []
    assert found["cache"] == "PermissionError"
    assert set(found["files"]) == {"PermissionError"}
    assert wish["token"] not in found["command"], "command lines are public"


def test_folders_of_the_other_user_are_not_trusted(scene: Scene, wish: dict[str, Any]) -> None:
    """The other one was first to make the folder of our sockets: nothing of ours goes there, and nothing there is ours."""
    trap = scene.base / "trap"
    folder = trap / f"stepscope-{OWNER}"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    os.chown(folder, OTHER, OTHER)
    script = "from stepscope.capture.remote import ask, sockets; print([p for p in ask.listening() if 'trap' in str(p)], 'trap' in str(sockets.own_folder()))"
    fallback = Path("/tmp", folder.name)
    is_new = not fallback.exists()
    said, trouble = scene.start(OWNER, "-c", script, temporary="trap").communicate(timeout=PATIENCE_S)
    if is_new and fallback.exists():
        fallback.rmdir()
    assert said.strip() == "[] False", trouble
