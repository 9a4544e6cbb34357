"""What the plugin does where it cannot work: nothing to others, and never a budget that looks kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.errors import StepscopeError
from stepscope.testing import plugin


def without_wrappers(*, tryfirst: bool = False) -> Callable[..., Any]:
    """As pluggy 1.0 has it."""
    raise AssertionError(tryfirst)


def item(marked: bool) -> Any:
    return SimpleNamespace(get_closest_marker=lambda name: object() if marked else None)


def test_hooks_around_others_are_known_here() -> None:
    assert plugin.pytest_pyfunc_call is not None


def test_an_older_pluggy_leaves_other_tests_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "pytest_pyfunc_call", plugin._around(plugin._recorded_call, without_wrappers))
    assert plugin.pytest_pyfunc_call is None
    plugin.pytest_runtest_setup(item(marked=False))
    with pytest.raises(pytest.fail.Exception, match="needs pluggy"):
        plugin.pytest_runtest_setup(item(marked=True))


def test_nothing_is_refused_where_it_works() -> None:
    plugin.pytest_runtest_setup(item(marked=True))


@pytest.mark.parametrize("given", [{}, {"strict": True}, {"findings": []}, {"parts": {}}])
def test_a_marker_without_limits_is_refused(given: dict[str, Any]) -> None:
    marked: Any = SimpleNamespace(name="test_step", path=Path("test_step.py"))
    with pytest.raises(StepscopeError, match="the marker of test_step sets no limits"):
        plugin._budget(given, marked)
