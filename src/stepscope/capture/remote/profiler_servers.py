"""The profiler servers of TensorFlow and JAX: `tf.profiler.experimental.server.start` and `jax.profiler.start_server`.

Both speak gRPC, and their messages are few and flat: they are written and read here by hand, since a protobuf package of our
own would clash with that of a framework.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.capture.files.protobuf import head, read_varint, varint
from stepscope.capture.files.run_folder import RunName
from stepscope.capture.files.writer import Recorded, Staging
from stepscope.errors import StepscopeError

_METHOD = "/tensorflow.ProfilerService/Profile"
_PATIENCE_SECONDS = 60
# Fields of ProfileRequest, ProfileOptions and ProfileResponse.
_DURATION, _MOST_EVENTS, _TOOLS, _OPTIONS, _ROOT, _SESSION, _HOST, _EMIT = 1, 2, 3, 4, 5, 6, 7, 9
_HOST_LEVEL, _DEVICE_LEVEL, _PYTHON_LEVEL, _VERSION, _HLO, _OPTIONS_DURATION = 2, 3, 4, 5, 7, 9
_IS_EMPTY, _SPACE = 7, 8


class ServerFailed(StepscopeError):
    """A profiler server that cannot be reached, or that gave nothing."""


@dataclass(frozen=True)
class Server:
    """`host:port`, and how long and how closely to look."""

    address: str
    seconds: float
    stacks: bool = True

    @property
    def name(self) -> str:
        """Fit for a file's name."""
        return re.sub(r"[^A-Za-z0-9.-]+", "_", self.address)


def record(server: Server, folder: Path, run: RunName) -> tuple[list[Path], str]:
    """The files in our folder; or none, and where the server wrote one on its own machine."""
    started_ns = time.time_ns()
    space = fetch(server)
    if space:
        return keep(server, space, folder.absolute(), run, started_ns), ""
    # An older server, which can only write: perhaps it sees the same disk.
    written = let_write(server, str(folder.absolute()), run.folder)
    return ([Path(written)], "") if Path(written).is_file() else ([], written)


def fetch(server: Server) -> bytes:
    """Record, and get the XSpace sent. Empty bytes from a server that only writes to its own disk."""
    fields = dict(_fields(_call(server, _number(_EMIT, 1))))
    if fields.get(_IS_EMPTY):
        raise ServerFailed(
            f"{server.address} recorded nothing in {server.seconds:g} s.",
            fix="Ask while the job computes, or for longer: --seconds 10.",
        )
    found = fields.get(_SPACE, b"")
    return found if isinstance(found, bytes) else b""


def let_write(server: Server, root: str, session: str) -> str:
    """Record, and let the server write to a folder of its own machine: the file, as that machine names it."""
    folder = f"{root.rstrip('/')}/plugins/profile"
    where = _text(_ROOT, folder) + _text(_SESSION, session) + _text(_HOST, server.name)
    _call(server, _text(_TOOLS, "xplane.pb") + where)
    return f"{folder}/{session}/{server.name}.xplane.pb"


def keep(server: Server, space: bytes, target: Path, run: RunName, started_ns: int) -> list[Path]:
    """The XSpace as a file, where TensorBoard looks for it, with a sidecar."""
    staging = Staging(target, server.name)
    try:
        path = staging.folder("server") / "profile.xplane.pb"
        path.write_bytes(space)
        note = {
            "schema": "stepscope.capture/1",
            "backend": "server",
            "run": run.unique,
            "window": 0,
            "worker": server.name,
            "host": server.address.rpartition(":")[0],
            "start_unix_ns": started_ns,
            "end_unix_ns": time.time_ns(),
            "server": server.address,
            "options": {"seconds": server.seconds, "stacks": server.stacks},
            "problems": [],
        }
        place = target / "plugins" / "profile" / run.folder
        made = staging.publish(
            [Recorded(path, ".xplane.pb")], place, lambda n: server.name + f"_{n}" * (n > 0), note
        )
        return made[:1]
    finally:
        staging.remove()


def _call(server: Server, more: bytes) -> bytes:
    try:
        import grpc
    except ImportError:
        raise ServerFailed(
            "Talking to a profiler server needs grpcio.", fix="Install it: pip install grpcio"
        ) from None
    milliseconds = max(1, round(server.seconds * 1000))
    request = _number(_DURATION, milliseconds) + _number(_MOST_EVENTS, 1_000_000)
    request += _field(_OPTIONS, _options(server, milliseconds)) + more
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(server.address, options=unlimited) as channel:
        try:
            answer: bytes = channel.unary_unary(_METHOD)(request, timeout=server.seconds + _PATIENCE_SECONDS)
            return answer
        except grpc.RpcError as error:
            raise _failure(server, error) from None


def _options(server: Server, milliseconds: int) -> bytes:
    levels = {_VERSION: 1, _HOST_LEVEL: 2, _DEVICE_LEVEL: 1, _PYTHON_LEVEL: int(server.stacks), _HLO: 1}
    return b"".join(_number(*each) for each in levels.items()) + _number(_OPTIONS_DURATION, milliseconds)


def _failure(server: Server, error: Any) -> ServerFailed:
    code, details = error.code().name, str(error.details() or "").strip()
    if code == "UNAVAILABLE":
        return ServerFailed(
            f"No profiler server answers at {server.address}.",
            fix="In the job: tf.profiler.experimental.server.start(6009) or jax.profiler.start_server(6009).",
        )
    if code == "UNIMPLEMENTED":
        return ServerFailed(
            f"{server.address} is not a profiler server of TensorFlow or JAX.", fix="Check the port."
        )
    fix = (
        "Another profile is being recorded there: try again when it is done."
        if code == "ALREADY_EXISTS"
        else None
    )
    return ServerFailed(f"{server.address} did not record ({code}): {details}", fix=fix)


# ---- protobuf's wire format


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _field(field: int, value: bytes) -> bytes:
    return head(field, len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _field(field, value.encode())


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and byte strings of a message, until its end or the first thing that makes no sense."""
    at = 0
    while at < len(message):
        try:
            tag, at = read_varint(message, at)
            value, at = read_varint(message, at)
        except ValueError:
            return
        if tag & 7 == 0:
            yield tag >> 3, value
        elif tag & 7 == 2 and at + value <= len(message):
            yield tag >> 3, message[at : at + value]
            at += value
        else:
            return
