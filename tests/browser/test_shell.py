"""The frame of the page: runs, ranks, theme, help, links, and what it says when something is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from tests.browser.conftest import Site, playwright, settle, until
from tests.browser.profiles import FIXTURES
from tests.browser.test_pages import PAGES

expect = playwright.expect


def test_runs_are_listed_and_searched(show: Callable[..., Any]) -> None:
    page = show("runs")
    rows = page.locator(".runs tbody tr")
    assert rows.count() >= 11
    page.get_by_label("search runs").fill("xplane jax")
    expect(rows).to_have_count(1)
    page.wait_for_url("**search=xplane**")
    page.get_by_label("search runs").fill("nothing like this")
    page.get_by_text("No run matches.").wait_for()
    page.get_by_label("search runs").fill("kineto_gpu")
    page.locator(".runs a").click()
    page.wait_for_url("**/#/overview?run=*")
    settle(page)
    assert "tiny_gpt" in page.locator("h1").inner_text()


def test_the_header_changes_the_run_and_keeps_the_page(show: Callable[..., Any], site: Site) -> None:
    page = show("steps", "kineto_gpu")
    page.locator(".picker").click()
    page.locator(".popover input").fill("two_ranks")
    page.locator(".popover a").click()
    page.wait_for_url(f"**/#/steps?run={site.run('two_ranks')}")
    settle(page)
    expect(page.locator(".popover")).to_have_count(0)
    page.locator("select[aria-label=rank]").select_option("1")
    page.wait_for_url("**rank=1")
    settle(page)
    page.locator(".picker").click()
    page.keyboard.press("Escape")
    expect(page.locator(".popover")).to_have_count(0)


def test_back_and_forward(show: Callable[..., Any]) -> None:
    page = show("overview", "kineto_gpu")
    page.locator(".nav a", has_text="Kernels").click()
    expect(page.locator("h1")).to_have_text("Kernels")
    page.go_back()
    expect(page.locator("h1")).to_contain_text("tiny_gpt")
    page.go_forward()
    expect(page.locator("h1")).to_have_text("Kernels")


def test_dark_and_light(show: Callable[..., Any], page: Any) -> None:
    show("device", "kineto_gpu")
    paper = "() => getComputedStyle(document.body).backgroundColor"
    axis = "() => document.querySelector('.figure .xtick text').style.fill"
    light, light_axis = page.evaluate(paper), page.evaluate(axis)
    page.get_by_role("button", name="change to dark colours").click()
    assert page.evaluate(paper) == "rgb(20, 23, 28)" != light
    until(page, f"({axis})() !== {light_axis!r}", "figures follow")
    page.reload()
    settle(page)
    assert page.evaluate(paper) == "rgb(20, 23, 28)", "it is remembered"
    page.get_by_role("button", name="change to light colours").click()
    assert page.evaluate(paper) == light


def test_the_system_decides_at_first(page: Any, site: Site) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(site.link("runs"))
    page.evaluate("() => localStorage.clear()")
    page.reload()
    settle(page)
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    page.emulate_media(color_scheme="light")


def test_how_is_this_computed(show: Callable[..., Any]) -> None:
    page = show("overview", "kineto_gpu")
    page.get_by_role("button", name="how is this computed?").first.click()
    drawer = page.locator("dialog.drawer")
    drawer.locator("h1").wait_for()
    title = drawer.locator("h1").inner_text()
    drawer.locator("a").first.click()
    expect(drawer.locator("h1")).not_to_have_text(title)
    drawer.get_by_role("button", name="Back").click()
    expect(drawer.locator("h1")).to_have_text(title)
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)


def test_all_help_links_lead_to_a_page(show: Callable[..., Any], site: Site) -> None:
    wanted: set[str] = set()
    for name in PAGES:
        page = show(name, "kineto_gpu")
        wanted |= set(
            page.evaluate("() => [...document.querySelectorAll('[data-help]')].map((e) => e.dataset.help)")
        )
    assert len(wanted) > 15
    for target in sorted(wanted):
        assert site.served.read(f"api/docs/{target.split('#')[0]}").startswith(b"# "), target


def test_an_unknown_run_is_explained(page: Any, site: Site) -> None:
    page.goto(site.url + "#/overview?run=0123456789abcdef")
    page.get_by_text("is not there").wait_for()
    page.goto(site.url + "#/overview")
    page.get_by_text("No run is chosen").wait_for()


def test_an_unknown_page_shows_the_runs(page: Any, site: Site) -> None:
    page.goto(site.url + "#/nonsense?x=1")
    expect(page.locator("h1")).to_have_text("Runs")


def test_a_profile_that_changes_and_vanishes(show: Callable[..., Any], site: Site, watched: Any) -> None:
    watched.expected += ["Failed to load resource"]
    page = show("overview", "vanishing")
    target = site.folder / "vanishing" / "gone.pt.trace.json.gz"
    shutil.copy(FIXTURES / "kineto" / "cuda_graph.pt.trace.json.gz", target)
    looked_again(page, page.get_by_role("button", name="Show the new one"))
    page.get_by_role("button", name="Show the new one").click()
    settle(page)
    target.unlink()
    looked_again(page, page.get_by_text("is not there"))
    shutil.copy(FIXTURES / "kineto" / "streams.pt.trace.json.gz", target)
    looked_again(page, page.locator(".verdict"))


def looked_again(page: Any, wanted: Any) -> None:
    """The page looks every few seconds, and whenever its reader comes back to it: let them come back often."""
    for _ in range(60):
        if wanted.count():
            return
        page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
        page.wait_for_timeout(300)
    wanted.wait_for()


def test_the_server_does_not_answer(show: Callable[..., Any], watched: Any) -> None:
    watched.expected += ["Failed to load resource", "net::ERR"]
    page = show("steps", "kineto_gpu")
    page.route("**/api/**", lambda route: route.abort())
    page.locator(".nav a", has_text="Doctor").click()
    expect(page.locator(".view [role=alert]")).to_contain_text("does not answer")
    page.unroute("**/api/**")
    page.get_by_role("button", name="Try again").click()
    page.locator(".verdict").wait_for()


def test_loading_shows_progress(page: Any, site: Site) -> None:
    held = {"yes": True}

    def slowly(route: Any) -> None:
        if held["yes"]:
            body = '{"state": "loading", "progress": {"stage": "reading", "done": 1000, "total": 4000}}'
            route.fulfill(status=202, content_type="application/json", body=body)
        else:
            route.continue_()

    page.route("**/report*", slowly)
    page.goto(site.link("overview", "kineto_gpu"))
    page.reload()
    expect(page.locator(".loading")).to_contain_text("reading: 25 %")
    held["yes"] = False
    page.locator(".verdict").wait_for()


def test_by_keyboard_alone(show: Callable[..., Any]) -> None:
    page = show("overview", "kineto_gpu")
    page.reload()
    settle(page)
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the page"
    page.locator(".nav a", has_text="Ops").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Ops")
    settle(page)
    page.locator("th button", has_text="calls").focus()
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort=descending]")).to_have_text("calls")


def test_compare_from_the_list(show: Callable[..., Any], site: Site) -> None:
    page = show("runs")
    assert page.get_by_role("button", name="Tick two runs").is_disabled()
    page.get_by_label("compare before/").check()
    page.get_by_label("compare after/").check()
    page.get_by_role("button", name="Compare the two").click()
    page.locator(".verdict").wait_for()
    settle(page)
    assert page.locator(".verdict").inner_text().startswith("The step is faster: 14.7 ms → 9.52 ms (−35 %)")
    why = page.locator("ol.why li").first.inner_text()
    assert why.startswith("waiting for the device in aten::_local_scalar_dense −2.08 ms · 40 % of the change")
    assert "device-sync" in page.locator("li.better").inner_text()
    expect(page.locator(".figure[data-drawn=yes]")).to_have_count(2)
    expect(page.locator(".figure canvas").first).to_be_visible()
    assert page.locator(".figure h3").first.inner_text() == "Where device time grew and shrank"
    mean_step = page.locator("tr", has_text="mean step").locator("td")
    assert mean_step.nth(4).inner_text().startswith("± ")
    assert page.locator("tr", has_text="median step").locator("td.better").count() == 1
    page.get_by_role("button", name="Swap").click()
    expect(page.locator(".verdict")).to_contain_text("The step is slower: 9.52 ms")
    page.wait_for_url(f"**a={site.run('after')}**")
