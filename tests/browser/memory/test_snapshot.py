"""A memory snapshot on the page: the block, the stack and the moment that one asks for are those that are shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import Site, playwright, settle, until
from tests.browser.test_accessibility import AXE, violations

expect = playwright.expect
Show = Callable[..., Any]
BOX_OF = """(address) => {
  const rect = stepscopeSegments.rectOf(address), box = stepscopeSegments.canvas.getBoundingClientRect();
  return [box.left + rect.x + Math.min(rect.wide / 2, 40), box.top + rect.y + 8];
}"""


def shot(page: Any, name: str) -> None:
    """A picture to look at."""
    if "STEPSCOPE_SHOTS" in os.environ:
        page.screenshot(path=f"{os.environ['STEPSCOPE_SHOTS']}/{name}.png", full_page=True)


def opened(show: Show, profile: str = "snapshot", **params: object) -> Any:
    """The page of the memory, with its map."""
    page = show("memory", profile, **params)
    until(page, "document.querySelector('.segments')?.dataset.drawn === 'yes'")
    return page


def blocks(site: Site, **query: object) -> list[dict[str, Any]]:
    """What the server knows of the moment."""
    words = "&".join(f"{name}={value}" for name, value in query.items())
    found = site.get(f"api/runs/{site.run('snapshot')}/memory/snapshot/moment?{words}")["pieces"]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def test_a_click_on_a_block_shows_its_stack(show: Show, site: Site) -> None:
    page = opened(show)
    wanted = next(each for each in blocks(site) if each["line"] == "train.py:5")
    page.locator(".segments").scroll_into_view_if_needed()
    page.mouse.click(*page.evaluate(BOX_OF, wanted["address"]))
    about = page.locator(".block-about")
    expect(about).to_have_attribute("data-block", wanted["address"])
    expect(about).to_contain_text("16.0 MiB · parameter · train.py:5")
    expect(about.locator(".frames li").first).to_contain_text("convert")
    expect(about.locator(".frames li").last).to_contain_text("train.py:5")
    page.wait_for_url(f"**block={wanted['address']}*")
    shot(page, "snapshot-block")


def test_the_address_has_the_block(show: Show, site: Site) -> None:
    wanted = next(each for each in blocks(site) if each["line"] == "train.py:12")
    page = opened(show, block=wanted["address"])
    expect(page.locator(".block-about")).to_have_attribute("data-block", wanted["address"])
    expect(page.locator(".block-about .frames li").last).to_contain_text("train.py:12")


def test_free_blocks_are_there_by_keyboard(show: Show, site: Site) -> None:
    page = opened(show)
    free = next(each for each in blocks(site) if each["kind"] == "free")
    assert free["bytes"] == 17 << 20
    page.locator(".segments").focus()
    page.keyboard.press("End")
    expect(page.locator(".segments")).to_have_attribute("data-block", free["address"])
    expect(page.locator(".segments [aria-live]")).to_contain_text("17.0 MiB · free")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".segments [aria-live]")).to_contain_text("train.py:14")
    page.keyboard.press("Enter")
    expect(page.locator(".block-about .frames li")).to_have_count(1)
    page.keyboard.press("ArrowUp")  # the segment before
    expect(page.locator(".segments [aria-live]")).not_to_contain_text("train.py:14")


def test_a_tip_has_size_kind_and_line(show: Show, site: Site) -> None:
    page = opened(show)
    wanted = next(each for each in blocks(site) if each["kind"] == "activation")
    page.locator(".segments").scroll_into_view_if_needed()
    page.mouse.move(*page.evaluate(BOX_OF, wanted["address"]))
    until(
        page,
        "document.querySelector('.segments').dataset.tip?.startsWith('16.0 MiB · activation · train.py:10')",
    )


def test_a_moment_of_the_curve(show: Show, site: Site) -> None:
    page = opened(show)
    plot = page.locator(".figure[data-drawn=yes]", has_text="Allocated by kind").locator(".plot")
    expect(page.locator(".figure .note").first).to_contain_text("failed request for 512 MiB")
    plot.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**at=*")
    settle(page)
    expect(page.locator("h2", has_text="Segments")).to_contain_text("after the first event")
    at = page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('at')")
    alone = [each for each in blocks(site, at=at) if each["kind"] != "free"]
    assert {each["line"] for each in alone} == {"train.py:5"}
    assert page.evaluate("stepscopeSegments.options.pieces.filter((each) => each.kind !== 'free').map((each) => each.address)") == [
        each["address"] for each in alone
    ]  # fmt: skip
    shot(page, "snapshot-moment")
    page.get_by_role("button", name="Back to the snapshot").click()
    expect(page.locator("h2", has_text="Segments")).to_contain_text("when the snapshot was taken")


def test_the_flame_graph_leads_to_the_stack(show: Show) -> None:
    page = opened(show)
    graph = page.locator(".fg")
    graph.focus()
    for key in ("ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    about = page.locator(".block-about")
    expect(about).to_contain_text("through")
    expect(about.locator(".frames li").last).to_contain_text("train.py")
    widest = page.evaluate("stepscopeFlame.options.root.inside[0]")
    assert widest["name"].endswith("train.py(10): <module>")
    shot(page, "snapshot-flame")


def test_what_is_missing_says_how_to_record_it(show: Show) -> None:
    page = opened(show, "snapshot_bare")
    text = page.locator(".view").inner_text()
    assert "_record_memory_history(max_entries=100_000)" in text
    assert 'stacks="python"' in text


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: npm install")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_violation(theme: str, page: Any, show: Show, site: Site) -> None:
    page.emulate_media(color_scheme=theme)
    try:
        opened(show, block=blocks(site)[0]["address"])
        expect(page.locator(".block-about .frames")).to_be_visible()
        shot(page, f"snapshot-{theme}")
        assert violations(page) == []
    finally:
        page.emulate_media(color_scheme="light")


def test_it_fits_a_telephone(page: Any, show: Show, site: Site) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    try:
        opened(show, block=blocks(site)[0]["address"])
        shot(page, "snapshot-390")
        assert page.evaluate(
            "document.querySelector('.main').scrollWidth <= document.querySelector('.main').clientWidth"
        )
    finally:
        page.set_viewport_size({"width": 1280, "height": 800})
