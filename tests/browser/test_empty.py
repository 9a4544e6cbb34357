"""A folder without a profile says so, and what to do, on every page."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.conftest import Site, playwright


@pytest.mark.parametrize("name", ["runs", "overview", "trace"])
def test_nothing_is_there_yet(page: Any, site: Site, name: str) -> None:
    page.goto("about:blank")
    page.route(
        "**/api/runs", lambda route: route.fulfill(json={"runs": [], "skipped": [], "scanning": False})
    )
    page.goto(f"{site.url}#/{name}")
    notice = page.locator(".view .empty")
    playwright.expect(notice).to_contain_text("No profile was found.")
    playwright.expect(notice.locator("code")).to_have_text("stepscope run -- python train.py")
    assert page.locator(".view .table:visible").count() == 0
    page.goto("about:blank")  # the next test shares the page, not its list
