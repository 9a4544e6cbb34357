"""Profiles of the corpus (every one in the soak, otherwise one of each kind), exported as `stepscope export --to chrome` does and opened again: the same tables."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from stepscope.profiles import export
from stepscope.profiles.find.catalog import scan
from stepscope.profiles.find.runs import Run
from stepscope.profiles.load import load, load_run
from stepscope.trace.schema import TABLES
from tests.cli.inside import stepscope
from tests.formats.own_export.test_write import check_arguments, dropped_by_perfetto
from tests.sample import of_each

CORPUS = os.environ.get("STEPSCOPE_CORPUS")
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(CORPUS is None, reason="STEPSCOPE_CORPUS is not set")]
RUNS = scan(CORPUS).runs if CORPUS else []


def kind(run: Run) -> tuple[bool, str, bool]:
    """TensorFlow's or others', the ending of its files, one rank or several."""
    ending = "".join(Path(run.entries[0].path).suffixes[-2:])
    return str(run.name).startswith("tensorflow"), ending, len(run.entries) > 1


SAMPLED = of_each(RUNS, kind, name=lambda run: str(run.name))


@pytest.mark.parametrize("run", SAMPLED, ids=lambda run: str(run.name))
def test_the_same_tables_come_back(run: Run, tmp_path: Path) -> None:
    before = load_run(run)
    written = export.chrome(before, tmp_path / ("out" if len(before.traces) > 1 else "out.json.gz"))
    for file in [written] if written.is_file() else written.iterdir():
        assert dropped_by_perfetto(json.loads(gzip.decompress(file.read_bytes()))) == []
    after = load(written)
    assert after.ranks == before.ranks
    for one, other in zip(before.traces, after.traces, strict=True):
        check_arguments(one, other)
    for name in TABLES:
        mine, theirs = (profile.table(name).drop("path", strict=False) for profile in (before, after))
        assert mine.schema == theirs.schema
        assert_frame_equal(mine, theirs, check_exact=True)


def test_nothing_is_known_by_the_path_alone(tmp_path: Path) -> None:
    """The export lies elsewhere under another name, and still tells its rank and its host."""
    source = Path(CORPUS or "") / "public" / "gloo_rank34_cpu_only.pt.trace.json.gz"
    assert stepscope("export", source, "--to", "chrome", "-o", tmp_path / "out.json").returncode == 0
    again = load(tmp_path / "out.json")
    assert again.ranks == [34]
    assert again.table("traces").select(pl.col("path")).item() == str(tmp_path / "out.json")
