"""Recording from the page: a real job that listens, and what is said when there is none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.conftest import playwright

JOB = """
import time, stepscope
print(stepscope.listen(), flush=True)
end = time.monotonic() + 600
while time.monotonic() < end:
    with stepscope.annotate("work"):
        sum(range(20_000))
    time.sleep(0.002)
    stepscope.step()
"""


@pytest.fixture
def job() -> Iterator[int]:
    """A plain loop that listens; its number."""
    process = subprocess.Popen([sys.executable, "-c", JOB], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline(), "it listens"
        yield process.pid
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_record_from_a_job(show: Callable[..., Any], job: int) -> None:
    page = show("runs")
    page.get_by_role("button", name="Capture").click()
    page.get_by_role("button", name=str(job)).wait_for()
    assert page.locator("#capture-target").input_value() == str(job)
    page.locator("#capture-steps").fill("4")
    page.get_by_role("button", name="Record", exact=True).click()
    page.wait_for_url("**/#/overview?run=*")
    playwright.expect(page.locator("dialog")).to_have_count(0)
    playwright.expect(page.locator(".verdict")).to_contain_text("A step takes")


def test_nobody_listens(show: Callable[..., Any], watched: Any) -> None:
    watched.expected += ["Failed to load resource"]
    page = show("runs")
    page.get_by_role("button", name="Capture").click()
    page.get_by_text("No job on this machine listens").wait_for()
    page.locator("#capture-target").fill("999999")
    page.get_by_role("button", name="Record", exact=True).click()
    page.locator("dialog [role=alert]").wait_for()
    page.locator("#capture-target").fill("no target")
    page.get_by_role("button", name="Record", exact=True).click()
    page.get_by_text("The target must be the number of a process").wait_for()
    page.keyboard.press("Escape")
    playwright.expect(page.locator("dialog")).to_have_count(0)
