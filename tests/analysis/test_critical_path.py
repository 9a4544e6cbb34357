"""What decides how long a step is, laid over its recorded time."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.critical_path import CriticalPath
from stepscope.analysis.options import Options
from tests.builders.inline import US, trace_of

HEADER = "track     start  dur  name                   kind        launches"


def path_of(*lines: str) -> CriticalPath:
    trace = trace_of("\n".join([HEADER, *lines]))
    return RankContext(0, trace, Options(), alone=True).critical_path


def written(path: CriticalPath) -> list[str]:
    """`start-end kind name` of each row, in µs."""
    rows = path.rows.select("start_ns", "end_ns", "kind", "name").iter_rows()
    return [f"{start // US}-{end // US} {kind} {name}" for start, end, kind, name in rows]


def test_a_slow_host_decides_and_the_last_kernel_ends_the_step() -> None:
    path = path_of(
        "main          0  1000  ProfilerStep#1    annotation  -",
        "main          0  400  aten::mm          op          -",
        "main        390   10  cudaLaunchKernel  runtime     gemm",
        "main        400  500  aten::add         op          -",
        "main        890   10  cudaLaunchKernel  runtime     add",
        "stream 7    405   50  gemm              kernel      -",
        "stream 7    905  295  add               kernel      -",
    )
    assert path.source == "replay"
    assert written(path) == [
        "0-390 host aten::mm",
        "390-400 host cudaLaunchKernel",
        "400-890 host aten::add",
        "890-900 host cudaLaunchKernel",
        "900-905 launch launch latency",
        "905-1200 device add",
    ]


def test_a_wait_leads_to_the_kernel_that_it_waited_for() -> None:
    path = path_of(
        "main          0  700  ProfilerStep#1         annotation  -",
        "main          0  100  aten::mm               op          -",
        "main         90   10  cudaLaunchKernel       runtime     gemm",
        "main        100  408  cudaStreamSynchronize  runtime     -",
        "main        508   92  aten::add              op          -",
        "main        590   10  cudaLaunchKernel       runtime     add",
        "stream 7    105  400  gemm                   kernel      -",
        "stream 7    605  395  add                    kernel      -",
    )
    assert written(path) == [
        "0-90 host aten::mm",
        "90-100 host cudaLaunchKernel",
        "100-105 launch launch latency",
        "105-505 device gemm",
        "505-508 wait cudaStreamSynchronize",
        "508-590 host aten::add",
        "590-600 host cudaLaunchKernel",
        "600-605 launch launch latency",
        "605-1000 device add",
    ]


def test_a_busy_device_decides_and_its_gaps_are_charged_as_in_the_account() -> None:
    launches = [f"main  {10 * k}  5  cudaLaunchKernel  runtime  k{k}" for k in range(5)]
    kernels = [f"stream 7  {10 + 101 * k}  100  k{k}  kernel  -" for k in range(5)]
    path = path_of("main  0  100  ProfilerStep#1  annotation  -", *launches, *kernels)
    rows = path.rows.filter(pl.col("start_ns") >= 10 * US)
    assert rows.filter(pl.col("kind") == "device")["name"].to_list() == ["k0", "k1", "k2", "k3", "k4"]
    gaps = rows.filter(pl.col("kind") == "gap")
    assert (gaps["end_ns"] - gaps["start_ns"]).to_list() == [US] * 4


def test_steps_without_a_device_follow_their_account() -> None:
    path = path_of(
        "main  0  100  ProfilerStep#1  annotation  -",
        "main  0   80  aten::mm        op          -",
    )
    assert path.source == "account"
    assert written(path)[0] == "0-80 host aten::mm"
    assert int((path.rows["end_ns"] - path.rows["start_ns"]).sum()) == 100 * US


def test_nothing_recorded() -> None:
    assert path_of("main  0  0  nothing  op  -").rows.is_empty()
