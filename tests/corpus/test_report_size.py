"""The short report of every profile of the corpora: one screen, in words that people use."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from stepscope.errors import StepscopeError
from stepscope.profiles.find.catalog import scan
from stepscope.reports.render.brief import brief_lines
from stepscope.reports.render.html import as_html
from stepscope.reports.render.markdown import as_markdown, text
from tests.reports.corpus import report_once

FOLDERS = [
    Path(os.environ[name]) for name in ("STEPSCOPE_CORPUS", "STEPSCOPE_CORPUS_2") if os.environ.get(name)
]
RUNS = sorted(str(folder / run.name) for folder in FOLDERS for run in scan(folder).runs)
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not RUNS, reason="no corpus")]
LINES, WIDTH = 25, 100
ODD = re.compile(r"<built-in|object at 0x|worth changing|_ZN|\$\w+\.py")


@pytest.mark.parametrize("path", RUNS)
def test_one_screen(path: str) -> None:
    try:
        found = report_once(path)
    except StepscopeError:
        pytest.skip("not read yet")
    lines = [line.plain for line in brief_lines(found, WIDTH)]
    assert len(lines) <= LINES
    assert [line for line in lines if len(line) > WIDTH] == []
    assert [line for line in lines if ODD.search(line)] == []
    assert found.sentence in " ".join(" ".join(lines).split())
    assert text(found.sentence) in as_markdown(found)
    assert found.sentence in as_html(found).replace("&lt;", "<").replace("&amp;", "&").replace("&#x27;", "'")
