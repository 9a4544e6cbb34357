"""The report as a web page: it stands alone, is well formed, and runs nothing but our own script."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from stepscope.reports.figures.markup import Markup, tag
from stepscope.reports.model.report import Profile
from stepscope.reports.render.html import as_html, fragment
from stepscope.reports.report import Report
from stepscope.reports.tables.tables import ORDER
from tests.builders.reports import HOSTILE, KERNEL, report

VOID = {"meta", "input", "br", "hr", "img", "link"}


class Page(HTMLParser):
    """Collects what a page is made of, and complains where it is not well formed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_it_stands_alone() -> None:
    page = as_html(report())
    addresses = [
        value for _, attrs in Page(page).tags for key, value in attrs.items() if key in ("src", "href")
    ]
    assert all((address or "").startswith("#") for address in addresses)
    outside = set(re.findall(r"https?://[^\s\"'<>)]+", page))
    assert outside == {"http://www.w3.org/2000/svg"}  # a name, nothing to fetch
    assert "url(" not in page
    assert "@import" not in page


def test_its_title_says_what_it_is_of() -> None:
    assert "<title>job · node1 · 2 × NVIDIA H200 · 2026-11-15 02:06:28 UTC</title>" in as_html(report())


def test_only_our_script_may_run() -> None:
    page = as_html(report(hostile=HOSTILE))
    [script] = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#x27;sha256-{digest}&#x27;" in page
    assert "default-src &#x27;none&#x27;" in page


def test_names_cannot_become_markup() -> None:
    page = as_html(report(name=HOSTILE, hostile=HOSTILE))
    found = Page(page)
    names = [name for name, _ in found.tags]
    assert "img" not in names
    assert names.count("script") == 1
    assert not [attrs for _, attrs in found.tags if any(key.startswith("on") for key in attrs)]
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert any("onerror=alert(1)" in words for words in found.words)  # shown, not obeyed


def test_every_section_is_there() -> None:
    found = Page(as_html(report()))
    assert [attrs["id"] for name, attrs in found.tags if name == "section"] == list(ORDER)
    assert [attrs["href"] for name, attrs in found.tags if name == "a"] == [f"#{name}" for name in ORDER]


@pytest.mark.parametrize("section", ORDER)
def test_one_section(section: str) -> None:
    found = Page(as_html(report(), sections=[section]))
    assert [attrs["id"] for name, attrs in found.tags if name == "section"] == [section]


def test_problems_come_first() -> None:
    page = as_html(report())
    assert page.index('id="problems"') < page.index('id="findings"') < page.index('id="breakdown"')
    assert "Nothing is wrong with the capture." in as_html(Report(profile=Profile(path="x")))


def test_truncation_is_loud() -> None:
    assert "2 of 412 rows; <code>--limit 0</code> gives all." in as_html(report())


def test_full_names_are_kept() -> None:
    found = Page(as_html(report()))
    assert KERNEL in [attrs.get("title") for _, attrs in found.tags]
    assert "tile_kernel<Functor<float>, 4>" in found.words


def test_a_piece_for_notebooks() -> None:
    piece = fragment(report(hostile=HOSTILE))
    assert "<script" not in piece
    assert "<img" not in piece
    Page(piece)
    assert report()._repr_html_() == fragment(report())


def test_markup_is_escaped_once() -> None:
    assert (
        tag("p", "<&", Markup("<b>x</b>"), ["y", None], title='"')
        == '<p title="&quot;">&lt;&amp;<b>x</b>y</p>'
    )
    assert (
        tag("rect", x=1.0, y=2.345, class_="a", hidden=True, data_v=None)
        == '<rect x="1" y="2.35" class="a" hidden/>'
    )


def test_a_notebook_keeps_its_own_style() -> None:
    [style] = re.findall(r"<style>(.*?)</style>", fragment(report()), flags=re.DOTALL)
    bare = re.sub(r"/\*.*?\*/", "", style)
    selectors = [each.strip() for rule in re.findall(r"([^{}]+)\{[^{}]*\}", bare) for each in rule.split(",")]
    outside = [each for each in selectors if not each.startswith((".stepscope", "svg.alone", "svg.figure"))]
    assert outside == []
