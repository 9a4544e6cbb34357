"""TensorBoard loads the page without its hash: run and page stay all the same."""

from __future__ import annotations

from typing import Any

from tests.browser.conftest import Site, settle


def test_a_reload_keeps_run_and_page(page: Any, site: Site) -> None:
    page.goto("about:blank")
    state = site.get("api/state") | {"in_tensorboard": True}
    page.route("**/api/state", lambda route: route.fulfill(json=state))
    page.goto(site.link("steps", "kineto_gpu"))
    settle(page)
    page.goto("about:blank")
    page.goto(site.url)
    page.wait_for_url(f"**#/steps?run={site.run('kineto_gpu')}")
    settle(page)
    assert page.locator("h1").inner_text() == "Steps"
    page.evaluate("sessionStorage.clear()")
    page.goto("about:blank")
