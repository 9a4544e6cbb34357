"""Figures are there whatever comes first: the library that draws them, or the data."""

from __future__ import annotations

import time
from typing import Any

from tests.browser.conftest import Site


def test_data_that_comes_before_the_library_is_drawn_all_the_same(page: Any, site: Site) -> None:
    page.goto("about:blank")
    with page.expect_response("**/memory?*"):
        page.route("**/plotly.min.js", _late)
        page.goto(site.link("memory", "kineto_gpu"))
    page.locator(".figure[data-drawn=yes]").wait_for()
    page.locator(".figure .nsewdrag").first.wait_for()
    assert page.locator(".figure .js-plotly-plot .main-svg").count() > 0


def _late(route: Any) -> None:
    """Long enough for the curve to come first and to ask for a second drawing."""
    time.sleep(1.5)
    route.continue_()
