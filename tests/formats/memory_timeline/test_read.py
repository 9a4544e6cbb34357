"""Memory timelines: totals and kinds by a running sum, cut and odd files."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepscope.analysis.memory import recorded
from stepscope.errors import UnreadableFile
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace

REAL = Path(os.environ.get("STEPSCOPE_CORPUS_2", "/nonexistent")) / "memory" / "memory_timeline.raw.gz"
ROWS = [[-1, 1, 100, 0], [10, 2, 50, 4], [20, 3, -50, 4], [20, 3, 50, 5], [30, 4, -50, 5]]


def opened(rows: Any, folder: Path) -> Trace:
    """The trace of these rows."""
    path = folder / "memory.raw.json.gz"
    path.write_bytes(gzip.compress(json.dumps(rows).encode()))
    return read(Source(str(path)))


def test_rows_and_totals(tmp_path: Path) -> None:
    trace = opened(ROWS, tmp_path)
    assert trace.memory["total_allocated"].to_list() == [100, 150, 100, 150, 100]
    assert trace.memory["time_ns"].to_list() == [0, 0, 10, 10, 20]
    (found,) = recorded(trace)
    assert found.live_at(10, 150).select("kind", "bytes").rows() == [("parameter", 100), ("gradient", 50)]


def test_odd_rows_are_counted_and_cut_files_refused(tmp_path: Path) -> None:
    trace = opened([*ROWS, [40, 9, 1, 0]], tmp_path)
    assert trace.problems.select("code", "count").rows() == [("damaged-events", 1)]
    path = tmp_path / "cut.raw.json"
    path.write_text(json.dumps(ROWS)[:-9])
    with pytest.raises(UnreadableFile, match="cut or damaged"):
        read(Source(str(path)))


@pytest.mark.corpus
@pytest.mark.skipif(not REAL.exists(), reason="STEPSCOPE_CORPUS_2 has no memory timeline")
def test_a_real_one_equals_a_running_sum() -> None:
    rows = json.loads(gzip.decompress(REAL.read_bytes()))
    kinds: Counter[int] = Counter()
    total, peak, at_peak = 0, 0, {}
    for _, _, size, kind in rows:
        total += size
        kinds[kind] += size
        if total > peak:
            peak, at_peak = total, dict(kinds)
    (found,) = recorded(read(Source(str(REAL))))
    assert found.rows["allocated"].max() == peak
    at = int(found.rows["time_ns"][int(found.rows["allocated"].arg_max() or 0)])
    assert set(at_peak.values()) - {0} == set(found.live_at(at, peak)["bytes"])
