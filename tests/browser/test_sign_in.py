"""The page that asks for the token, and the two ways past it: the link, and the form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import PATIENCE_MS, Site, playwright

expect = playwright.expect


@pytest.fixture
def stranger(browser: Any, site: Site) -> Iterator[Any]:
    """A page in a browser that was never here."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


def test_a_stranger_is_asked_for_the_token(stranger: Any, site: Site) -> None:
    refused: list[str] = []
    stranger.on("console", lambda note: refused.append(note.text))
    assert stranger.goto(site.url).status == 200
    expect(stranger.get_by_label("Token")).to_be_focused()
    assert "tiny" not in stranger.content()
    assert refused == [], "the page obeys its own policy"
    assert stranger.evaluate("async () => (await fetch('api/runs')).status") == 403


def test_the_form_leads_to_where_the_link_did(stranger: Any, site: Site) -> None:
    link = site.link("ops", "kineto_gpu")
    stranger.goto(link)
    stranger.get_by_label("Token").fill("a guess")
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("alert")).to_have_text("That is not the token.")
    stranger.get_by_label("Token").fill(site.served.token)
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.locator("#view h1")).to_have_text("Ops")
    assert stranger.url == link


def test_the_link_signs_in_and_leaves_no_token_in_the_address(stranger: Any, site: Site) -> None:
    stranger.goto(f"{site.url}?token={site.served.token}")
    stranger.wait_for_url(f"{site.url}#/**")
    expect(stranger.locator("h1").first).to_be_visible()
    assert stranger.evaluate("document.cookie") == "", "scripts do not see it"
    assert stranger.evaluate("async () => (await fetch('api/runs')).status") == 200
