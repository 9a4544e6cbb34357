"""Every page with profiles of every format: drawn, filled or explained, without an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import settle
from tests.sample import SOAKS

PAGES = {
    "overview": None,
    "steps": "Steps",
    "input": "Input pipeline",
    "ops": "Ops",
    "flame": "Flame graph",
    "kernels": "Kernels",
    "device": "Device",
    "memory": "Memory",
    "collectives": "Communication and ranks",
    "doctor": "Doctor",
    "sql": "SQL",
}
PROFILES = ("kineto_gpu", "xplane_jax", "xplane_tf", "chrome", "tf1_events", "two_ranks", "dumps", "snapshot")
# What JavaScript writes where a value is missing.
SLIPS = re.compile(r"\b(undefined|NaN|Infinity|\[object)\b|\bnull\b")


def visit(page: Any, name: str) -> None:
    """Go there as a reader does, by the navigation."""
    page.locator(f".nav a[href*='#/{name}?'], .nav a[href$='#/{name}']").click()
    page.wait_for_url(f"**/#/{name}?*")
    settle(page)


def check(page: Any, name: str) -> None:
    """All figures are drawn, nothing failed, and there is something to read."""
    text = page.locator(".view").inner_text()
    assert len(text) > 60, f"{name} is empty"
    assert not SLIPS.search(text), f"{name} shows {SLIPS.search(text)}"
    assert page.locator("[role=alert]").count() == 0, page.locator("[role=alert]").all_inner_texts()
    plots = page.locator(".figure .plot")
    assert plots.count() == page.locator(".figure[data-drawn=yes]").count(), f"{name}: a figure is not drawn"
    for plot in plots.all():
        box = plot.locator(".main-svg").first.bounding_box()
        assert box is not None
        assert box["width"] > 300, f"{name}: a figure is {box}"
        assert box["height"] > 100, f"{name}: a figure is {box}"


def pages_for(profile: str) -> list[str]:
    """Half of them, of the next profile the other half; in the soak all of them."""
    odd = PROFILES.index(profile) % 2
    return [name for place, name in enumerate(PAGES) if SOAKS or place % 2 == odd]


@pytest.mark.parametrize("profile", PROFILES)
def test_all_pages(profile: str, show: Callable[..., Any]) -> None:
    page = show("overview", profile)
    for name in pages_for(profile):
        if name != "overview":
            visit(page, name)
        if PAGES[name] is not None:
            assert page.locator("h1").inner_text() == PAGES[name]
        check(page, name)
        width = page.evaluate(
            "() => document.querySelector('.main').scrollWidth - document.querySelector('.main').clientWidth"
        )
        assert width <= 0, f"{name} is wider than the window"


def test_overview_says_what_to_know_first(show: Callable[..., Any]) -> None:
    page = show("overview", "kineto_gpu")
    verdict = page.locator(".verdict").inner_text()
    assert verdict.startswith(
        "The host launches work too slowly. A step takes 12.6 ms as recorded (mean of 3 steps;"
    )
    assert re.search(r"Launch less, bigger work: speed-up [\d.]+–[\d.]+× \(most likely [\d.]+×\)\.", verdict)
    assert page.locator(".finding").count() == 2
    assert "saves about 4.79 ms a step" in page.locator(".finding").first.inner_text()
    assert page.locator(".finding .more").all_inner_texts() == [
        "see it in the trace", "see Device", "see it in the trace", "see Input pipeline",
    ]  # fmt: skip
    assert page.locator(".onebar i").count() == 8
    assert page.locator(".panel h3").all_inner_texts() == [
        "Device\nhow?", "Precision\nhow?", "Coverage\nhow?", "Environment\nhow?",
    ]  # fmt: skip
    bars = page.locator(".figure[data-drawn=yes] .barlayer .trace.bars")
    assert bars.count() == 8


def test_figures_are_saved_here_and_sent_nowhere(show: Callable[..., Any]) -> None:
    page = show("kernels", "kineto_gpu")
    names = page.locator(".modebar-btn").evaluate_all("(all) => all.map((each) => each.dataset.title)")
    assert names[0] == "Download plot as a PNG"
    assert not [name for name in names if "hare" in name or "loud" in name or "tudio" in name]
    page.locator(".figure .plot").first.hover()
    with page.expect_download() as started:
        page.locator(".modebar-btn").first.click()
    assert started.value.path().read_bytes().startswith(b"\x89PNG")


def test_problems_come_first(show: Callable[..., Any]) -> None:
    page = show("overview", "chrome")
    order = page.evaluate(
        "() => [...document.querySelectorAll('.view .problem, .view .verdict')].map((e) => e.className)"
    )
    assert order, "there is at least a verdict"
    assert "verdict" not in order[: max(0, order.index("verdict"))]


def test_a_profile_that_cannot_be_read_says_why(show: Callable[..., Any], watched: Any) -> None:
    watched.expected += ["Failed to load resource"]
    page = show("overview", "broken")
    words = page.locator("[role=alert]").inner_text()
    assert "error" in words
    assert "broken" in words or "gzip" in words
    assert page.locator("[role=alert] button").inner_text() == "Try again"
    visit(page, "doctor")
    assert page.locator(".problem.error").count() > 0
    page.locator(".brand").click()
    page.locator(".runs .state.failed").wait_for()


def test_heat_map_of_ranks(show: Callable[..., Any]) -> None:
    page = show("collectives", "two_ranks")
    assert page.locator(".heatmaplayer image, .heatmaplayer .hm").count() > 0
    assert "The other ranks wait for rank 0" in page.locator(".problem").inner_text()
    page.locator("select[aria-label=measure]").select_option("host_collective")
    page.wait_for_url("**measure=host_collective**")


def test_how_long_ranks_waited(show: Callable[..., Any]) -> None:
    page = show("collectives", "two_ranks")
    waits = page.locator(".figure[data-drawn=yes]", has_text="How long ranks waited in a collective")
    assert waits.locator(".barlayer .point").count() > 1
    assert waits.locator(".xtick text").first.text_content() == "< 1 µs"
    page.locator("select[aria-label=rank]").select_option("1")
    page.wait_for_url("**rank=1")
    settle(page)
    assert page.locator("select[aria-label=rank]").input_value() == "1"


def test_a_step_opens_in_the_trace(show: Callable[..., Any]) -> None:
    page = show("steps", "kineto_gpu")
    page.locator("[data-table=steps] tbody tr").nth(1).click()
    page.wait_for_url("**/#/trace?*events=step*")


def again(page: Any, wanted: str, act: Callable[[], None]) -> None:
    """Act until the address has it: the curve is drawn again when its details come, which may be in between."""
    for _ in range(20):
        act()
        for _ in range(10):
            if wanted in page.url:
                return
            page.wait_for_timeout(100)
    raise AssertionError(f"{wanted} never came into {page.url}")


def test_memory_is_brushed_and_asked(show: Callable[..., Any]) -> None:
    page = show("memory", "kineto_gpu")
    assert page.get_by_role("heading", name="Live at the peak of gpu 0: 102 MiB").count() == 1

    def point() -> None:
        box = page.locator(".figure .nsewdrag").first.bounding_box()
        page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + 130)

    again(page, "at=38513623", point)
    page.get_by_role("button", name="Back to the peak").wait_for()

    def brush() -> None:
        box = page.locator(".figure .nsewdrag").first.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 70, steps=5)
        page.mouse.up()

    again(page, "start=38513623", brush)
    page.reload()
    settle(page)
    page.get_by_role("button", name="Back to the peak").wait_for()
    page.get_by_role("button", name="host").click()
    page.get_by_role("heading", name="Memory of host").wait_for()


def test_dumps_say_why_the_ranks_hang(show: Callable[..., Any]) -> None:
    page = show("overview", "dumps")
    verdict = page.locator(".verdict").inner_text()
    assert verdict.startswith("Ranks 0–1, 3 wait in all_reduce at train.py:88; rank 2 has not called it")
    assert page.locator("table").first.locator("tbody tr").count() == 2
    assert "/job/train.py:88" in page.locator("details pre").first.inner_text()
    assert "No account" not in page.locator(".view").inner_text()
