"""Links into the trace viewer: what they keep, and times since 1970, which a double does not tell exactly."""

from __future__ import annotations

import re

from tests.browser.conftest import Site, until
from tests.browser.test_trace import (
    COUNTERS,
    Show,
    asked,
    click_row,
    queue_depth_moved_up,
    ready,
    with_layers,
)


def test_the_order_of_tracks_and_the_marks_are_in_the_link(show: Show) -> None:
    page = with_layers(show("trace", "kineto_gpu"))
    before = queue_depth_moved_up(page)
    click_row(page, "Steps on GPU 0", 0.5)
    page.locator(".tl-drawer h2").get_by_text(re.compile("^step")).wait_for()
    page.keyboard.press("Shift+M")
    page.keyboard.press(".")
    page.keyboard.press("m")
    until(page, "stepscopeTimeline.marked.marks.length === 2")
    page.wait_for_url(
        re.compile(r"(?=.*[?&]order=r)(?=.*[?&]marks=\d+\.\d+k%2C\d+\.\d+(&|$))")
    )  # whichever came first
    shown = page.evaluate(f"[{COUNTERS}, stepscopeTimeline.marked.marks]")
    page.reload()
    ready(page)
    assert page.evaluate(f"[{COUNTERS}, stepscopeTimeline.marked.marks]") == shown
    assert shown[0] != before


def test_a_step_that_is_counted_from_1970_opens_in_the_trace(show: Show) -> None:
    page = show("steps", "hostile")
    page.locator("[data-table=steps] tbody tr").nth(1).click()
    ready(page)
    until(page, "window.stepscopeTimeline?.marked.chosen")
    assert (
        900_000 <= page.evaluate("Math.round(stepscopeTimeline.viewport.span)") <= 1_070_000
    )  # with a margin
    page.keyboard.press("w")
    page.wait_for_url(re.compile(r"start=1694128201\d{9}&end=1694128201\d{9}"))


def test_search_and_ranges_of_times_since_1970_are_exact(show: Show, site: Site) -> None:
    """Every hit is visited once, and the range of a slice is as long as the slice."""
    page = ready(show("trace", "hostile"))
    total = asked(site, "hostile", "timeline/search?q=bold")["count"]
    assert total > 5
    page.locator(".tl-search").fill("bold")
    ids = []
    for number in range(1, total + 1):
        page.keyboard.press("Enter")
        page.locator(".tl-found").get_by_text(re.compile(f"^{number} of {total}$")).wait_for()
        ids.append(page.evaluate("stepscopeTimeline.marked.chosen.id"))
    assert len(set(ids)) == total
    page.locator(".tl-overlay").focus()
    long = page.evaluate("stepscopeTimeline.marked.chosen.dur")
    page.keyboard.press("r")
    page.locator(".tl-range td").first.wait_for()
    assert f"{long // 1000}.0 µs selected" in page.locator(".tl-drawer h2").inner_text()
    times = page.locator(".tl-range tbody tr", has_text="bold").locator("td:nth-child(3)").all_inner_texts()
    assert f"{long // 1000}.0 µs" in times


def test_other_pages_link_here_with_times_and_event(show: Show, site: Site) -> None:
    layout = asked(site, "kineto_gpu", "timeline/layout")
    middle = (layout["start_ns"] + layout["end_ns"]) // 2
    page = ready(show("trace", "kineto_gpu", start=middle, end=middle + 1_000_000, event=5))
    page.locator(".tl-drawer h2").wait_for()
    assert page.evaluate("stepscopeTimeline.marked.chosen.id") == 5
