"""Recordings that the page asks for: of a job of this user that listens, or of a profiler server that was named at the start.

Nothing else can be named: a page that could have the server connect to any address would reach what only this machine reaches.
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.capture.files.run_folder import new_run
from stepscope.capture.remote import ask
from stepscope.capture.remote.profiler_servers import Server, record
from stepscope.errors import StepscopeError
from stepscope.server.http.request import BadRequest, Refused
from stepscope.server.runs.watch import Runs

AT_ONCE = 4
REMEMBERED = 50
MOST_STEPS = 1_000
LONGEST_MS = 120_000
WAIT_FOR_STEPS_S = 300.0
_PROCESS = re.compile(r"[0-9]{1,10}")
_SERVER = re.compile(
    r"(?:grpc://)?(?P<host>[A-Za-z0-9._-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]):(?P<port>[0-9]{1,5})"
)


@dataclass
class Capture:
    """One recording; `state` is waiting, recording, done or failed."""

    id: str
    target: str
    state: str = "waiting"
    stage: str = "waiting for the job"
    started: float = 0.0
    expected_s: float = 0.0
    run: str | None = None
    error: StepscopeError | None = None

    def told(self) -> dict[str, Any]:
        """As the page gets it; progress is in milliseconds where the length is known."""
        spent = round(1000 * min(time.monotonic() - self.started, self.expected_s or 1e9))
        running = self.state in ("waiting", "recording")
        total = round(1000 * self.expected_s)
        return {
            "id": self.id,
            "target": self.target,
            "state": self.state,
            "progress": {"stage": self.stage, "done": spent, "total": total} if running else None,
            "run": self.run,
            "error": None
            if self.error is None
            else {"what": self.error.what, "where": self.target, "fix": self.error.fix or ""},
        }


class Captures:
    """All recordings of this server, the last ones remembered. Profiles go to a folder that is shown."""

    def __init__(self, runs: Runs, servers: Sequence[str] = (), flag: str = "") -> None:
        self.servers = tuple(servers)
        self._flag = flag
        self._runs = runs
        self._all: OrderedDict[str, Capture] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def folder(self) -> Path | None:
        """The first local folder among the places; without one there is nowhere to write to."""
        places = [Path(place.path).expanduser() for place in self._runs.places if "://" not in place.path]
        return next((path.absolute() for path in places if path.is_dir()), None)

    def targets(self) -> list[dict[str, Any]]:
        """The jobs of this user that listen."""
        return [
            {
                "pid": about.get("pid"),
                "step": about.get("step"),
                "rank": about.get("rank"),
                "command": " ".join(str(word) for word in about.get("command") or [])[:500],
            }
            for about in ask.statuses()
        ]

    def begin(self, body: dict[str, Any]) -> Capture:
        """Check the order and start it."""
        target = body.get("target")
        if not isinstance(target, str | int) or isinstance(target, bool) or not str(target):
            raise BadRequest("The body must name a target: a process, or host:port.", where="target")
        folder = self.folder
        if folder is None:
            raise Refused("There is no local folder to record into.", status=409, fix="Serve a folder.")
        steps = _number(body, "steps", 1, MOST_STEPS, 5)
        seconds = _number(body, "duration_ms", 1, LONGEST_MS, 2_000) / 1000
        capture = Capture(secrets.token_hex(8), str(target)[:300], started=time.monotonic())
        work = self._work(capture, folder, steps, seconds)
        with self._lock:
            active = sum(each.state in ("waiting", "recording") for each in self._all.values())
            if active >= AT_ONCE:
                raise Refused("Other recordings are running.", status=429, fix="Wait until they have ended.")
            self._all[capture.id] = capture
            while len(self._all) > REMEMBERED:
                self._all.popitem(last=False)
        threading.Thread(
            target=self._run, args=(capture, work), name="stepscope-capture", daemon=True
        ).start()
        return capture

    def get(self, capture_id: str) -> Capture:
        """A recording by its id."""
        with self._lock:
            found = self._all.get(capture_id)
        if found is None:
            raise Refused("There is no such recording.", status=404)
        return found

    def _work(self, capture: Capture, folder: Path, steps: int, seconds: float) -> Any:
        """What to do, checked before anything is begun."""
        if _PROCESS.fullmatch(capture.target):
            path = ask.address_of(capture.target)
            return lambda: _from_job(capture, path, folder, steps)
        address = server_address(capture.target)
        if address is None:
            raise BadRequest("The target must be the number of a process, or host:port.", where="target")
        if address not in self.servers:
            raise Refused(
                f"{address} was not named at the start, so this page cannot record from it.",
                status=403,
                fix=f"Start with `{self._flag} {address}`, or record with `stepscope capture {address}`.",
                where="target",
            )
        capture.expected_s = seconds
        server = Server(address, seconds)
        return lambda: _from_server(capture, server, folder)

    def _run(self, capture: Capture, work: Any) -> None:
        try:
            files = work()
            capture.stage = "opening"
            capture.run = self._run_of(files)
            capture.state = "done"
        except StepscopeError as error:
            capture.error = error
            capture.state = "failed"
        except Exception as error:
            logging.getLogger(__name__).exception("stepscope could not record from %s", capture.target)
            capture.error = StepscopeError(f"The recording failed: {type(error).__name__}: {error}")
            capture.state = "failed"

    def _run_of(self, files: list[Path]) -> str | None:
        """The run that the new files are in."""
        new = {str(path.resolve()) for path in files}
        for run in self._runs.look_now().runs.values():
            if any(str(Path(entry.path).resolve()) in new for entry in run.run.entries):
                return run.id
        return None


def server_addresses(given: Iterable[str]) -> tuple[str, ...]:
    """The profiler servers in what a user gave, several with commas between them."""
    words = [word.strip() for text in given for word in text.split(",") if word.strip()]
    found = [(word, server_address(word)) for word in words]
    for word, address in found:
        if address is None:
            raise StepscopeError(f"This is not a profiler server: {word}", fix="Give it as HOST:PORT.")
    return tuple(dict.fromkeys(address for _, address in found if address is not None))


def server_address(text: str) -> str | None:
    """host:port as it is compared and called; None for anything else."""
    found = _SERVER.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 65536:
        return None
    return f"{found['host'].lower()}:{int(found['port'])}"


def _from_job(capture: Capture, path: Path, folder: Path, steps: int) -> list[Path]:
    news: dict[str, Any] = {}
    capture.stage = "waiting for the next step"
    for news in ask.order(path, {"folder": str(folder), "steps": steps, "options": {}}, WAIT_FOR_STEPS_S):
        if news.get("state") == "recording":
            capture.state = "recording"
            capture.stage = f"recording steps {news.get('first')} to {news.get('last')}"
    if news.get("state") == "refused":
        raise StepscopeError(f"The job does not record: {news.get('why')}.")
    if news.get("state") == "gone":
        raise StepscopeError("The job ended, or stopped listening, before the steps were recorded.")
    files = [Path(str(name)) for name in news.get("files") or []]
    if not files:
        late = "The job did not end its steps in time."
        raise StepscopeError(
            "The job recorded nothing." if news.get("state") == "done" else late,
            fix="See `stepscope doctor`, or put stepscope.step() at the end of the loop's body.",
        )
    return files


def _from_server(capture: Capture, server: Server, folder: Path) -> list[Path]:
    capture.state, capture.stage = "recording", "recording"
    files, elsewhere = record(server, folder, new_run())
    if elsewhere:
        raise StepscopeError(f"{server.address} wrote {elsewhere} on its own machine.", fix="Copy it here.")
    return files


def _number(body: dict[str, Any], name: str, low: int, high: int, default: int) -> int:
    value = body.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise BadRequest(f"{name} must be from {low:,} to {high:,}.", where=name)
    return int(value)
