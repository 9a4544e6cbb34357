"""`stepscope info` on every profile of the corpus says what INDEX.md knows to be true of it."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from stepscope.profiles.find.catalog import scan
from tests.cli.inside import succeeds
from tests.corpus.naive_json import categories
from tests.corpus.naive_xplane import decode as decode_xplane

CORPUS = os.environ.get("STEPSCOPE_CORPUS")
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(CORPUS is None, reason="STEPSCOPE_CORPUS is not set")]
ROOT = Path(CORPUS or ".")


@dataclass(frozen=True)
class Truth:
    """What is known of a profile: name and count of its devices, the numbers of its steps, how many events on devices."""

    framework: str
    devices: dict[str, int]
    steps: list[int]
    on_devices: int
    ranks: tuple[int, ...] = (0,)
    world_size: int | None = None


H200, CPU_ONLY = {"NVIDIA H200": 1}, dict[str, int]()
V100 = {"Tesla V100-DGXS-32GB": 4}
A100 = {"NVIDIA A100-PG509-200": 8}
# Events on devices were counted in the files: kernels, copies and fills.
TRUTHS = {
    "h200/resnet_input_bound.pt.trace.json.gz": Truth("pytorch", H200, [3, 4, 5, 6], 3720),
    "h200/dqn_launch_bound.pt.trace.json.gz": Truth("pytorch", H200, [*range(1, 21)], 2500),
    "h200/gpt_bf16_eager.pt.trace.json.gz": Truth("pytorch", H200, [1, 2, 3], 4899),
    "h200/ddp_rank*.pt.trace.json.gz": Truth("pytorch", H200, [1, 2, 3], 503, (0, 1), 2),
    "h200/jax_gpu/plugins/profile/2026_11_14_23_49_41": Truth("jax", H200, [*range(8)], 1536),
    "h200/jax_cupti_conflict/plugins/profile/2026_11_14_23_49_04": Truth("jax", CPU_ONLY, [*range(8)], 0),
    "tensorflow/custom_loop/plugins/profile/2026_11_14_23_46_09": Truth("tensorflow", CPU_ONLY, [*range(10)], 0),
    "tensorflow/keras_callback/train/plugins/profile/2026_11_14_23_46_12": Truth("tensorflow", CPU_ONLY, [*range(4, 15)], 0),
    "tensorflow/tf1_run_metadata/events.out.tfevents.1794703456.vm": Truth(
        "tensorflow", {"/job:localhost/replica:0/task:0/device:CPU:0": 1}, [1], 0
    ),
    "public/kineto_resnet50_workers0.pt.trace.json.gz": Truth("pytorch", V100, [*range(5, 11)], 9096),
    "public/kineto_resnet50_workers4.pt.trace.json.gz": Truth("pytorch", V100, [*range(5, 11)], 9258),
    "public/a100x2_nccl.json.gz": Truth("pytorch", A100, [4, 5, 6], 3774, world_size=2),
    "public/a100_triton.json.gz": Truth("pytorch", A100, [1], 1),
    "public/a100_event_sync.json.gz": Truth("pytorch", A100, [], 6),
    "public/mi250_toy.json.gz": Truth("pytorch", {"AMD Instinct MI250/MI210": 4}, [1, 2], 16),
    "public/dlrm_8ranks": Truth("pytorch", {"Tesla V100-SXM2-32GB": 8}, [10], 2244, tuple(range(8)), 8),
    "public/gloo_rank34_cpu_only.pt.trace.json.gz": Truth("pytorch", CPU_ONLY, [551], 0, (34,), 300),
}  # fmt: skip
ON_DEVICES = ("kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset")
each_profile = pytest.mark.parametrize("name", TRUTHS)


@cache
def info(name: str) -> dict[str, Any]:
    """What info says of the profile, as JSON."""
    found: dict[str, Any] = json.loads(succeeds("info", ROOT / name, "--format", "json"))
    return found


def test_no_profile_is_left_out() -> None:
    assert {run.name for run in scan(ROOT).runs} == TRUTHS.keys()


@each_profile
def test_devices_ranks_and_framework(name: str) -> None:
    found, truth = info(name), TRUTHS[name]
    assert found["framework"] == [truth.framework]
    assert {device["name"]: device["count"] for device in found["devices"]} == truth.devices
    assert tuple(rank["rank"] for rank in found["ranks"]) == truth.ranks
    assert found["world_size"] == truth.world_size
    assert found["device_events"] == truth.on_devices


@each_profile
def test_each_step_once(name: str) -> None:
    found, truth = info(name), TRUTHS[name]
    if not truth.steps:
        assert found["steps"] is None
        return
    assert (found["steps"]["count"], found["steps"]["first"], found["steps"]["last"]) == (
        len(truth.steps),
        truth.steps[0],
        truth.steps[-1],
    )
    assert [rank["steps"] for rank in found["ranks"]] == [len(truth.steps)] * len(truth.ranks)


def naive_categories(path: Path) -> Counter[str | None]:
    """Events by category, or by plane, counted by code that shares nothing with ours."""
    if path.name.endswith(".xplane.pb"):
        planes = decode_xplane(path.read_bytes()).planes
        return Counter({plane.name: sum(len(line.events) for line in plane.lines) for plane in planes})
    return categories(path)


@each_profile
def test_events_per_category(name: str) -> None:
    found = info(name)
    counted: Counter[str | None] = Counter()
    for rank in found["ranks"]:
        if "tfevents" in rank["path"]:
            pytest.skip("tests of the format count its nodes")
        counted += naive_categories(Path(rank["path"]))
    told: Counter[str | None] = Counter()
    for row in found["categories"]:
        told[row["category"] or None] += row["events"]
    del told["derived"]  # lines that XPlane leaves to its readers
    assert told == +counted
    if "pytorch" in found["framework"]:
        assert TRUTHS[name].on_devices == sum(counted[category] for category in ON_DEVICES)


def test_a_profile_that_looks_fine_and_is_not() -> None:
    text = succeeds("info", ROOT / "h200" / "jax_cupti_conflict")
    assert "0 of them on devices" in text
    assert "error   Work was launched on a device, but none of it was recorded" in text
