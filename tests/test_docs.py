"""The documentation keeps up with the code: every table, column, problem, picture and page is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from stepscope.reports.tables.tables import ORDER
from stepscope.trace import schema
from tests.test_layout import LAYERS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def sections(page: str, level: str = "##") -> dict[str, str]:
    """The text below each heading of this level."""
    parts = re.split(rf"^{level} (.+)$", (DOCS / page).read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def first_column(text: str) -> list[str]:
    """What stands in backquotes in the first column of the section's tables."""
    return re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)


def anchor(heading: str) -> str:
    """The name that a heading can be linked by."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("table", schema.TABLES)
def test_every_column_is_documented(table: str) -> None:
    text = re.split(r"^### ", sections("tables.md")[table], flags=re.MULTILINE)[0]
    assert first_column(text) == list(schema.TABLES[table])


def test_no_other_table_is_documented() -> None:
    assert list(sections("tables.md")) == [*schema.TABLES, "Cookbook"]


def test_every_kind_role_and_reason_is_documented() -> None:
    page = (DOCS / "tables.md").read_text("utf-8")
    assert first_column(sections("tables.md", "###")["Kinds"].split("\n### ")[0]) == list(schema.KINDS)
    words = (
        *schema.ROLES,
        *schema.LINK_REASONS,
        *schema.DEVICE_KINDS,
        *schema.TRACK_USES,
        *schema.SEVERITIES,
    )
    assert [word for word in words if f"`{word}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text("utf-8")):
        path, _, heading = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if heading:
            headings = re.findall(r"^#+ (.+)$", linked.read_text("utf-8"), flags=re.MULTILINE)
            assert heading in map(anchor, headings), f"{page.name} links to {target}"


def test_every_page_is_reached_from_the_index() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    assert [
        page.name for page in DOCS.glob("*.md") if page.name != "index.md" and f"({page.name})" not in index
    ] == []


def test_every_page_of_a_folder_is_reached_from_its_index() -> None:
    for index in (
        DOCS / folder / "index.md" for folder in ("how-it-works", "page", "report", "capture", "tutorials")
    ):
        pages = {page.name for page in index.parent.glob("*.md")} - {"index.md"}
        text = index.read_text("utf-8")
        assert sorted(page for page in pages if f"({page}" not in text) == [], f"link these from {index}"


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    """`make docs` asks for that, too, where MkDocs is installed."""
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    names = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert [
        name for name in names if not re.search(rf"(^|\s){re.escape(name)}$", navigation, re.MULTILINE)
    ] == []


def test_every_page_of_the_browser_is_documented() -> None:
    """The *how?* beside a page's title opens docs/page/NAME.md."""
    entries = (ROOT / "src" / "stepscope" / "web" / "shell" / "pages.js").read_text("utf-8")
    names = re.findall(r'\{ name: "(\w+)"', entries)
    assert len(names) > 10
    assert [name for name in names if not (DOCS / "page" / f"{name}.md").exists()] == []


def test_the_layers_are_those_of_the_layout_test() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("## Layers")[1].split("\n## ")[0]
    assert first_column(table) == list(LAYERS)


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_paths_in_the_guides_exist(page: str) -> None:
    """Every `folder/file.py` that a guide names; NAME and * are placeholders."""
    homes = (ROOT, ROOT / "src", ROOT / "src" / "stepscope")
    named = re.findall(r"`([\w.]+(?:/[\w.-]+)+/?)`", (ROOT / page).read_text("utf-8"))
    paths = [path for path in named if "NAME" not in path and not path.startswith(".venv/")]
    assert len(paths) > 15
    assert [path for path in paths if not any((home / path).exists() for home in homes)] == []


def test_the_walk_in_contributing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## The walk of an event")[1]
    block = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[0]
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(block, names)  # our own file
    parts = names["context"].account.parts
    assert {"compute", "dispatch"} <= set(parts["part"])


def test_every_section_of_the_report_has_a_page() -> None:
    index = (DOCS / "report" / "index.md").read_text("utf-8")
    for section in set(ORDER) - {"problems"}:
        assert (DOCS / "report" / f"{section}.md").exists(), section
        assert f"({section}.md)" in index
