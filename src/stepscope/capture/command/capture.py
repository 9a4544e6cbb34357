"""What `stepscope capture` does: records from listening processes and profiler servers, all at once."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stepscope.capture.command.listening import addresses, from_processes, show_listening
from stepscope.capture.command.next import report_of
from stepscope.capture.command.run import DEFAULT_FOLDER
from stepscope.capture.command.talk import Talk

NOTHING = 1
DEFAULT_STEPS, DEFAULT_SECONDS, DEFAULT_TIMEOUT = 5, 2.0, 300.0


@dataclass(frozen=True)
class Wish:
    """What to record from each target, and where to."""

    steps: int = DEFAULT_STEPS
    seconds: float = DEFAULT_SECONDS
    folder: Path = Path(DEFAULT_FOLDER)
    remote: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    stacks: bool = True
    only_stacks: bool = False


def capture_from(targets: Sequence[str], wish: Wish, talk: Talk) -> int:
    """The exit code. Without targets, the listening processes are listed."""
    if wish.only_stacks:
        from stepscope.capture.command.stacks import ALL, show_stacks

        return 0 if show_stacks(targets or [ALL], talk) else NOTHING
    if not targets:
        return 0 if show_listening(talk) else NOTHING
    servers = [target for target in targets if _is_server(target)]
    paths = addresses(target for target in targets if target not in servers)
    files: list[Path] = []
    if servers:
        from stepscope.capture.command.servers import from_servers

        files += from_servers(talk, servers, wish.folder, wish.seconds, wish.remote, stacks=wish.stacks)
    if paths:
        options = {"stacks": wish.stacks}
        request = {"folder": str(wish.folder.absolute()), "steps": wish.steps, "options": options}
        files += from_processes(talk, paths, request, wish.timeout)
    if files:
        talk.note(f"Recorded {len(files)} trace{'s' * (len(files) > 1)} into {wish.folder}.")
        talk.note(report_of(shlex.quote(str(wish.folder))))
    return 0 if files or wish.remote is not None else NOTHING


def _is_server(target: str) -> bool:
    """host:port, with or without grpc://; sockets are paths."""
    if target.startswith("grpc://"):
        return True
    host, found, port = target.rpartition(":")
    return bool(found) and port.isdigit() and bool(host) and os.sep not in target
