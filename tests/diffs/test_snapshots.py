"""Two memory snapshots: what one holds and the other does not, by kind and function."""

from __future__ import annotations

from pathlib import Path

import stepscope
from tests.builders.snapshots import training


def test_what_is_kept_is_the_first_difference(tmp_path: Path) -> None:
    before = training(8).write(tmp_path / "before.pickle")
    after = training(8, leak=True).write(tmp_path / "after.pickle")
    diff = stepscope.diff(before, after)
    found = {row.name: row.difference for row in diff.memory}
    assert found["activations at train.py"] == 8 * 4 * (16 << 20)
    assert found["optimizer state at train.py"] == 0
    assert [line.title for line in diff.lines][:1] == ["activations at train.py"]
    assert diff.verdict.startswith("The peak memory of gpu 0 is 448 MiB higher: 320 MiB → 768 MiB.")
