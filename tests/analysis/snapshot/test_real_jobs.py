"""Jobs on an H200 (PyTorch 2.11) with a planted cause: named first, at its line, with the bytes that the job measured itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.analysis.snapshot.culprit import name_culprits
from stepscope.analysis.snapshot.explain import Explained, explain
from stepscope.formats import read
from stepscope.formats.source import Source

FOLDER = Path(__file__).parents[2] / "fixtures" / "out_of_memory"
TRUTH = json.loads((FOLDER / "truth.json").read_text("utf-8"))
FAILED = [name for name in TRUTH if not name.startswith("healthy")]
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
    assert culprit.where[0].line == TRUTH[name]["line"]
    assert culprit.bytes == pytest.approx(TRUTH[name]["bytes"], rel=0.001)


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
