"""The tab as people see it: a real TensorBoard in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.browser.slowly import late, slow_down
from tests.patience import PATIENCE_S
from tests.tensorboard.conftest import PREFIX, Boards

playwright = pytest.importorskip("playwright.sync_api")

PATIENCE_MS = 1000 * PATIENCE_S


class Seen:
    """A page of TensorBoard, what it asked and what went wrong in it."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address
        self.page.set_default_timeout(PATIENCE_MS)
        slow_down(page)
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


@pytest.fixture
def see(browser: Any, boards: Boards) -> Iterator[Callable[[str], Seen]]:
    """Opens our tab in the TensorBoard of this name."""
    with ExitStack() as opened:

        def one(name: str) -> Seen:
            address = opened.enter_context(late(boards[name].address))
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            opened.callback(page.close)
            return Seen(page, address)

        yield one


def test_from_the_list_to_a_report(see: Callable[[str], Seen]) -> None:
    """With --logdir_spec and --path_prefix, the ways in which addresses go wrong first."""
    seen = see("spec")
    seen.tab.locator(".verdict").wait_for()  # a single run opens by itself
    seen.tab.locator(".brand").click()
    seen.tab.locator(".runs a", has_text="tiny_gpt").first.click()
    playwright.expect(seen.tab.get_by_text("PyTorch").first).to_be_visible(timeout=PATIENCE_MS)
    playwright.expect(seen.tab.locator(".js-plotly-plot").first).to_be_visible(timeout=PATIENCE_MS)
    assert seen.errors == []
    here = seen.address.removesuffix(PREFIX)
    assert {url for url in seen.urls if not url.startswith((here, "data:", "blob:"))} == set()


def test_the_reason_is_on_the_tab(see: Callable[[str], Seen]) -> None:
    seen = see("broken")
    playwright.expect(seen.tab.get_by_text("polars is <b>not</b> well").first).to_be_visible(
        timeout=PATIENCE_MS
    )
    assert seen.errors == []


def test_an_empty_folder_explains_itself(see: Callable[[str], Seen], boards: Boards) -> None:
    seen = see("empty")
    playwright.expect(seen.tab.get_by_text(str(boards.empty)).first).to_be_visible(timeout=PATIENCE_MS)
    assert seen.errors == []
