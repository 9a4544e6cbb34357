"""Names from traces are text, never markup, on every page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.browser.conftest import playwright, settle, until
from tests.browser.test_pages import PAGES
from tests.builders.hostile import MARKUP

# What the names would have made, had they been taken as markup; Plotly's own drawings have no such elements.
MADE = "() => document.querySelectorAll('.view img, .view script, .view [onerror], .view [onload], .view a[href^=javascript]').length"


def test_names_are_text(show: Callable[..., Any]) -> None:
    page = show("overview", "hostile")
    for name in PAGES:
        page.locator(f".nav a[href*='#/{name}?']").click()
        settle(page)
        assert page.evaluate(MADE) == 0, name
        assert page.evaluate("() => window.hacked") is None, name
    for name in ("ops", "kernels"):
        page.locator(f".nav a[href*='#/{name}?']").click()
        settle(page)
        shown = page.locator("table").first.inner_text()
        assert MARKUP[0] in shown, name
        assert "<script>" in shown, name
    page.locator(".plot").first.hover(position={"x": 420, "y": 60})
    page.wait_for_timeout(200)
    assert page.evaluate(MADE) == 0
    assert page.evaluate("() => window.hacked") is None


def test_flame_graph_of_hostile_names(show: Callable[..., Any]) -> None:
    page = show("flame", "hostile", tree="stack")
    until(page, "document.querySelector('.fg')?.dataset.drawn")
    names = page.evaluate("stepscopeFlame.graph.boxes.map((box) => box.node.name)")
    assert any("<img" in name or "<script>" in name for name in names), names[:20]
    at = next(place for place, name in enumerate(names) if "<img" in name or "<script>" in name)
    page.evaluate(f"stepscopeFlame.graph.select(stepscopeFlame.graph.boxes[{at}])")
    playwright.expect(page.locator(".fg-about")).to_contain_text("<")
    assert page.evaluate(MADE) == 0
    assert page.evaluate("() => window.hacked") is None


def test_headings_and_arguments_in_the_trace_are_text(show: Callable[..., Any]) -> None:
    page = show("trace", "hostile", event=3)
    until(page, "window.stepscopeTimeline?.firstPaint > 0 && !stepscopeTimeline.arriving")
    page.locator(".tl-drawer dl").first.wait_for()
    playwright.expect(page.locator(".tl-title", has_text="<img").first).to_be_attached()
    page.keyboard.press("Control+a")
    playwright.expect(page.locator(".tl-range td", has_text="<script>").first).to_be_visible()
    assert page.evaluate(MADE) == 0
    assert page.evaluate("() => window.hacked") is None


def test_the_runs_name_is_text(show: Callable[..., Any]) -> None:
    page = show("runs")
    assert page.locator(".runs b").count() == 0
    assert any("<b>bold" in text for text in page.locator(".runs a").all_text_contents())
