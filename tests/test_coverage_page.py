"""Each test that docs/coverage.md names exists, and each row names one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = [
    line
    for line in (ROOT / "docs" / "coverage.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| expected")
]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")


def test_there_are_rows() -> None:
    assert len(ROWS) >= 21


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_a_row_names_tests_that_exist(row: str) -> None:
    found = NAMED.findall(row.split("|")[3])
    assert found, "no test is named"
    for path, name in found:
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        tests = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert not name or name in tests, f"{path} has no {name}"
        assert any(test.startswith("test_") for test in tests), f"{path} has no tests"
