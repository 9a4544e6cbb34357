"""Jobs with one planted bottleneck, recorded on a real GPU: it is found first, and its speed-up is near the measured one."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.diagnosis.score import RECORDED, Verdict, findings, jobs, judge, loud, recorded

PLANTED = {job["name"]: job for job in jobs() if not job["healthy"]}
HEALTHY = {job["name"]: job for job in jobs() if job["healthy"]}
FAR = {"torch_fp32_convolution"}  # cuDNN's fp32 convolutions gain more from tensor cores than products do


@cache
def verdict(name: str) -> Verdict:
    """Both variants are looked at once."""
    return judge(RECORDED, PLANTED[name])


@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_cause_comes_first_and_the_promise_is_near(name: str) -> None:
    found = verdict(name)
    assert found.first, found.line()
    assert found.near or name in FAR, found.line()
    assert found.slow[0].speedup <= found.slow[0].speedup_max + 0.001


@pytest.mark.parametrize("name", PLANTED)
def test_the_mended_job_does_not_get_the_finding(name: str) -> None:
    assert verdict(name).gone, [one.code for one in verdict(name).mended]


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_jobs_get_a_calm_report(name: str) -> None:
    found = loud(findings(recorded(RECORDED, HEALTHY[name], "mended")))
    assert not found, [(one.code, one.share) for one in found]


def test_there_are_enough_jobs_over_both_frameworks() -> None:
    assert len(PLANTED) >= 15 and len(HEALTHY) >= 10
    assert {name.partition("_")[0] for name in PLANTED} == {"torch", "jax"}
