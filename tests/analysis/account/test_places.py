"""Time without a cause is named by where it is: before what comes next in the step, else at its end."""

from __future__ import annotations

from stepscope.analysis.account.places import places
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.trace.trace import Trace
from tests.builders.inline import US, trace_of

HEADER = "track   start  dur   name            kind        launches"


def unexplained(trace: Trace) -> list[tuple[int, int, str, str | None]]:
    """Start and end in µs, name and place of each unexplained slice."""
    slices = RankContext(0, trace, Options(), alone=True).account.slices.sort("start_ns")
    slices = slices.with_columns(
        place=places(trace, slices), name=trace.events["name"].gather(slices["named_by"])
    )
    rows = slices.filter(slices["part"] == "unexplained").select("start_ns", "end_ns", "name", "place")
    return [(start // US, end // US, str(name), place) for start, end, name, place in rows.iter_rows()]


def steps(*rows: str) -> Trace:
    """Two steps of 10 ms, and a pause of 10 ms between them."""
    marks = [
        f"main  {start}  10000  ProfilerStep#{at}  annotation  -" for at, start in enumerate([0, 20_000])
    ]
    return trace_of("\n".join([HEADER, *marks, *rows]))


def test_it_is_before_what_comes_next() -> None:
    found = unexplained(steps("main  5000  5000  aten::mm  op  -", "main  20000  10000  aten::mm  op  -"))
    assert (0, 5000, "aten::mm", "before") in found


def test_it_does_not_look_past_the_end_of_the_step() -> None:
    found = unexplained(steps("main  0  5000  aten::mm  op  -", "main  20000  10000  aten::empty  op  -"))
    inside = [row for row in found if row[1] <= 10_000]
    assert inside == [(5000, 10_000, "ProfilerStep#0", "end")]


def test_another_thread_may_be_what_comes_next_in_the_step() -> None:
    found = unexplained(
        steps(
            "main  0  2000  aten::mm  op  -",
            "pt_gloo_runner  6000  3000  gloo:all_reduce  op  -",
            "main  20000  10000  aten::empty  op  -",
        )
    )
    inside = [row for row in found if row[1] <= 10_000]
    assert inside == [
        (2000, 6000, "gloo:all_reduce", "before"),
        (9000, 10_000, "ProfilerStep#0", "end"),
    ]


def test_a_device_is_late_during_a_call_of_the_host() -> None:
    trace = steps(
        "main  0  2  hipLaunchKernel  runtime  first",
        "stream 7  2  3  first  kernel  -",
        "main  2  5  hipLaunchKernel  runtime  gemm",
        "main  10  5000  hipMemcpyWithStream  runtime  copy",
        "stream 7  4900  50  gemm  kernel  -",
        "stream 7  4950  5  copy  copy  -",
    )
    slices = RankContext(0, trace, Options(), alone=True).account.slices
    late = slices.filter(slices["part"] == "device_gap")
    assert places(trace, late).to_list() == ["during"]
