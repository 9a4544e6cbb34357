"""On a phone, 390 pixels wide, every page can be read without scrolling sideways; wide tables scroll by themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.conftest import settle
from tests.browser.test_pages import PAGES

WIDTH = 390
# What sticks out, unless something around it scrolls or cuts it.
OUTSIDE = """() => {
  const main = document.querySelector(".main");
  return [document.documentElement.scrollWidth, main.scrollWidth - main.clientWidth];
}"""


@pytest.fixture
def narrow(page: Any) -> Iterator[Any]:
    page.set_viewport_size({"width": WIDTH, "height": 844})
    yield page
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize("name", [*PAGES, "runs"])
def test_no_page_scrolls_sideways(narrow: Any, show: Callable[..., Any], name: str) -> None:
    show(name, None if name == "runs" else "kineto_gpu")
    settle(narrow)
    if os.environ.get("STEPSCOPE_SHOTS"):
        narrow.screenshot(path=f"{os.environ['STEPSCOPE_SHOTS']}/{name}-390.png")
    assert narrow.evaluate(OUTSIDE) == [WIDTH, 0], name
