"""Search in the trace viewer: durations, arguments and patterns, and the list of hits, checked by event id."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser.conftest import Site, Watched, until
from tests.browser.test_trace import Show, asked, ready


def search(page: Any, text: str) -> Any:
    """Type it, and give the list when it has come."""
    page.locator(".tl-search").fill(text)
    until(page, f"stepscopeTimeline.elements.search.value === {text!r}")
    page.locator(".tl-hits button[data-id]").first.wait_for()
    return page.locator(".tl-hits")


def hits(site: Site, profile: str, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = asked(site, profile, f"timeline/hitlist?q={quote(text)}")["hits"]
    return found


@pytest.mark.parametrize("text", ["aten::mm dur>20us", "direction=DtoH", "/^aten::(add|mul)$/"])
def test_the_list_has_what_the_search_found_and_leads_there(text: str, show: Show, site: Site) -> None:
    page = ready(show("trace", "kineto_gpu"))
    shown = search(page, text)
    wanted = [hit["id"] for hit in hits(site, "kineto_gpu", text)]
    ids = [int(each.get_attribute("data-id")) for each in shown.locator("button[data-id]").all()]
    assert ids == wanted and len(ids) > 2
    shown.locator(f"button[data-id='{wanted[2]}']").click()
    until(page, f"stepscopeTimeline.marked.chosen?.id === {wanted[2]}")
    page.locator(".tl-found").get_by_text(re.compile("^3 of ")).wait_for()
    page.locator(".tl-search").fill("")
    until(page, "document.querySelector('.tl-hits').hidden")


def test_keys_step_through_the_hits_and_the_list_follows(show: Show, site: Site) -> None:
    page = ready(show("trace", "kineto_gpu"))
    search(page, "aten::")
    wanted = hits(site, "kineto_gpu", "aten::")
    assert re.search(r"[\d,]+ more", page.locator(".tl-hits").inner_text()), "what is left is counted"
    page.locator(".tl-hits button[data-id]").first.click()
    until(page, f"stepscopeTimeline.marked.chosen?.id === {wanted[0]['id']}")
    page.locator(".tl-overlay").focus()
    for at in (1, 2):
        page.keyboard.press("n")
        until(page, f"stepscopeTimeline.marked.chosen?.id === {wanted[at]['id']}")
    current = page.locator(".tl-hits [aria-current]")
    until(page, f"document.querySelector('.tl-hits [aria-current]')?.dataset.id === '{wanted[2]['id']}'")
    current.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    until(page, f"stepscopeTimeline.marked.chosen?.id === {wanted[1]['id']}")
    page.locator(".tl-hits .tl-more").last.click()
    later = asked(site, "kineto_gpu", "timeline/hitlist?q=aten::&first=200")["hits"]
    until(page, f"document.querySelector('.tl-hits button[data-id]')?.dataset.id === '{later[0]['id']}'")


def test_the_list_can_be_folded(show: Show) -> None:
    page = ready(show("trace", "kineto_gpu"))
    search(page, "aten::mm")
    wide = page.evaluate("stepscopeTimeline.viewport.width")
    page.get_by_role("button", name="List", exact=True).first.click()
    until(page, f"stepscopeTimeline.viewport.width > {wide}")
    page.get_by_role("button", name="List", exact=True).first.click()
    until(page, f"stepscopeTimeline.viewport.width === {wide}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/(/", "The regular expression is not valid: unclosed group."),
        ("dur>5", "dur needs a number with ns, us, ms or s"),
    ],
)
def test_what_cannot_be_searched_for_is_said_in_a_sentence(
    text: str, words: str, show: Show, watched: Watched
) -> None:
    watched.expected.append("400")
    page = ready(show("trace", "kineto_gpu"))
    page.locator(".tl-search").fill(text)
    page.locator(".tl-found").get_by_text(words).wait_for()
    assert page.locator(".tl-hits").is_hidden()
