"""One server and one browser for all tests here; every page is watched for errors and for requests to other hosts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.browser.chromium import chromium
from tests.browser.profiles import lay_out
from tests.browser.serving import Served, serving
from tests.browser.slowly import late, slow_down
from tests.patience import PATIENCE_S, tries

playwright = pytest.importorskip("playwright.sync_api")

PATIENCE_MS = 1000 * PATIENCE_S
# The page says which address it has drawn: right after a click, and after goto, that is still the one before.
DRAWN = """(() => {
  const view = document.getElementById("view");
  const waiting = "[aria-busy=true], .loading, .of.busy, .wait, .figure:not([data-drawn]):has(> .plot)";
  return view?.dataset.link === location.hash && !document.querySelector(waiting);
})()"""
NO_BROWSER = (
    "NO BROWSER: the tests of the page are skipped. Install Chromium, or name one in STEPSCOPE_CHROMIUM."
)


@dataclass(frozen=True)
class Site:
    """A running server over a folder, with its runs by the folders that they are in."""

    served: Served
    folder: Path
    ids: dict[str, str]

    @property
    def url(self) -> str:
        """Where it is."""
        return self.served.url

    def get(self, path: str) -> Any:
        """JSON of the server."""
        return self.served.get(path)

    def run(self, folder: str) -> str:
        """The id of the run below this folder."""
        return self.ids[folder]

    def link(self, page: str, folder: str | None = None, **params: object) -> str:
        """A deep link."""
        pairs = ([("run", self.run(folder))] if folder else []) + [(k, str(v)) for k, v in params.items()]
        query = "&".join(f"{key}={value}" for key, value in pairs)
        return f"{self.url}#/{page}" + (f"?{query}" if query else "")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`stepscope serve` over profiles of every format."""
    if chromium() is None:
        warnings.warn(NO_BROWSER, stacklevel=1)
        pytest.skip(NO_BROWSER)
    folder = lay_out(tmp_path_factory.mktemp("profiles"))
    with serving(folder) as served:
        wanted = {path.name for path in folder.iterdir()}
        ids = served.runs(lambda found: wanted <= found.keys())
        with late(served.url) as url:
            yield Site(replace(served, url=url), folder, ids)


@pytest.fixture(scope="session")
def _page(site: Site, browser: Any) -> Iterator[Any]:
    """One page for all tests, since Plotly alone takes a second to read."""
    playwright.expect.set_options(timeout=PATIENCE_MS)
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    site.served.sign_in(page)
    slow_down(page)
    yield page
    context.close()


@dataclass
class Watched:
    """What a page complained about, and whom it asked."""

    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    expected: list[str] = field(default_factory=list)  # pieces of errors that a test provokes

    def unexpected(self) -> list[str]:
        """All other errors."""
        return [error for error in self.errors if not any(piece in error for piece in self.expected)]


@pytest.fixture
def watched() -> Watched:
    """For tests that provoke errors."""
    return Watched()


@pytest.fixture
def page(_page: Any, site: Site, watched: Watched) -> Iterator[Any]:
    """The page of all tests; in each it must have no errors and ask no one else."""
    listeners: dict[str, Callable[[Any], object]] = {
        "console": lambda note: watched.errors.append(note.text) if note.type == "error" else None,
        "pageerror": lambda error: watched.errors.append(f"{error.name}: {error.message}"),
        "request": lambda request: watched.hosts.add(urlsplit(request.url).netloc),
    }
    for event, listener in listeners.items():
        _page.on(event, listener)
    yield _page
    for event, listener in listeners.items():
        _page.remove_listener(event, listener)
    _page.unroute_all()
    if watched.expected:
        _page.goto("about:blank")  # what still fails would be told to the next test
    elif _page.locator("dialog").count():
        _page.keyboard.press("Escape")
    assert watched.unexpected() == []
    assert watched.hosts <= {urlsplit(site.url).netloc, ""}, "no request to another host"


@pytest.fixture
def show(page: Any, site: Site) -> Callable[..., Any]:
    """Opens a deep link and waits until the page has drawn itself."""

    def opened(name: str, folder: str | None = None, **params: object) -> Any:
        link = site.link(name, folder, **params)
        if page.url == link:
            page.goto(site.link("runs"))
            settle(page)
        page.goto(link)
        settle(page)
        return page

    return opened


def until(page: Any, question: str, what: str = "") -> Any:
    """Ask the page until the answer is true; its own waiting would need eval, which the page forbids."""
    for _ in tries():
        found = page.evaluate(question)
        if found:
            return found
    raise AssertionError(what or f"never true: {question}")


def settle(page: Any) -> None:
    """Wait until what is in the address is drawn: the view, its tables and its figures."""
    until(page, DRAWN, "the page has not drawn what is in its address")
