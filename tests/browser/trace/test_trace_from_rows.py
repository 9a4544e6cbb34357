"""Rows of the pages Compare and Doctor lead to their events, checked by event id."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.browser.conftest import Site, settle, until
from tests.browser.test_events import listed
from tests.browser.test_trace import Show, asked


def compared(show: Show, site: Site) -> Any:
    return show("compare", None, a=site.run("before"), b=site.run("after"))


def wanted(site: Site, address: str) -> tuple[str, list[int]]:
    """The run that a link leads to, and the events that the server has for it."""
    query = {
        name: values[0] for name, values in parse_qs(urlsplit(address).fragment.partition("?")[2]).items()
    }
    profile = next(name for name, run in site.ids.items() if run == query["run"])
    facts = f"&with={quote(query['facts'])}" if "facts" in query else ""
    found = asked(site, profile, f"events?of={quote(query['events'])}{facts}")
    return profile, [event["id"] for event in found["events"]]


@pytest.mark.parametrize("table", ["Parts of a step", "What the device waited for", "Ops, ", "Kernels, "])
@pytest.mark.parametrize("side", [0, 1])
def test_a_value_of_a_comparison_leads_to_its_events_in_that_run(
    table: str, side: int, show: Show, site: Site
) -> None:
    page = compared(show, site)
    section = page.locator(".of", has=page.get_by_role("heading", name=table))
    link = section.locator(f"tbody tr td:nth-child({side + 2}) a").first
    if not link.count():
        pytest.skip("only the other run has rows here")
    profile, ids = wanted(site, link.get_attribute("href"))
    assert profile == ("before", "after")[side]
    link.click()
    found = listed(page)
    assert found.ids == ids and found.chosen == ids[0] and found.total > 0
    page.go_back()
    settle(page)
    assert "#/compare" in page.url


def test_a_row_leads_to_the_run_that_has_more_of_it_by_the_keyboard(show: Show, site: Site) -> None:
    page = compared(show, site)
    row = page.locator(".of", has=page.get_by_role("heading", name="Kernels, ")).locator("tbody tr").first
    _, ids = wanted(site, row.get_attribute("data-to"))
    row.focus()
    page.keyboard.press("Enter")
    assert listed(page).ids == ids


def test_a_finding_of_one_run_leads_to_its_events(show: Show, site: Site) -> None:
    page = compared(show, site)
    link = page.locator("li.better a").first
    profile, ids = wanted(site, link.get_attribute("href"))
    assert profile == "before"
    link.click()
    found = listed(page)
    assert found.handle == "finding:device-sync" and found.ids == ids


def test_a_problem_of_the_doctor_leads_to_its_events(show: Show, site: Site) -> None:
    page = show("doctor", "hostile")
    link = page.get_by_role("link", name="its events in the trace").first
    _, ids = wanted(site, link.get_attribute("href"))
    link.click()
    found = listed(page)
    assert found.handle.startswith("problem:") and found.ids == ids
    assert json.dumps(found.facts) == "{}"
    page.get_by_role("link", name="‹ Doctor").click()
    until(page, "location.hash.startsWith('#/doctor')")
