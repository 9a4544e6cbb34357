"""Real processes that train together, recorded by our capture, one of them slowed on purpose: it is named, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from tests.capture.running import PATIENCE_SECONDS, in_soak, needs, start

JOB = Path(__file__).parent / "jobs" / "ddp_job.py"
WORLD, LATE = 4, 2


@needs("torch")
@pytest.mark.parametrize("how", ["input", pytest.param("python", marks=in_soak)])
def test_torch_over_gloo(tmp_path: Path, how: str) -> None:
    out, init = tmp_path / "run", tmp_path / "init"
    processes = [
        start(JOB, out, init, rank, WORLD, LATE, how, RANK=str(rank), WORLD_SIZE=str(WORLD))
        for rank in range(WORLD)
    ]
    for process in processes:
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, err[-2000:]
    report = stepscope.report(out, sections=["steps", "collectives", "findings"])
    assert report.profile.ranks == list(range(WORLD))
    late = report.collectives.straggler
    assert late is not None and (late.rank, late.kind) == (LATE, "always")
    assert late.cause == how
    assert "straggler" in [finding.code for finding in report.findings]
