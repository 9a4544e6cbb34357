"""Tips follow the keyboard: what has the focus, or was reached by a key, shows the tip that a pointer would."""

from __future__ import annotations

from tests.browser.conftest import Site, until
from tests.browser.test_trace import Show, asked, event_of, ready


def test_a_slice_reached_by_a_key_has_the_tip_of_the_pointer(show: Show, site: Site) -> None:
    kernel = event_of(site, "kineto_gpu", "/^void at::/")
    page = ready(show("trace", "kineto_gpu", event=kernel))
    tip = page.locator(".tl-tip")
    assert tip.is_hidden(), "nothing was reached by a key yet"
    page.locator(".tl-overlay").focus()
    page.keyboard.press("[")
    until(page, f"stepscopeTimeline.marked.chosen && stepscopeTimeline.marked.chosen.id !== {kernel}")
    launch = page.evaluate("stepscopeTimeline.marked.chosen.id")
    name = asked(site, "kineto_gpu", f"timeline/event?id={launch}")["name"]
    tip.get_by_text(name, exact=True).wait_for()
    words = tip.inner_text()
    page.keyboard.press("f")
    page.keyboard.press("f")
    ready(page)
    place = page.evaluate(
        """() => {
          const { chosen } = stepscopeTimeline.marked;
          const box = stepscopeTimeline.elements.overlay.getBoundingClientRect();
          const line = stepscopeTimeline.lines.find((each) => each.track === chosen.track && each.kind === "track");
          const middle = stepscopeTimeline.viewport.x(chosen.start + chosen.dur / 2);
          return [box.left + middle, box.top + line.y - stepscopeTimeline.scroll + 2 + (chosen.row - line.row) * 18 + 9];
        }"""
    )
    page.mouse.move(*place)
    until(page, "!document.querySelector('.tl-tip').hidden")
    assert tip.inner_text() == words
    page.mouse.move(5, 5)
    until(page, "document.querySelector('.tl-tip').hidden")


def test_a_heading_that_has_the_focus_shows_its_tip(show: Show) -> None:
    page = ready(show("trace", "kineto_gpu"))
    line = page.locator(".tl-line.group").first
    words = line.locator(".tl-title").get_attribute("data-tip")
    page.locator(".tl-overlay").focus()
    page.keyboard.press("0")  # what has the focus now shows it: the keyboard was used last
    line.locator(".tl-fold").focus()
    until(
        page,
        f"document.querySelector('.tip').style.visibility === 'visible' && document.querySelector('.tip').textContent === {words!r}",
    )
    page.keyboard.press("Escape")
    until(page, "document.querySelector('.tip').style.visibility === 'hidden'")
