"""`stepscope capture`: record from a job that is already running."""

from __future__ import annotations

import os
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from stepscope.capture import ask
from stepscope.capture.orders import BEFORE, WARMUP
from stepscope.cli.console import Color, Talk, session
from stepscope.cli.options import ColorOption, QuietOption
from stepscope.errors import StepscopeError

NOTHING = 1
_MARGIN = BEFORE + WARMUP + 1


def capture(
    targets: Annotated[list[str] | None, typer.Argument(metavar="PID|ADDRESS …", help="Processes that listen, or profiler servers as host:port; nothing to list the processes.", show_default=False)] = None,
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=1, help="How many steps to record.")] = 5,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", min=0.001, help="For profiler servers, which know no steps: how long to record.")] = 2.0,
    folder: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where the profile goes.")] = Path("stepscope-out"),
    remote: Annotated[str | None, typer.Option("--remote", metavar="DIR", help="For profiler servers: let them write to this folder of theirs instead of sending the profile.")] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="S", min=0.1, help="How long to wait for the steps.")] = 300.0,
    no_stacks: Annotated[bool, typer.Option("--no-stacks", help="Do not record Python functions.")] = False,
    quiet: QuietOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Record from jobs that are running: those that called stepscope.listen() or were started with STEPSCOPE_LISTEN=1, and
    those with a profiler server of TensorFlow or JAX. Several workers are recorded together.
    """
    with session(quiet, False, color) as talk:
        if not targets:
            _list(talk)
            return
        servers = [target for target in targets if _is_server(target)]
        paths = [ask.address_of(target) for target in targets if target not in servers]
        files: list[Path] = []
        if servers:
            from stepscope.cli.capture_servers import from_servers

            files += from_servers(talk, servers, folder, seconds, remote, stacks=not no_stacks)
        if paths:
            request = {"folder": str(folder.absolute()), "steps": steps, "options": {"stacks": not no_stacks}}
            files += _from_processes(talk, paths, request, timeout)
        if files:
            talk.note(f"Recorded {len(files)} trace{'s' * (len(files) > 1)} into {folder}.")
            talk.note(f"Next: stepscope report {shlex.quote(str(folder))}")
        elif remote is None:
            raise typer.Exit(NOTHING)


def _is_server(target: str) -> bool:
    """host:port, with or without grpc://; sockets are paths."""
    if target.startswith("grpc://"):
        return True
    host, found, port = target.rpartition(":")
    return bool(found) and port.isdigit() and bool(host) and os.sep not in target


def _list(talk: Talk) -> None:
    found = 0
    for path in ask.listening():
        try:
            about = ask.status(path)
        except StepscopeError:
            continue
        found += 1
        rank = "" if about.get("rank") is None else f", rank {about['rank']}"
        command = shlex.join(map(str, about.get("command", [])))
        talk.out.print(f"{about.get('pid')}  step {about.get('step')}{rank}  {command}")
    if not found:
        talk.warn(
            "No process listens. Start the job with STEPSCOPE_LISTEN=1, or call stepscope.listen() in it."
        )
        raise typer.Exit(NOTHING)


def _from_processes(talk: Talk, paths: list[Path], request: dict[str, Any], timeout: float) -> list[Path]:
    """All at once; workers of one job begin with the same step."""
    if len(paths) > 1:
        request["first"] = max(int(ask.status(path).get("step") or 0) for path in paths) + _MARGIN
    with ThreadPoolExecutor(len(paths)) as pool:
        found = list(pool.map(lambda path: _from_process(talk, path, request, timeout), paths))
    return [path for files in found for path in files]


def _from_process(talk: Talk, path: Path, request: dict[str, Any], timeout: float) -> list[Path]:
    state: dict[str, Any] = {}
    for state in ask.order(path, request, timeout):
        if state.get("state") == "recording":
            talk.note(f"{path.stem}: recording steps {state.get('first')} to {state.get('last')}")
    if state.get("state") == "refused":
        talk.warn(f"{path.stem} does not record: {state.get('why')}.")
    elif state.get("state") == "recording":
        talk.warn(f"{path.stem} has not ended the steps within {timeout:g} s; it goes on recording.")
    elif state.get("state") != "done":
        talk.warn(
            f"{path.stem} has not ended a step within {timeout:g} s. If its loop is one that stepscope does not find, put "
            "stepscope.step() at the end of the loop's body."
        )
    for problem in state.get("problems", []):
        talk.warn(f"{path.stem}: {problem.get('title')}. {problem.get('detail')} {problem.get('fix')}")
    return [Path(name) for name in state.get("files", [])]
