"""The queries of the documentation, the page and the Makefile run, and find something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.profiles.load import load
from tests.profiles.sql.asking import Asking

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "src" / "stepscope" / "samples" / "tiny_gpt.pt.trace.json.gz"
COOKBOOK = (ROOT / "docs" / "tables.md").read_text("utf-8").partition("## Cookbook")[2]
RECIPES = re.findall(r"\*\*(.+?)\*\*.*?```sql\n(.+?)```", COOKBOOK, flags=re.DOTALL)
PAGE = (ROOT / "src" / "stepscope" / "web" / "pages" / "sql.js").read_text("utf-8")
EXAMPLES = [text.replace("\\n", "\n") for text in re.findall(r'"(SELECT .+?)"', PAGE)]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8").partition("DEVICE_TIME := ")[2].replace("\\\n", "")


@pytest.fixture(scope="module")
def asking() -> Iterator[Asking]:
    made = Asking(load(SAMPLE))
    yield made
    made.close()


def test_there_are_ten_recipes() -> None:
    assert len(RECIPES) == 10
    assert sum("ASOF" in sql for _, sql in RECIPES) >= 2


@pytest.mark.parametrize("sql", [sql for _, sql in RECIPES], ids=[title for title, _ in RECIPES])
def test_recipes_find_something(asking: Asking, sql: str) -> None:
    found = asking.frame(sql)
    assert len(found) > 0
    assert any(values.null_count() < len(values) for values in found)


@pytest.mark.parametrize("sql", [*EXAMPLES, MAKEFILE.splitlines()[0]])
def test_examples_find_something(asking: Asking, sql: str) -> None:
    assert len(asking.frame(sql)) > 0
