"""Figures are there whatever comes first: the library that draws them, or the data."""

from __future__ import annotations

import json
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


RANKS, SLOW = 2048, 777
CELLS = """Object.assign({}, ...[...document.querySelectorAll(".figure")].map((each) => {
  const plot = each.querySelector(".js-plotly-plot");
  return { [each.innerText.split("\\n")[0]]: (plot?.data ?? []).map((one) => (one.z ?? []).flat().length) };
}))"""


def multiply(route: Any) -> None:
    """The report of two ranks as one of many; each step of one of them takes half as long again."""
    answer = route.fetch()
    report = answer.json()
    if "steps" not in report:  # it is still being made
        route.fulfill(response=answer)
        return
    first = [row for row in report["steps"]["rows"] if row["rank"] == 0]
    report["profile"]["ranks"] = list(range(RANKS))
    report["steps"]["critical_devices"] = dict.fromkeys(
        map(str, range(RANKS)), report["steps"]["critical_devices"]["0"]
    )
    report["steps"]["rows"] = [
        {**row, "rank": rank, "duration_ns": row["duration_ns"] * (3 if rank == SLOW else 2) // 2}
        for rank in range(RANKS)
        for row in first
    ]
    route.fulfill(response=answer, body=json.dumps(report))


def test_thousands_of_ranks(page: Any, show: Callable[..., Any]) -> None:
    page.route("**/api/runs/*/report*", multiply)
    page.goto("about:blank")  # the page keeps the reports that it has seen
    show("collectives", "two_ranks")
    text = page.locator(".view").inner_text()
    assert "Ranks against their peers" in text
    assert "Every rank, every step" not in text
    cells = page.evaluate(CELLS)
    assert cells
    assert 0 < max(count for counts in cells.values() for count in counts) <= 64 * 120, cells
    page.unroute_all()
    page.goto("about:blank")
