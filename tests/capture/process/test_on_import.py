"""Acts wait for the import itself, whoever asks for the module before."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from stepscope.capture.process.on_import import after_import


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "some_framework.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "some_framework", raising=False)
    return "some_framework"


def test_after_the_import_and_once(module: str) -> None:
    seen: list[int] = []
    after_import(module, lambda found: seen.append(found.value))
    assert seen == []
    importlib.import_module(module)
    assert seen == [3]
    after_import(module, lambda found: seen.append(found.value + 1))
    assert seen == [3, 4]


def test_also_where_somebody_only_asked_whether_it_is_there(module: str) -> None:
    """As Transformers and TensorFlow do before they import a framework."""
    seen: list[int] = []
    after_import(module, lambda found: seen.append(found.value))
    for _ in range(2):
        assert importlib.util.find_spec(module) is not None
    assert seen == []
    importlib.import_module(module)
    assert seen == [3]


def test_an_act_that_fails_does_no_harm(module: str) -> None:
    after_import(module, lambda found: found.missing)
    assert importlib.import_module(module).value == 3
