"""The built documentation is searched without a server and without a network. `make docs` builds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import PATIENCE_MS

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "site" / "index.html"


@pytest.mark.skipif(not INDEX.exists(), reason="the site is not built: make docs")
def test_search_works_from_a_file(browser: Any) -> None:
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(INDEX.as_uri())
    page.fill("[data-md-component=search-query]", "straggler")
    # The index is read first, which takes its time on a busy machine.
    page.wait_for_selector(".md-search-result__item a[href*=glossary]", timeout=PATIENCE_MS)
    assert [url for url in requests if not url.startswith(("file:", "data:", "about:", "blob:"))] == []
    page.close()
