"""The slow stage in a DataLoader's worker processes is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.capture.jobs import warm
from tests.capture.running import needs
from tests.patience import measured


@needs("torch")
def test_the_slow_stage_of_the_workers_is_named(tmp_path: Path) -> None:
    measured(lambda number: check(warm.told("torch", "workers_job", tmp_path / str(number))))


def check(found: dict[str, Any]) -> None:
    assert found["kept"]
    assert [worker["worker"] for worker in found["note"]["workers"]] == [0, 1]
    assert sum(worker["batches"] for worker in found["note"]["workers"]) >= 8
    assert all(worker["fetch_ns"] > worker["collate_ns"] > 0 for worker in found["note"]["workers"])
    of_workers = [row for row in found["stages"] if row[0].startswith("worker: ")]
    assert of_workers[0][0].endswith(": augment")
    assert "was not recorded" not in found["verdict"]
