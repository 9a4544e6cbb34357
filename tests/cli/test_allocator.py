"""The allocator of Polars is set before it is loaded, and for this process only."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stepscope.cli.allocator import import_polars

ASKED = (
    "import os, sys; from stepscope.cli.allocator import import_polars; assert 'polars' not in sys.modules; import_polars();"
    "print('polars' in sys.modules, os.environ.get('_RJEM_MALLOC_CONF'))"
)


def _said(**settings: str) -> list[str]:
    # Polars leaves its own setting in the environment of whoever imported it.
    environment = {key: text for key, text in os.environ.items() if key != "_RJEM_MALLOC_CONF"} | settings
    found = subprocess.run(
        [sys.executable, "-c", ASKED], env=environment, capture_output=True, text=True, check=True
    )
    return found.stdout.split()


def test_children_do_not_inherit_it() -> None:
    assert _said() == ["True", "None"]


def test_a_setting_of_the_user_stays() -> None:
    assert _said(_RJEM_MALLOC_CONF="dirty_decay_ms:7") == ["False", "dirty_decay_ms:7"]


def test_nothing_changes_once_polars_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("_RJEM_MALLOC_CONF", raising=False)
    import_polars()
    assert "_RJEM_MALLOC_CONF" not in os.environ
