"""The hot loops in each of their builds, so that one test session covers them all."""

from __future__ import annotations

import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

import stepscope.native


def interpreted(name: str) -> ModuleType:
    """The module run from its source as where Cython is not installed, beside the compiled one."""
    path = Path(stepscope.native.__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"stepscope_interpreted.{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {"cython": None}):
        spec.loader.exec_module(module)
    assert not module.COMPILED
    return module


def builds(name: str) -> list[Any]:
    """Parameters for a fixture: the compiled module, skipped where there is none, and the interpreted one."""
    module = import_module(f"stepscope.native.{name}")
    missing = pytest.mark.skipif(not module.COMPILED, reason="the hot loops are not compiled here")
    return [
        pytest.param(module, id="compiled", marks=missing),
        pytest.param(interpreted(name), id="interpreted"),
    ]
