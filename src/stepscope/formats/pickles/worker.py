"""Opens a pickle from standard input and writes JSON, or what a packer makes of it. A program of its own: run, never imported.

It runs as `python -I -S worker.py LIMITS [PACKER]`, with the standard library alone. No class and no function is ever looked up,
so a pickle can make nothing but numbers, text and containers of them. Memory and processor time are limited by the system, because
the C unpickler cannot be interrupted; the limits rise with the bytes that arrive, so a small file never gets much.
A packer is a file with a function `pack(value, write)`; it runs here, where the limits hold.
"""

from __future__ import annotations

import gc
import io
import json
import os
import pickle
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # Windows has no such limits; the caller's clock remains
    resource = None  # type: ignore[assignment]

_STEP = 1 << 24
_LONGEST_REASON = 200


class Refused(Exception):
    """The pickle asks for something that is not data."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise Refused(f"{module}.{name}"[:_LONGEST_REASON])

    def persistent_load(self, pid: object) -> Any:
        raise Refused("an object outside the file")


class _Feed(io.RawIOBase):
    """Standard input; the limits rise as bytes arrive."""

    def __init__(self, limits: dict[str, int]) -> None:
        self.file = io.FileIO(0, closefd=False)
        self.limits = limits
        self.count = 0
        self.granted = -1
        self.base = _address_space()
        self._grant()

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        read = self.file.readinto(into) or 0
        self.count += read
        if self.count // _STEP != self.granted:
            self._grant()
        return read

    def _grant(self) -> None:
        """A step ahead of what was read, so that no limit is met between two grants."""
        self.granted = self.count // _STEP
        if resource is None:
            return
        limits, ahead = self.limits, (self.granted + 1) * _STEP
        seconds = limits["seconds"] + self.count // limits["bytes_per_second"]
        _lower("RLIMIT_AS", min(self.base + limits["bytes"] + limits["times"] * ahead, limits["most"]))
        _lower("RLIMIT_CPU", seconds)


def _lower(name: str, value: int) -> None:
    kind = getattr(resource, name, None)
    if kind is None:
        return
    hard = resource.getrlimit(kind)[1]
    try:
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
    except (ValueError, OSError):  # macOS refuses some limits
        return


def _address_space() -> int:
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, AttributeError):
        return 1 << 30


def _pack_json(value: Any, write: Any) -> None:
    """At once, so that values which hold each other many times over meet the limit of memory soon."""
    write(json.dumps(value, default=_plain).encode("ascii"))


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return value.decode("latin-1")
    if isinstance(value, (set, frozenset)):
        return list(value)
    return str(value)


def _load_packer(path: str) -> Any:
    spec = spec_from_file_location("packer", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pack


def _run(limits: dict[str, int], pack: Any) -> tuple[str, str]:
    """Why it failed, as a word for the caller and a text; two empty ones where it did not."""
    feed = _Feed(limits)
    try:
        value = _Unpickler(io.BufferedReader(feed, 1 << 20), encoding="latin-1").load()
        pack(value, sys.stdout.buffer.write)
        sys.stdout.buffer.flush()
    except Refused as error:
        return "code", str(error)
    except MemoryError:
        return "memory", ""
    except RecursionError:
        return "nested", ""
    except EOFError:
        return "cut", f"{feed.count:,}"
    except pickle.UnpicklingError as error:
        is_cut = "truncated" in str(error)
        return ("cut", f"{feed.count:,}") if is_cut else ("damaged", str(error))
    except Exception as error:  # a pickle can be wrong in any way, and the caller says so in words
        return "damaged", f"{type(error).__name__}: {error}"
    return "", ""


def main() -> int:
    """The exit status: 0, or 3 with a line of JSON on standard error."""
    gc.disable()  # millions of containers without cycles: collecting takes longer than reading
    limits = json.loads(sys.argv[1])
    pack = _load_packer(sys.argv[2]) if len(sys.argv) > 2 else _pack_json
    why, detail = _run(limits, pack)
    if not why:
        return 0
    sys.stderr.write(json.dumps([why, detail[:_LONGEST_REASON]]))
    return 3


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # taking millions of objects apart again is time for nothing
