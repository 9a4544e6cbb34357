"""The built documentation is searched without a server and without a network. `make docs` builds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import until
from tests.patience import tries

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "site" / "index.html"


@pytest.mark.skipif(not INDEX.exists(), reason="the site is not built: make docs")
def test_search_works_from_a_file(browser: Any) -> None:
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(INDEX.as_uri())
    found = page.locator(".md-search-result__item a[href*=glossary]").first
    until(page, "document.readyState === 'complete'")
    for _ in tries():
        # What is typed before the index has been read may go unheard.
        page.fill("[data-md-component=search-query]", "")
        page.type("[data-md-component=search-query]", "straggler")
        page.wait_for_timeout(1_000)
        if found.count():
            break
    assert found.count()
    assert [url for url in requests if not url.startswith(("file:", "data:", "about:", "blob:"))] == []
    page.close()
