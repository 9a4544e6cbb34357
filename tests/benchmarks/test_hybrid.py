"""The public what-if set, where the corpus has it: our replay against the published answers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.ranks.hybrid.replay import answer

FOLDER = Path(os.environ.get("STEPSCOPE_CORPUS_2", "/nonexistent")) / "hybrid"
JOBS = sorted(path.stem for path in FOLDER.glob("*.parquet"))

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not JOBS, reason="STEPSCOPE_CORPUS_2 has no hybrid-parallel jobs"),
]


@pytest.mark.parametrize("job", JOBS)
def test_times_and_shares_are_the_published_ones(job: str) -> None:
    found = answer(FOLDER / f"{job}.parquet")
    workers, stage = (json.loads((FOLDER / f"{name}-{job}.json").read_text()) for name in ("mw", "ms"))
    assert found.tori == pytest.approx(workers["tori"], rel=0.001)
    assert found.tideal == pytest.approx(workers["tideal"], rel=0.001)
    assert found.Mw == pytest.approx(workers["Mw"], abs=0.001)
    assert found.Ms == pytest.approx(stage["Ms"], abs=0.001)
