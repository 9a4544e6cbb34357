"""The tab as people see it: a real TensorBoard in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tensorboard.conftest import PREFIX, Boards

playwright = pytest.importorskip("playwright.sync_api")

PATIENCE_MS = 60_000


class Seen:
    """A page of TensorBoard, what it asked and what went wrong in it."""

    def __init__(self, browser: Any, address: str) -> None:
        self.page = browser.new_page(viewport={"width": 1280, "height": 800})
        self.page.set_default_timeout(PATIENCE_MS)
        self.errors: list[str] = []
        self.urls: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.urls.append(request.url))
        self.page.goto(f"{address}/#stepscope")
        self.tab = self.page.frame_locator("iframe[src*='stepscope'], iframe")

    def _said(self, message: Any) -> None:
        """TensorBoard's own complaints (its fonts do not know of a prefix) are not ours."""
        if message.type == "error" and "/plugin/stepscope/" in message.location.get("url", ""):
            self.errors.append(message.text)


def test_from_the_list_to_a_report(browser: Any, boards: Boards) -> None:
    """With --logdir_spec and --path_prefix, the ways in which addresses go wrong first."""
    address = boards["spec"].address
    seen = Seen(browser, address)
    seen.tab.get_by_text("tiny_gpt.pt.trace.json.gz").first.click()
    playwright.expect(seen.tab.get_by_text("PyTorch").first).to_be_visible(timeout=PATIENCE_MS)
    playwright.expect(seen.tab.locator(".js-plotly-plot").first).to_be_visible(timeout=PATIENCE_MS)
    assert seen.errors == []
    here = address.removesuffix(PREFIX)
    assert {url for url in seen.urls if not url.startswith((here, "data:", "blob:"))} == set()
    seen.page.close()


def test_the_reason_is_on_the_tab(browser: Any, boards: Boards) -> None:
    seen = Seen(browser, boards["broken"].address)
    playwright.expect(seen.tab.get_by_text("polars is <b>not</b> well").first).to_be_visible(
        timeout=PATIENCE_MS
    )
    assert seen.errors == []
    seen.page.close()


def test_an_empty_folder_explains_itself(browser: Any, boards: Boards) -> None:
    seen = Seen(browser, boards["empty"].address)
    playwright.expect(seen.tab.get_by_text(str(boards.empty)).first).to_be_visible(timeout=PATIENCE_MS)
    assert seen.errors == []
    seen.page.close()
