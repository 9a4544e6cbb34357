"""The list of runs: figures without opening a run, sorted, filtered, trends, and several beside each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.browser.conftest import Site, playwright, settle

expect = playwright.expect


def test_figures_come_by_themselves_and_are_sorted(show: Callable[..., Any]) -> None:
    page = show("runs")
    row = page.locator(".runs tbody tr", has_text="kineto_gpu/tiny_gpt")
    expect(row).to_contain_text("12.6 ms")
    expect(row).to_contain_text("The host launches work too slowly")
    expect(row).to_contain_text("NVIDIA H200")
    expect(page.locator(".runs")).not_to_contain_text(".pt.trace.json")
    page.get_by_role("button", name="peak memory").click()
    expect(page.locator("th[aria-sort=descending]")).to_have_text("peak memory")
    page.wait_for_url("**sort=memory**")
    page.get_by_label("search runs").fill("launch-bound h200 tiny")
    expect(page.locator(".runs tbody tr")).to_have_count(1)


def _board(site: Site) -> dict[str, Any]:
    """Two runs of one job, the second twice as slow."""
    before, after = site.run("before"), site.run("after")
    found: dict[str, Any] = site.get("api/figures")
    line: dict[str, Any] = dict.fromkeys(
        ("p90_ns", "busy_share", "mfu", "finding", "peak_bytes", "capacity_bytes", "commit")
    )
    line |= {"basis": "recorded", "steps": 5, "parts": {"compute": 1.0}, "findings": 0, "problems": 0}
    line |= {"devices": "GPU", "framework": "pytorch", "ranks": 1, "noise": None}
    day = 86_400 * 10**9
    found["jobs"] |= {before: "bert", after: "bert"}
    found["figures"] = {
        before: line | {"step_ns": 10_000_000, "recorded_unix_ns": 20_000 * day},
        after: line | {"step_ns": 20_000_000, "recorded_unix_ns": 20_001 * day},
    }
    change = {"before_ns": 1e7, "difference_ns": 1e7, "margin_ns": 1e6, "verdict": "slower"}
    found["changes"] = {after: change | {"since": before}}
    return found | {"waiting": []}


def test_a_regression_is_marked_drawn_and_compared(page: Any, site: Site) -> None:
    page.goto("about:blank")
    answer = json.dumps(_board(site))
    page.route("**/api/figures", lambda route: route.fulfill(body=answer, content_type="application/json"))
    page.goto(site.link("runs"))
    settle(page)
    expect(page.locator(".runs td.worse")).to_have_text("+100.0 %")
    chart = page.locator(".figure[data-drawn=yes]", has_text="Step time over the runs")
    chart.locator(".plot").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(chart.locator(".told")).to_contain_text("since the run before")
    for name in ("before/", "after/"):
        _tick(page.get_by_label(f"compare {name}"))
    several = page.locator(".beside")
    expect(several.locator("tr", has_text="step").first).to_contain_text("10.0 ms")
    page.get_by_role("button", name="regressions only").click()
    expect(page.locator(".runs tbody tr")).to_have_count(1)
    page.set_viewport_size({"width": 390, "height": 800})
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "no sideways scrolling of the page"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("about:blank")


def _tick(box: Any) -> None:
    """Tick a box whose row may be drawn anew while it is clicked."""
    for _ in range(50):
        if box.is_checked():
            return
        box.click()
        box.page.wait_for_timeout(100)
    raise AssertionError("the box stays empty")
