"""The hot loops in each of their builds, so that one test session covers them all."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

import stepscope.native

_PREFIX = "stepscope.native."


def source_of(name: str) -> Path:
    """The Python file of a module, or of a package, below stepscope.native."""
    found = Path(stepscope.native.__file__).parent.joinpath(*name.removeprefix(_PREFIX).split("."))
    return found / "__init__.py" if found.is_dir() else found.with_suffix(".py")


class _FromSource:
    """Finds the hot loops as Python, whatever was built beside them; they import each other."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if not name.startswith(_PREFIX):
            return None
        return spec_from_file_location(name, source_of(name))


@cache
def interpreted(name: str) -> ModuleType:
    """The module, and those it imports, run from source as where Cython is not installed, beside the compiled one."""
    others = {name: module for name, module in sys.modules.items() if not name.startswith(_PREFIX)}
    with (
        mock.patch.dict(sys.modules, others | {"cython": None}, clear=True),
        mock.patch.dict(vars(stepscope.native)),
        mock.patch("sys.meta_path", [_FromSource(), *sys.meta_path]),
    ):
        module = import_module(_PREFIX + name)
    assert not module.COMPILED
    return module


def builds(name: str) -> list[Any]:
    """Parameters for a fixture: the compiled module, skipped where there is none, and the interpreted one."""
    module = import_module(_PREFIX + name)
    missing = pytest.mark.skipif(not module.COMPILED, reason="the hot loops are not compiled here")
    return [
        pytest.param(module, id="compiled", marks=missing),
        pytest.param(interpreted(name), id="interpreted"),
    ]
