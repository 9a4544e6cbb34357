"""Loading the folders of the corpus: ranks and runs as they are known to be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepscope.profiles.find.catalog import scan
from stepscope.profiles.load import load, load_run

CORPUS = os.environ.get("STEPSCOPE_CORPUS")
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(CORPUS is None, reason="STEPSCOPE_CORPUS is not set")]
ROOT = Path(CORPUS or ".")


def test_eight_ranks() -> None:
    profile = load(ROOT / "public" / "dlrm_8ranks")
    assert profile.ranks == list(range(8))
    assert profile.other_runs == []
    assert profile.table("traces")["rank"].to_list() == list(range(8))


def test_runs_side_by_side() -> None:
    runs = {run.name: [item.rank for item in run.entries] for run in scan(ROOT / "h200").runs}
    assert runs == {
        "resnet_input_bound.pt.trace.json.gz": [None],
        "gpt_bf16_eager.pt.trace.json.gz": [None],
        "dqn_launch_bound.pt.trace.json.gz": [None],
        "ddp_rank*.pt.trace.json.gz": [0, 1],
        "jax_gpu/plugins/profile/2026_11_14_23_49_41": [None],
        "jax_cupti_conflict/plugins/profile/2026_11_14_23_49_04": [None],
    }


def test_twins_and_event_files_are_skipped() -> None:
    reasons = {Path(item.path).name: item.reason for item in scan(ROOT).skipped}
    assert reasons == {
        "INDEX.md": "not a profile, by its name (.md)",
        "vm.trace.json.gz": "twin of vm.xplane.pb",
        "events.out.tfevents.1794699969.vm.12006.0.v2": "a TensorBoard event file without a profile (no RunMetadata)",
    }


def test_one_of_three_hundred_ranks() -> None:
    profile = load(ROOT / "public" / "gloo_rank34_cpu_only.pt.trace.json.gz")
    assert profile.ranks == [34]
    assert "missing-ranks" in profile.problems["code"]


@pytest.mark.parametrize("run", scan(ROOT).runs if CORPUS else [], ids=lambda run: str(run.name))
def test_every_run_opens_the_same_the_second_time(run: object) -> None:
    from stepscope.profiles.find.runs import Run

    assert isinstance(run, Run)
    load_run(run)
    first, second = load_run(run, cache=False), load_run(run)
    assert len(first.traces) == len(run.entries)
    for a, b in zip(first.traces, second.traces, strict=True):
        for name, table in a.tables.items():
            assert b.tables[name].equals(table), name
        for name, frame in a.cold.items():
            assert b.cold[name].equals(frame), name
