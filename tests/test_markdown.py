"""Generated parts of the documentation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.markdown import write_page
from stepscope.reports.render.json import schema_text


def test_a_page_goes_to_the_named_file_or_to_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_page("# Häuser\n", [str(tmp_path / "page.md")])
    assert (tmp_path / "page.md").read_text("utf-8") == "# Häuser\n"
    assert capsys.readouterr().out == ""
    write_page("# Häuser\n", [])
    assert capsys.readouterr().out == "# Häuser\n"


def test_a_generator_takes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    subprocess.run([sys.executable, "-m", "stepscope.reports.render.json", str(path)], check=True)
    assert path.read_text("utf-8") == schema_text()
