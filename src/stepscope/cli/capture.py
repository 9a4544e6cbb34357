"""`stepscope capture`: record from a job that is already running."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.options import ColorOption, QuietOption

NOTHING = 1


def capture(
    targets: Annotated[list[str] | None, typer.Argument(metavar="PID|ADDRESS …", help="Listening processes, or profiler servers as host:port; without any, list the listening processes.", show_default=False)] = None,
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=1, help="Number of steps to record.")] = 5,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", min=0.001, help="Seconds to record from profiler servers, which have no steps.")] = 2.0,
    folder: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the profile.")] = Path("stepscope-out"),
    remote: Annotated[str | None, typer.Option("--remote", metavar="DIR", help="Let profiler servers write to this folder on their own machine instead of sending the profile.")] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="S", min=0.1, help="Maximum seconds to wait for the steps.")] = 300.0,
    no_stacks: Annotated[bool, typer.Option("--no-stacks", help="Do not record Python functions.")] = False,
    quiet: QuietOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Record from running jobs: jobs that called stepscope.listen() or were started with STEPSCOPE_LISTEN=1, and
    jobs with a TensorFlow or JAX profiler server. Several workers are recorded together.
    """
    with session(quiet, False, color) as talk:
        from stepscope.cli.capture_listening import addresses, from_processes, show_listening

        if not targets:
            if not show_listening(talk):
                raise typer.Exit(NOTHING)
            return
        servers = [target for target in targets if _is_server(target)]
        paths = addresses(target for target in targets if target not in servers)
        files: list[Path] = []
        if servers:
            from stepscope.cli.capture_servers import from_servers

            files += from_servers(talk, servers, folder, seconds, remote, stacks=not no_stacks)
        if paths:
            request = {"folder": str(folder.absolute()), "steps": steps, "options": {"stacks": not no_stacks}}
            files += from_processes(talk, paths, request, timeout)
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
