"""Figures are there whatever comes first: the library that draws them, or the data."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.browser.conftest import Site, playwright, settle, until

expect = playwright.expect


def test_data_that_comes_before_the_library_is_drawn_all_the_same(page: Any, site: Site) -> None:
    page.goto("about:blank")
    with page.expect_response("**/memory?*"):
        page.route("**/plotly.min.js", _late)
        page.goto(site.link("memory", "kineto_gpu"))
    page.locator(".figure[data-drawn=yes]").first.wait_for()
    page.locator(".figure .nsewdrag").first.wait_for()
    assert page.locator(".figure .js-plotly-plot .main-svg").count() > 0


def _late(route: Any) -> None:
    """Long enough for the curve to come first and to ask for a second drawing."""
    time.sleep(1.5)
    route.continue_()


def test_arrow_keys_go_through_the_marks_and_enter_opens_one(show: Callable[..., Any]) -> None:
    page = show("steps", "kineto_gpu")
    plot = page.locator(".figure[data-drawn=yes]", has_text="Distribution").locator(".plot")
    plot.focus()
    assert "Arrow keys" in (plot.get_attribute("aria-label") or "")
    told = page.locator(".figure .told:not(:empty)")
    page.keyboard.press("ArrowRight")
    first = told.inner_text()
    assert first.startswith("step ")
    page.set_viewport_size({"width": 1180, "height": 800})  # drawn anew: the place is kept
    until(page, "document.querySelector('.figure .main-svg').clientWidth < 1000")
    settle(page)
    page.keyboard.press("ArrowRight")
    expect(told).not_to_have_text(first)
    expect(told).to_contain_text("step ")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("Enter")
    page.wait_for_url("**#/trace?*start=*")
