"""Settings for all tests: repeatable property tests, and a cache that is not the user's."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.patience import PATIENCE_S
from tests.short import short_folder

# No deadlines: the machines that run this are slow and shared. The soak looks elsewhere every time.
settings.register_profile(
    "test",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("STEPSCOPE_EXAMPLES", 10)),
)
settings.register_profile("soak", settings.get_profile("test"), derandomize=False, max_examples=5_000)
settings.load_profile("soak" if os.environ.get("STEPSCOPE_SOAK") else "test")


def pytest_collection_finish() -> None:
    """Ten thousand tests and all that they import stay to the end: no collection of garbage needs to look at them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Loaded traces are cached in a folder that goes away with the test session; what one worker has read, others open."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPSCOPE_CACHE", str(shared / "stepscope-cache"))
        patch.setenv("STEPSCOPE_CALIBRATION", str(base / "no-calibration.json"))
        yield


@pytest.fixture(autouse=True, scope="session")
def _rules_raise() -> Iterator[None]:
    """A rule that fails would otherwise be a finding less."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPSCOPE_RAISE_RULES", "1")
        yield


@pytest.fixture(autouse=True, scope="session")
def _own_sockets() -> Iterator[None]:
    """Jobs that listen are not found by tests that run beside these."""
    with short_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPSCOPE_SOCKETS", str(folder))
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests in a process: Playwright starts only once in each."""
    from tests.browser.chromium import ARGUMENTS, chromium

    playwright = pytest.importorskip("playwright.sync_api")
    if chromium() is None:
        pytest.skip("there is no Chromium here")
    with playwright.sync_playwright() as started:
        timeout = 1000 * PATIENCE_S
        made = started.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS), timeout=timeout)
        yield made
        made.close()
