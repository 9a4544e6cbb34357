"""Runs have the name of their job, not that of a file."""

from __future__ import annotations

import pytest

from stepscope.server.runs.titles import job_of


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("kineto_gpu/tiny_gpt.pt.trace.json.gz", "kineto_gpu/tiny_gpt"),
        ("bert/plugins/profile/2026_11_15_02_05_58", "bert"),
        ("plugins/profile/2026_11_15_02_05_58", "logs"),
        ("vm_31337.1700000000000.pt.trace.json.gz", "vm"),
        ("exp_3/vm_31337.1700000000000000000.pt.trace.json", "exp_3/vm"),
        ("tf/events.out.tfevents.1794707819.vm", "tf"),
        ("resnet_50.pt.trace.json", "resnet_50"),
        ("", "logs"),
        ("<script>.json", "<script>"),
    ],
)
def test_job(name: str, job: str) -> None:
    assert job_of(name, "/data/logs/") == job


def test_runs_of_one_job_share_its_name() -> None:
    names = [f"bert/plugins/profile/2026_11_{day}_02_05_58" for day in (14, 15)]
    assert len({job_of(name, "/logs") for name in names}) == 1


def test_long_names_are_cut_in_the_middle() -> None:
    found = job_of("a" * 300 + "/end.json", "")
    assert len(found) == 80 and found.endswith("/end")
