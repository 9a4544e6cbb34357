"""The part of `stepscope capture` that talks to profiler servers of TensorFlow and JAX."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stepscope.capture.command.talk import Talk
from stepscope.capture.files.run_folder import RunName, new_run
from stepscope.capture.remote.profiler_servers import Server, ServerFailed, let_write, record


def from_servers(
    talk: Talk, addresses: Sequence[str], folder: Path, seconds: float, remote: str | None, *, stacks: bool
) -> list[Path]:
    """Record from all servers at once, into one run. If some fail the others still record; if all fail, raise the first error."""
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
    found: list[Path]
    if remote is not None:
        found, elsewhere = [], let_write(server, remote, run.folder)
    else:
        found, elsewhere = record(server, folder, run)
    if elsewhere:
        talk.note(f"{server.address} wrote {elsewhere} on its own machine.")
    return found
