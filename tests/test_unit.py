"""`make unit` leaves out what starts other programs, wherever it is imported, and what is marked as thorough."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import unit

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "slow"),
    [
        ("analysis/steps/test_infer.py", False),
        ("reports/test_promises.py", False),
        ("cli/test_info.py", True),  # through tests/cli/run.py
        ("cluster/test_cluster.py", True),
        ("browser/test_pages.py", True),
        ("capture/test_loop.py", True),
    ],
)
def test_imports_decide(name: str, slow: bool) -> None:
    assert unit.is_slow(HERE / name) == slow


def test_imports_of_helpers_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "helper.py").write_text("def run():\n    import subprocess\n")
    for number, text in enumerate(
        ["from tests.helper import run\n", "from tests import helper\n", "import json\n"]
    ):
        (tmp_path / "tests" / f"test_{number}.py").write_text(text)
    found = [unit.is_slow(tmp_path / "tests" / f"test_{number}.py") for number in range(3)]
    assert found == [True, True, False]
