"""`@pytest.mark.stepscope(step_time="120 ms", peak_memory="24 GB")`: a test whose steps are recorded and must keep a budget.

This is imported by every run of pytest where stepscope is installed: it imports nothing else until a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

MARKER = "stepscope"
WIDTH = 160
CANNOT_JUDGE = 3
_UNKNOWN = pytest.StashKey[int]()
_LINE = (
    "stepscope(step_time=, step_time_p90=, peak_memory=, parts=, findings=, baseline=, strict=, warmup=1, steps=20): record the steps "
    "of the test, which ends each with stepscope.step(), and fail if they exceed this budget"
)
_OURS = ("strict", "warmup", "steps")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _LINE)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A budget that is not checked must not look met."""
    if pytest_pyfunc_call is None and item.get_closest_marker(MARKER) is not None:
        pytest.fail("The marker stepscope needs pluggy 1.2 or newer: pip install -U pluggy", pytrace=False)


def _around(hook: Callable[..., Any], marked: Callable[..., Any] = pytest.hookimpl) -> Any:
    """The hook, if this pluggy knows hooks around others: an older one must not end every run of pytest here."""
    try:
        return marked(wrapper=True)(hook)
    except TypeError:
        return None


def _recorded_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Record the call of a marked test, and judge what was recorded if the test itself passed."""
    mark = pyfuncitem.get_closest_marker(MARKER)
    if mark is None:
        return (yield)
    if mark.args:
        pytest.fail("The marker stepscope takes names only, such as step_time='120 ms'.", pytrace=False)
    limits = _told(lambda: _budget(mark.kwargs, pyfuncitem))
    folder = _folder(pyfuncitem)
    with _recording(folder, mark.kwargs):
        result = yield
    if not any(folder.iterdir()):
        _note_unknown(pyfuncitem)
        pytest.fail(
            "UNKNOWN: the test has recorded no step. It must call stepscope.step() after each.", pytrace=False
        )
    found = _told(lambda: _judged(folder, limits, bool(mark.kwargs.get("strict", False))))
    if not found.passed:
        from stepscope.gate.text import as_text

        if found.is_unknown:
            _note_unknown(pyfuncitem)
        pytest.fail("\n" + as_text(found, WIDTH), pytrace=False)
    return result


def _note_unknown(item: pytest.Item) -> None:
    item.config.stash[_UNKNOWN] = item.config.stash.get(_UNKNOWN, 0) + 1


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """As `stepscope check` does: where nothing failed but budgets that could not be judged, the exit code is 3."""
    unknown = session.config.stash.get(_UNKNOWN, 0)
    if unknown and exitstatus == pytest.ExitCode.TESTS_FAILED and session.testsfailed == unknown:
        session.exitstatus = CANNOT_JUDGE


pytest_pyfunc_call = _around(_recorded_call)


def _told(ask: Callable[[], Any]) -> Any:
    """The answer; what is wrong with a budget or a profile fails the test in words."""
    from stepscope.errors import StepscopeError

    try:
        return ask()
    except StepscopeError as error:
        words = f"{error.what} {error.fix or ''}"
    return pytest.fail(words, pytrace=False)


def _budget(given: Mapping[str, Any], item: pytest.Function) -> Any:
    from stepscope.gate.budget import budget, relative_to

    found = budget(
        {key: value for key, value in given.items() if key not in _OURS}, f"the marker of {item.name}"
    )
    return relative_to(item.path.parent, found)


def _folder(item: pytest.Function) -> Path:
    factory: pytest.TempPathFactory = item.config._tmp_path_factory  # type: ignore[attr-defined]
    return factory.mktemp("stepscope")


def _recording(folder: Path, given: Mapping[str, Any]) -> Any:
    import stepscope

    plan = stepscope.schedule(skip=0, warmup=int(given.get("warmup", 1)), active=int(given.get("steps", 20)))
    return stepscope.profile(folder, schedule=plan)


def _judged(folder: Path, limits: Any, strict: bool) -> Any:
    from stepscope.gate.check import check
    from stepscope.profiles.load import load

    return check(load(str(folder)), limits, strict=strict)
