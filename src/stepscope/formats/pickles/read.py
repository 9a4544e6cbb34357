"""Pickles from untrusted files, opened by a worker process that can neither run code nor take the machine with it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from stepscope.errors import UnreadableFile
from stepscope.formats.source import Source
from stepscope.safe import safe

_WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class Limits:
    """What the worker may take: a base, and more for every byte of the file."""

    bytes: int = 256 << 20
    times: int = 8  # of the bytes of the file; a snapshot as Python objects takes 3 to 4
    most: int = 32 << 30
    seconds: int = 5
    bytes_per_second: int = 4 << 20


DEFAULT = Limits()


def read_pickle(source: Source | str | bytes, limits: Limits = DEFAULT) -> Any:
    """The value as builtins: dict (keys are text), list (tuples and sets too), str, int, float, bool, None."""
    name, pieces = _open(source)
    with tempfile.TemporaryFile() as out:
        run_worker(name, pieces, out, limits)
        out.seek(0)
        try:
            return json.loads(out.read())
        except (ValueError, RecursionError) as error:
            raise UnreadableFile(f"{name} cannot be read: {error}.") from None


def run_worker(
    name: str, pieces: Iterable[bytes], out: IO[bytes], limits: Limits = DEFAULT, packer: Path | None = None
) -> None:
    """Let the worker write the pickle into `out`, as JSON or by a packer; what it refuses is an UnreadableFile."""
    command = [sys.executable, "-I", "-S", str(_WORKER), json.dumps(asdict(limits))]
    command += [str(packer)] if packer is not None else []
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE) as process:
            _feed(process, pieces)
            status = process.wait()
            assert process.stderr is not None
            said = process.stderr.read()
    except OSError as error:
        raise UnreadableFile(
            f"{name} is a pickle, and no process can be started to open it: {error}."
        ) from None
    if status:
        raise _refusal(name, status, said)


def _open(source: Source | str | bytes) -> tuple[str, Iterable[bytes]]:
    if isinstance(source, bytes):
        return "The pickle", [source]
    found = Source(source) if isinstance(source, str) else source
    return found.path, found.pieces()


def _feed(process: subprocess.Popen[bytes], pieces: Iterable[bytes]) -> None:
    assert process.stdin is not None
    try:
        for piece in pieces:
            process.stdin.write(piece)
        process.stdin.close()
    except OSError:  # it has ended, and its status says why
        pass
    except BaseException:
        process.kill()
        raise


def _refusal(name: str, status: int, said: bytes) -> UnreadableFile:
    try:
        why, detail = json.loads(said)
    except (ValueError, TypeError):
        why, detail = _by_signal(-status), ""
    what, fix = _WORDS.get(why, _WORDS["broken"])
    return UnreadableFile(f"{name} {what.format(detail=safe(detail).rstrip('.'))}.", fix=fix)


def _by_signal(number: int) -> str:
    if number == getattr(signal, "SIGXCPU", None):
        return "time"
    return "memory" if number == getattr(signal, "SIGKILL", None) else "broken"


_NO_CODE = "Memory snapshots and flight-recorder dumps hold data alone. Do not load this file with pickle or torch.load either."
_AGAIN = "Copy it again, or record it again."
_WORDS = {
    "code": ("is a pickle that asks for {detail}; pickles that name code are never opened", _NO_CODE),
    "memory": (
        "is a pickle that takes far more memory than its size explains; it was not opened further",
        _NO_CODE,
    ),
    "time": ("is a pickle that takes far longer than its size explains; it was not opened further", _NO_CODE),
    "nested": ("is a pickle of values nested without end; it was not opened further", _NO_CODE),
    "cut": ("is cut short: the pickle ends after {detail} bytes, before its last value", _AGAIN),
    "damaged": ("is a damaged pickle ({detail})", _AGAIN),
    "broken": ("is a pickle that made its reader fail", _AGAIN),
}
