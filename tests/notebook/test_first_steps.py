"""The notebook of the documentation, executed cell by cell in a real IPython shell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("IPython")
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from stepscope.notebook import serving

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "notebooks" / "first_steps.ipynb"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    yield InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    serving.stop()
    InteractiveShell.clear_instance()


def read_cells() -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_every_cell_runs(shell: Any) -> None:
    shown = []
    for cell in read_cells():
        with capture_output() as said:
            result = shell.run_cell("".join(cell["source"]))
        assert result.success, f"{cell['source']}: {said.stdout}"
        assert "Error" not in said.stdout
        drawn = getattr(result.result, "_repr_html_", str)()
        shown.append(said.stdout + drawn)
    assert any("ms per step" in text for text in shown)
    assert any(
        "step" in text and "→" in text for text in shown
    )  # faster, unless the machine is too busy to be sure
    assert any("<iframe" in text for text in shown)


def test_it_is_kept_without_outputs() -> None:
    """They would show the figures of one machine, and change with every run."""
    assert [cell["id"] for cell in read_cells() if cell["outputs"] or cell["execution_count"]] == []
