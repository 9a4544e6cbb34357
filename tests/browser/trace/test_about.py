"""`stepscope serve --about HANDLE`: the link that it prints opens the viewer at the events behind the handle."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import stepscope
from stepscope.assistant.behind import find_behind
from tests.browser.profiles import SAMPLE
from tests.browser.test_events import listed
from tests.cli.inside import stepscope as command
from tests.patience import PATIENCE_S


@contextmanager
def served_about(handle: str) -> Iterator[str]:
    """The link that the command prints."""
    words = [sys.executable, "-u", "-m", "stepscope", "serve", str(SAMPLE), "--no-open", "--about", handle]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        link = next((found[0] for line in process.stdout if (found := re.search(r"http://\S+", line))), "")
        yield link
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def report() -> Any:
    """Of the sample, as the command makes it."""
    return stepscope.load(SAMPLE).report()


@pytest.mark.parametrize("handle", ["finding:1", "step:4"])
def test_the_link_opens_the_events_behind_the_handle(browser: Any, report: Any, handle: str) -> None:
    expected = find_behind(stepscope.load(SAMPLE), report, handle).rows["event"].to_list()
    with served_about(handle) as link:
        page = browser.new_page()
        try:
            page.goto(link)
            page.wait_for_url(lambda url: "token" not in url)  # it signs in, then shows the page
            found = listed(page)
        finally:
            page.close()
    assert found.total == len(expected)
    assert found.ids == expected[: len(found.ids)]
    assert found.chosen == expected[0]


def test_an_unknown_handle_is_one_message() -> None:
    ended = command("serve", SAMPLE, "--no-open", "--about", "finding:99")
    assert ended.returncode == 1
    assert "no finding 99" in ended.stderr
    assert "Traceback" not in ended.stderr
