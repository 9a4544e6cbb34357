"""Two memory snapshots beside each other on the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.browser.conftest import Site, playwright, settle
from tests.browser.memory.test_snapshot import shot

expect = playwright.expect


def test_what_one_snapshot_holds_and_the_other_does_not(show: Callable[..., Any], site: Site) -> None:
    page = show("compare", None, a=site.run("snapshot_sound"), b=site.run("snapshot"))
    shot(page, "snapshot-compare")
    view = page.locator("#view")
    expect(view).to_contain_text("Only in B")
    expect(view).to_contain_text("384 MiB kept at train.py:10")
    expect(view).not_to_contain_text("Parts of a step")
    row = page.locator("tr", has_text="activations at train.py").last
    expect(row).to_contain_text("+384 MiB")
    row.get_by_role("link").last.click()
    settle(page)
    expect(page.locator("h1")).to_contain_text("Memory")
    assert "#/memory?" in page.url
    assert f"run={site.run('snapshot')}" in page.url
