"""The part of `stepscope capture` that talks to profiler servers of TensorFlow and JAX."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stepscope.capture.profiler_servers import Server, ServerFailed, fetch, keep, let_write
from stepscope.capture.runs import RunName, new_run
from stepscope.cli.console import Talk


def from_servers(
    talk: Talk, addresses: Sequence[str], folder: Path, seconds: float, remote: str | None, *, stacks: bool
) -> list[Path]:
    """All servers at once, into one run. One that fails does not keep the others from it; if all do, the first error is told."""
    run = new_run()
    servers = [Server(address.removeprefix("grpc://"), seconds, stacks) for address in addresses]
    talk.note(f"Recording {seconds:g} s from {', '.join(server.address for server in servers)}")
    failed: list[ServerFailed] = []

    def one(server: Server) -> list[Path]:
        try:
            return _from_server(talk, server, folder, run, remote)
        except ServerFailed as error:
            failed.append(error)
            return []

    with ThreadPoolExecutor(len(servers)) as pool:
        found = [path for files in pool.map(one, servers) for path in files]
    if len(failed) == len(servers):
        raise failed[0]
    for error in failed:
        talk.warn(error.what)
    return found


def _from_server(talk: Talk, server: Server, folder: Path, run: RunName, remote: str | None) -> list[Path]:
    if remote is not None:
        _say_where(talk, server, let_write(server, remote, run.folder))
        return []
    started_ns = time.time_ns()
    space = fetch(server)
    if space:
        return keep(server, space, folder.absolute(), run, started_ns)
    # An older server, which can only write: perhaps it sees the same disk.
    written = let_write(server, str(folder.absolute()), run.folder)
    if Path(written).is_file():
        return [Path(written)]
    _say_where(talk, server, written)
    return []


def _say_where(talk: Talk, server: Server, path: str) -> None:
    talk.note(f"{server.address} wrote {path} on its own machine.")
