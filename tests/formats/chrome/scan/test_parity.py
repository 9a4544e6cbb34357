"""The scanner and the slow way read the same tables from the same files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from stepscope.formats.chrome.scan.interpreted import scan_slow
from stepscope.formats.chrome.scan.parallel import scan
from stepscope.formats.source import Source
from tests.builders.recordings import recordings

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("path", recordings("*.json.gz"), ids=lambda path: path.name)
def test_slow_way_reads_the_same_tables(path: Path) -> None:
    fast = scan(Source(str(path)), lambda _: None)
    slow = scan_slow(gzip.decompress(path.read_bytes()))
    assert slow is not None
    assert slow.tracks == fast.tracks
    assert slow.metadata == fast.metadata
    assert slow.header == fast.header
    assert_frame_equal(slow.events, fast.events)
    assert_frame_equal(slow.flows, fast.flows)
    assert_frame_equal(slow.asyncs, fast.asyncs)
    assert_frame_equal(slow.rest, fast.rest)
    for name, layout in fast.layouts.items():
        assert_frame_equal(slow.layouts[name], layout)
