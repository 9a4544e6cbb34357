"""The tree of ops: the way to what takes long is open, and arrow keys suffice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.browser.conftest import playwright

expect = playwright.expect


def test_the_tree_by_keyboard_leads_to_calls(show: Callable[..., Any]) -> None:
    page = show("ops", "kineto_gpu", view="tree")
    rows = page.locator(".optree tbody tr")
    assert rows.count() > 5
    expect(page.locator(".optree thead")).to_contain_text("FLOP utilisation")
    page.locator(".optree tr[tabindex='0']").focus()
    page.keyboard.press("Home")
    focused = page.locator(".optree tr:focus")
    expect(focused).to_have_attribute("aria-expanded", "true")
    before = rows.count()
    page.keyboard.press("ArrowLeft")
    expect(focused).to_have_attribute("aria-expanded", "false")
    assert rows.count() < before
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(focused).to_have_attribute("aria-level", "2")
    total = rows.first.locator("td").nth(1).inner_text()
    page.get_by_role("button", name="totals").click()
    expect(rows.first.locator("td").nth(1)).not_to_have_text(total)
    page.wait_for_url("**times=total**")
    op = page.locator(".optree tbody tr:not([aria-expanded])").first
    op.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**#/trace?*")
