"""What counts as passed."""

from __future__ import annotations

import pytest

from tests.versions.__main__ import has_passed


@pytest.mark.parametrize(
    ("code", "line", "passed"),
    [
        (0, "42 passed in 50.1s", True),
        (0, "==== 42 passed, 3 warnings in 50.1s (0:00:50) ====", True),
        (1, "1 failed, 41 passed in 50.1s", False),
        (1, "42 passed in 50.1s", False),
        (0, "no tests ran in 0.01s", False),
        (0, "42 skipped in 0.01s", False),
        (0, "stepscope 0.1.0", False),
        (0, "", False),
    ],
)
def test_passed(code: int, line: str, passed: bool) -> None:
    assert has_passed(code, line) is passed
