"""The ways in which trace JSON can be read: compiled or not, plain or packed. All of them must agree."""

from __future__ import annotations

import gzip
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest
from hypothesis import settings

import stepscope.native
from stepscope.formats import read
from stepscope.formats.chrome.scan import columns, driver, parallel, streamed
from stepscope.formats.source import Source
from stepscope.native.json import events as native
from stepscope.trace.trace import Trace
from tests.native.both import source_of

SOAKS = bool(os.environ.get("STEPSCOPE_SOAK"))
WAYS = ("mapped", "packed", "msgspec", "interpreted")
_NATIVE = "stepscope.native."


def examples(count: int) -> settings:
    """So many examples of a property, and many more in the soak."""
    return settings(max_examples=200 * count if SOAKS else count)


class Way:
    """Reads bytes as a trace file, in one of the ways."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder

    def __call__(self, data: bytes, name: str = "trace.json") -> Trace:
        """The trace that a file with these bytes holds."""
        return read(Source(str(self.put(data, name))))

    def put(self, data: bytes, name: str = "trace.json") -> Path:
        """The file itself."""
        path = self.folder / name
        path.write_bytes(gzip.compress(data, 1) if self.name == "packed" else data)
        return path


@contextmanager
def taken(name: str, folder: Path) -> Iterator[Way]:
    """Read in this way for a while."""
    with pytest.MonkeyPatch.context() as patch:
        if name in ("mapped", "packed") and not native.COMPILED:
            pytest.skip("the hot loops are not compiled here")
        if name == "msgspec":
            patch.setattr(native, "COMPILED", False)
        if name == "interpreted":
            module = interpreted_scanner()
            for user in (driver, columns, parallel, streamed):
                patch.setattr(user, "native", module)
            patch.setattr(parallel, "scan_slow", lambda _: None)
        yield Way(name, folder)


def with_each(folder: Path, action: Callable[[Way], None]) -> None:
    """Do something in every way that there is here."""
    for name in WAYS:
        if native.COMPILED or name in ("msgspec", "interpreted"):
            with taken(name, folder) as way:
                action(way)


class _FromSource:
    """Finds the hot loops as Python, whatever was built beside them."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if not name.startswith(_NATIVE):
            return None
        file = str(source_of(name))
        return spec_from_file_location(name, file, loader=SourceFileLoader(name, file))


@cache
def interpreted_scanner() -> ModuleType:
    """The scanner and all that it imports, run as where nothing is compiled and Cython is not installed."""
    before = dict(vars(stepscope.native))
    others = {name: module for name, module in sys.modules.items() if not name.startswith(_NATIVE)}
    finders = [_FromSource(), *sys.meta_path]
    with (
        mock.patch.dict(sys.modules, others | {"cython": None}, clear=True),
        mock.patch("sys.meta_path", finders),
    ):
        module = importlib.import_module(f"{_NATIVE}json.events")
    vars(stepscope.native).update(before)
    assert not module.COMPILED
    return module
