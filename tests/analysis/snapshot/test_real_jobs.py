"""Jobs on an H200 (PyTorch 2.11) with a planted cause: named first, at its line, with the bytes that the job measured itself."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from stepscope.analysis.snapshot.culprit import name_culprits
from stepscope.analysis.snapshot.explain import Explained, explain
from stepscope.formats import read
from stepscope.formats.source import Source

FOLDER = Path(__file__).parents[2] / "fixtures" / "out_of_memory"
TRUTH = json.loads((FOLDER / "truth.json").read_text("utf-8"))
BLIND = {
    "podcast_ctc": "fragmentation",
    "pointcloud_ae": "activation",
    "sage_nodes": "kept",
    "volume_seg": "activation",
}
FAILED = [name for name in TRUTH if not name.startswith("healthy") and name not in BLIND]
CAUSES = {
    "kept_outputs": "kept",
    "big_batch": "activation",
    "leaked_hidden": "kept",
    "fragmented": "fragmentation",
    "adam_state": "optimizer state",
    "teacher": "parameter",
    "cache_dict": "kept",
    "retained": "kept",
    "kv_cache": "growing",
    "kept_losses": "kept",
}


def explained(name: str) -> Explained:
    """The one device of the recording."""
    (found,) = explain(read(Source(str(FOLDER / f"{name}.pickle.gz"))))
    return found


@pytest.mark.parametrize("name", FAILED)
def test_the_planted_cause_comes_first(name: str) -> None:
    found = explained(name)
    culprit = name_culprits(found)[0]
    assert found.failed
    assert culprit.cause == CAUSES[name]
    # A cache of a model's results: the line that allocates them is in the model, the planted one calls it.
    assert culprit.where[name == "cache_dict"].line == TRUTH[name]["line"]
    assert culprit.bytes == pytest.approx(TRUTH[name]["bytes"], rel=0.002)
    if "line_bytes" in TRUTH[name]:  # the graph keeps its input too, which another line made
        assert found.kept[0].line_bytes == pytest.approx(TRUTH[name]["line_bytes"], rel=0.002)


@pytest.mark.parametrize("name", BLIND)
def test_jobs_by_somebody_who_did_not_know_the_rules(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.pickle"
    file.write_bytes(lzma.decompress((FOLDER / f"{name}.pickle.xz").read_bytes()))
    (found,) = explain(read(Source(str(file))))
    culprit = name_culprits(found)[0]
    assert culprit.cause == BLIND[name]
    assert culprit.where[0].line in TRUTH[name]["lines"]
    assert culprit.bytes == pytest.approx(TRUTH[name]["bytes"], rel=0.02)


@pytest.mark.parametrize("name", ["healthy_history", "healthy_expandable"])
def test_a_healthy_loop_is_explained(name: str) -> None:
    found, truth = explained(name), TRUTH[name]
    kinds = dict(found.by_kind.select("kind", "bytes").iter_rows())
    assert (found.kept, found.failed, found.allocated) == ([], False, truth["allocated"])
    assert found.fragments.reserved == truth["reserved"]
    assert kinds["parameter"] == truth["weights"]
    assert kinds["optimizer state"] == pytest.approx(truth["state_by_numel"], rel=0.001)


def test_without_history_nothing_is_claimed() -> None:
    found = explained("healthy_none")
    assert dict(found.by_kind.select("kind", "bytes").iter_rows()) == {"unknown": found.allocated}
