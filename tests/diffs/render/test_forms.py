"""A diff as text, Markdown and a web page says the same; names out of a profile stay names."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from stepscope.diffs.build import Diff
from stepscope.diffs.data.model import Diff as Plain
from stepscope.diffs.data.model import Flame, FlameNode, Line, Row, Rows, Run
from stepscope.diffs.render.html import as_html
from stepscope.diffs.render.markdown import as_markdown
from stepscope.diffs.render.text import as_text
from tests.diffs.recordings import path_of

NASTY = '<script>alert("x")</script>|\x1b[31m@all`'


@pytest.fixture(scope="module")
def nasty() -> Plain:
    row = Row(name=NASTY, a=1e6, b=2e6, difference=1e6, relative=1.0, noise=1e4, significant=True)
    return Plain(
        a=Run(path="a", name=NASTY),
        b=Run(path="b"),
        verdict="The step is slower.",
        significant=True,
        step=row,
        lines=[Line(title=NASTY, kind="op", difference=1e6, detail=NASTY)],
        not_comparable=[NASTY],
        parts=[row],
        ops=Rows(total=300, significant=1, rows=[row]),
        flame=Flame(names=[NASTY], nodes=[FlameNode(-1, 0, 1e6, 2e6, 1e6, 2e6)]),
    )


def test_nothing_acts(nasty: Plain) -> None:
    page, text, markdown = as_html(nasty), as_text(nasty), as_markdown(nasty)
    assert "<script>alert" not in page
    assert "Content-Security-Policy" in page
    assert "\x1b" not in page + text + markdown
    assert "| 1 | \\<script\\>alert" in markdown


def test_all_say_the_same(nasty: Plain) -> None:
    for form in (as_html(nasty), as_text(nasty), as_markdown(nasty)):
        assert "+1.00 ms" in form
        assert "1 of 300 rows" in form


def test_public_function(tmp_path: Path) -> None:
    paths = [path_of(f"torch_pageable.{name}") for name in ("mended", "slow")]
    found: Diff = stepscope.diff(*paths)
    assert found.lines[0].kind == "copy"
    assert "copying: Memcpy HtoD" in str(found)
    assert "verdict" in found._repr_html_()
    for name in ("d.html", "d.md", "d.txt"):
        found.save(tmp_path / name)
        assert "Memcpy HtoD" in (tmp_path / name).read_text("utf-8")
    assert "<svg" in (tmp_path / "d.html").read_text("utf-8")
