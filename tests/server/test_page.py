"""The page and its files: nothing inline, nothing from elsewhere, no path leads out."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from stepscope.server.http.static import TYPES, WEB
from tests.server.conftest import Asking

PAGES = sorted(WEB.rglob("*.html"))
FILES = sorted(path for path in WEB.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def test_the_token_is_in_the_page(asking: Asking) -> None:
    text = asking.get("index.html").get_data(as_text=True)
    assert f'<meta name="stepscope-token" content="{asking.app.settings.guard.page_token}">' in text
    assert asking.get("").get_data(as_text=True) == text
    assert asking.get("").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_no_inline_script(page: Path) -> None:
    text = page.read_text("utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)", text) == []
    assert re.findall(r"\son[a-z]+\s*=", text) == []
    assert "javascript:" not in text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_is_served_and_asks_no_other_host(asking: Asking, path: Path) -> None:
    if path.suffix not in TYPES:
        return
    answer = asking.get(f"web/{path.relative_to(WEB).as_posix()}")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == TYPES[path.suffix]
    if path.suffix in (".html", ".js", ".css"):
        urls = re.findall(r"https?://[^\s\"'`)]+", path.read_text("utf-8"))
        assert [url for url in urls if not url.startswith("http://www.w3.org/")] == []


@pytest.mark.parametrize(
    "path",
    [
        "web/../app.py", "web/..%2fapp.py", "web/%2e%2e/errors.py", "web//etc/passwd", "web/.", "web/", "web", "web/shell/../../errors.py",
        "web/shell\\main.js", "web/shell/main.js/", "web/shell/main.js%00", "web/.hidden.js", "web/a/b/c/d/e/f/g.js", "index.html/", "../pyproject.toml",
        "vendor/../web/index.html", "web/shell/%252e%252e/main.js", "web/package.py", "web/" + "a/" * 300,
    ],
)  # fmt: skip
def test_path_tricks(asking: Asking, path: str) -> None:
    answer = asking.get(path)
    assert answer.status_code in (404, 414)
    assert answer.get_json()["error"]["what"]


def test_a_file_is_sent_once(asking: Asking) -> None:
    first = asking.get("web/shell/main.js")
    again = asking.get("web/shell/main.js", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304
    assert again.data == b""


def test_plotly_comes_from_the_installed_package_and_is_packed(asking: Asking) -> None:
    pytest.importorskip("plotly")
    answer = asking.get("vendor/plotly.min.js", headers={"Accept-Encoding": "gzip"})
    assert answer.status_code == 200
    assert answer.headers["Content-Encoding"] == "gzip"
    assert b"plotly.js" in gzip.decompress(answer.data)[:200]


def test_a_prefix_changes_nothing(asking: Asking) -> None:
    answer = asking.client.get("/api/state", base_url="http://localhost/behind/a/proxy")
    assert answer.status_code == 200


def test_a_prefix_without_its_slash_leads_to_the_page(asking: Asking) -> None:
    """As people type it: without the slash the page would look for its files beside the prefix."""
    below = {"SCRIPT_NAME": "/my/prefix", "PATH_INFO": ""}
    answer = asking.client.get("/", environ_overrides=below, query_string={"token": "a b"})
    assert answer.status_code == 302
    assert answer.headers["Location"] == "prefix/?token=a+b"
    answer = asking.client.get("/", environ_overrides={**below, "PATH_INFO": "/"})
    assert answer.status_code == 200
