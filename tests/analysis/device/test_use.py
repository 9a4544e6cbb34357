"""Use of the device: busy time, concurrency, queue, copies, peaks."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.account.account import account
from stepscope.analysis.device.launch_queue import launch_queue
from stepscope.analysis.device.use import DeviceUse, device_use
from stepscope.analysis.kernels.calls import kernel_calls
from stepscope.analysis.kernels.device_peaks import peaks
from stepscope.analysis.steps.find import find_steps
from tests.builders.gpu_trace import H200, gpu_trace

STEP = "host | 0 | 1000 | annotation | ProfilerStep#1\n"


def use(table: str, **facts: Any) -> DeviceUse:
    """The use of the device in the steps of a table."""
    trace = gpu_trace(table, **facts)
    steps = find_steps(trace)
    return device_use(trace, steps, account(trace, steps), kernel_calls(trace))


def test_busy_share_and_concurrency() -> None:
    """Two kernels overlap for 100 of the 400 ns in which any runs; a copy makes the device busy too."""
    found = use(
        STEP
        + """
        host      |  10 |  10 | runtime | cudaLaunchKernel -> 4
        host      |  30 |  10 | runtime | cudaLaunchKernel -> 5
        host      |  50 |  10 | runtime | cudaMemcpyAsync -> 6
        stream 7  | 100 | 300 | kernel  | a
        stream 13 | 300 | 200 | kernel  | b
        stream 7  | 600 | 100 | copy    | Memcpy HtoD
        """
    )
    assert found.window_ns == 1000
    assert found.busy_share == pytest.approx(0.5)
    assert found.concurrency == pytest.approx(500 / 400)
    assert found.streams == 2
    assert found.sm_efficiency is found.occupancy is None


def test_sm_efficiency() -> None:
    """Half the SMs for 200 ns, then both kernels at once, which fill them, for 100 ns."""
    half = {"grid": [66, 1, 1], "block": [1024, 1, 1], "registers": 16, "shared_bytes": 0}
    found = use(
        STEP
        + """
        host      |  10 |  10 | runtime | cudaLaunchKernel -> 3
        host      |  30 |  10 | runtime | cudaLaunchKernel -> 4
        stream 7  | 100 | 300 | kernel  | a
        stream 13 | 300 | 100 | kernel  | b
        """,
        kernels={3: half, 4: half | {"grid": [660, 1, 1]}},
    )
    assert found.sm_efficiency == pytest.approx((200 * 0.5 + 100 * 1.0) / 1000)
    assert found.occupancy == pytest.approx((300 * 0.25 + 100 * 1.0) / 400)


def test_timeline_adds_up() -> None:
    """At most 200 pieces, whose busy time is that of the device."""
    found = use(STEP + "host | 10 | 10 | runtime | launch -> 2\nstream 7 | 101 | 333 | kernel | a\n")
    line = found.timeline
    assert len(line) == 200
    assert (line["busy"] * (line["end_ns"] - line["start_ns"])).sum() == pytest.approx(333)
    assert line["busy"].min() == 0
    assert line["busy"].max() == 1


def test_queue() -> None:
    """The third launch finds the first kernel still running and the second waiting."""
    trace = gpu_trace(
        STEP
        + """
        host     |  10 | 10 | runtime | cudaLaunchKernel -> 4
        host     |  30 | 10 | runtime | cudaLaunchKernel -> 5
        host     |  50 | 10 | runtime | cudaGraphLaunch -> 6,7
        stream 7 |  25 | 75 | kernel  | a
        stream 7 | 100 | 50 | kernel  | b
        stream 7 | 150 | 50 | kernel  | node 1
        stream 7 | 200 | 50 | kernel  | node 2
        """
    )
    found = launch_queue(trace)
    assert found.launches == 3
    assert (found.median_depth, found.max_depth) == (1.0, 2)
    assert found.empty_share == pytest.approx(1 / 3)
    assert (found.median_delay_ns, found.p90_delay_ns) == (60, 90)


def test_copies() -> None:
    """By direction and memory; the part of a copy under a kernel is not exposed."""
    found = use(
        STEP
        + """
        host      |  10 |  10 | runtime | cudaMemcpyAsync -> 4
        host      |  30 |  10 | runtime | cudaMemcpyAsync -> 5
        host      |  50 |  10 | runtime | cudaLaunchKernel -> 6
        stream 13 | 100 | 100 | copy    | Memcpy HtoD (Pinned -> Device)
        stream 13 | 200 | 100 | copy    | Memcpy HtoD (Pinned -> Device)
        stream 7  | 150 | 100 | kernel  | a
        """.replace("(Pinned -> Device)", ""),
        copies={
            4: {"bytes": 1000, "direction": "HtoD", "source": "Pinned", "target": "Device"},
            5: {"bytes": 3000, "direction": "HtoD", "source": "Pinned", "target": "Device"},
        },
    ).copies.to_dicts()
    assert found == [
        {
            "direction": "HtoD",
            "source": "pinned",
            "target": "device",
            "calls": 2,
            "bytes": 4000,
            "total_ns": 200,
            "exposed_ns": 100,
            "gb_per_s": 20.0,
        }
    ]


def test_no_device() -> None:
    """A profile of the host alone has no figures, not zeros."""
    found = use(STEP + "host | 10 | 10 | op | aten::add\n", device={})
    assert found.busy_share is None
    assert found.queue.launches == 0
    assert found.queue.empty_share is None


@pytest.mark.parametrize(
    ("name", "gib", "expected"),
    [
        ("NVIDIA H200", 139, "H200 SXM"),
        ("NVIDIA H100 80GB HBM3", 79, "H100 SXM"),
        ("NVIDIA H100 PCIe", 79, "H100 PCIe"),
        ("NVIDIA H100 NVL", 93, "H100 NVL"),
        ("NVIDIA H20", 95, "H20"),
        ("NVIDIA GH200 480GB", 95, "GH200"),
        ("NVIDIA B200", 178, "B200"),
        ("NVIDIA GB200", 184, "GB200"),
        ("NVIDIA A100-SXM4-80GB", 79, "A100 80 GB"),
        ("NVIDIA A100-SXM4-40GB", 39, "A100 40 GB"),
        ("NVIDIA A100-PG509-200", 39, "A100 40 GB"),
        ("Tesla V100-DGXS-32GB", 31, "V100 SXM2"),
        ("Tesla T4", 15, "T4"),
        ("NVIDIA A10G", 22, "A10G"),
        ("NVIDIA L4", 22, "L4"),
        ("NVIDIA L40S", 44, "L40S"),
        ("NVIDIA GeForce RTX 4090", 23, "RTX 4090"),
        ("AMD Instinct MI300X", 191, "MI300X"),
        ("AMD Instinct MI250X", 63, "MI250X (one of two)"),
    ],
)
def test_peaks_by_name(name: str, gib: int, expected: str) -> None:
    """As drivers write the names."""
    found = peaks({"name": name, "totalGlobalMem": gib * 2**30})
    assert found is not None
    assert found.name == expected


def test_peaks_make_sense() -> None:
    """16-bit beats tf32 beats fp32; no figure where there are no units; none for devices that nobody listed."""
    found = peaks(H200)
    assert found is not None
    assert found.flops_per_s("bf16") == pytest.approx(989.4e12)
    assert found.bytes_per_s == pytest.approx(4.8e12)
    assert found.flops_per_s("fp4") is found.flops_per_s("unknown") is None
    assert peaks({"name": "AMD Radeon Graphics"}) is None
    assert peaks({}) is None


def test_peaks_that_a_profile_gives() -> None:
    """TPUs list theirs."""
    found = peaks(
        {
            "name": "TPU v6 Lite",
            "peak_teraflops_per_second": 918.0,
            "peak_hbm_bw_gigabytes_per_second": 1638.0,
        }
    )
    assert found is not None
    assert (found.flops_per_s("bf16"), found.bytes_per_s) == (918e12, 1638e9)


def test_the_best_peak_and_the_own() -> None:
    """fp32 could be 16 bits; fp4 without units for it is computed wider; fp8 is best in its own."""
    found = peaks(H200)
    assert found is not None
    assert found.own_flops_per_s("fp32") == pytest.approx(67e12)
    assert found.best_flops_per_s("fp32") == found.best_flops_per_s("bf16") == pytest.approx(989.4e12)
    assert found.own_flops_per_s("fp4") == found.best_flops_per_s("fp8") == pytest.approx(1978.9e12)
    assert found.best_flops_per_s("unknown") is None
