"""A real recording of rocprofv3: counts and sums equal `json.load`."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from stepscope.formats import read
from stepscope.formats.source import Source

FILE = Path(os.environ.get("STEPSCOPE_CORPUS_2", "/nonexistent")) / "rocm" / "rocprofv3_908.json.gz"


@pytest.mark.corpus
@pytest.mark.skipif(not FILE.is_file(), reason="STEPSCOPE_CORPUS_2 has no recording of rocprofv3")
def test_kernels_by_name() -> None:
    (tool,) = json.loads(gzip.decompress(FILE.read_bytes()))["rocprofiler-sdk-tool"]
    names = {each["kernel_id"]: each["formatted_kernel_name"] for each in tool["kernel_symbols"]}
    counts: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    for each in tool["buffer_records"]["kernel_dispatch"]:
        name = names[each["dispatch_info"]["kernel_id"]].removesuffix(".kd")
        counts[name] += 1
        sums[name] += each["end_timestamp"] - each["start_timestamp"]
    trace = read(Source(str(FILE)))
    mine = trace.events.group_by(pl.col("name").cast(pl.String)).agg(pl.len(), pl.col("dur_ns").sum())
    assert {name: (count, total) for name, count, total in mine.rows()} == {
        name: (counts[name], sums[name]) for name in counts
    }
