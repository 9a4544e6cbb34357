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


def test_long_names_in_sentences_break(narrow: Any, show: Callable[..., Any]) -> None:
    """A sentence that advises torch.nn.functional.scaled_dot_product_attention."""
    show("overview", "kineto_gpu")
    settle(narrow)
    long = "torch.nn.functional." + "scaled_dot_product_" * 3
    narrow.evaluate("name => { document.querySelector('.verdict').textContent += name; }", long)
    assert narrow.evaluate(OUTSIDE) == [WIDTH, 0]


def test_a_pair_of_runs_with_long_titles_fits(narrow: Any, show: Callable[..., Any]) -> None:
    show("compare", "kineto_gpu")
    settle(narrow)
    widen = "() => document.querySelectorAll('.view select').forEach(each => each.add(new Option('folder/'.repeat(12), 'x'), null))"
    narrow.evaluate(widen)
    assert narrow.evaluate(OUTSIDE) == [WIDTH, 0]


@pytest.mark.parametrize("name", [*PAGES, "runs"])
def test_no_page_scrolls_sideways(narrow: Any, show: Callable[..., Any], name: str) -> None:
    show(name, None if name == "runs" else "kineto_gpu")
    settle(narrow)
    if os.environ.get("STEPSCOPE_SHOTS"):
        narrow.screenshot(path=f"{os.environ['STEPSCOPE_SHOTS']}/{name}-390.png")
    assert narrow.evaluate(OUTSIDE) == [WIDTH, 0], name
