"""The tutorials show the scripts that are there, and one of them runs here; `make docs-test` runs all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.make_tutorials import PAGES, ROOT, blocks, run_page
from tests.capture.running import needs
from tests.sample import in_soak

SCRIPTS = ROOT / "examples" / "tutorials"
TUTORIALS = sorted(page for page in PAGES.glob("*.md") if page.stem != "index")


def test_every_pair_of_scripts_has_a_page() -> None:
    assert [page.stem for page in TUTORIALS] == sorted(each.name for each in SCRIPTS.iterdir())


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_change_that_a_page_shows_is_that_between_its_scripts(page: Path) -> None:
    shown = re.findall(r"^```diff\n(.*?)^```", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)[0]
    scripts = {
        sign: (SCRIPTS / page.stem / name).read_text("utf-8")
        for sign, name in (("-", "slow.py"), ("+", "fixed.py"))
    }
    changed = [line for line in shown.splitlines() if line[:1] in scripts]
    assert changed
    assert [line for line in changed if line[1:] not in scripts[line[0]].splitlines()] == []


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_page_records_reads_and_compares(page: Path) -> None:
    code = "".join(block.code for block in blocks(page))
    assert all(verb in code for verb in ("stepscope run", "stepscope report", "stepscope diff"))
    assert any(block.expected for block in blocks(page))


@pytest.mark.parametrize(
    "name",
    [pytest.param("pytorch", marks=needs("torch")), pytest.param("jax", marks=[needs("jax"), in_soak])],
)
def test_the_page_runs(name: str) -> None:
    assert list(run_page(PAGES / f"{name}.md"))
