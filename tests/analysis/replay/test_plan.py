"""The recorded steps played again: the host works and launches, streams run in order, waits wait, changes shorten."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.replay.plan import SPEEDS, Plan
from stepscope.analysis.replay.unprofiled_host import plan
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.trace import Trace
from tests.builders.cases import case_of_text, gemm, steps
from tests.builders.inline import US, trace_of

LAUNCH_BOUND = """
    track     start  dur  name              kind        launches
    main          0  1000  ProfilerStep#1    annotation  -
    main          0  400  aten::mm          op          -
    main        390   10  cudaLaunchKernel  runtime     gemm
    main        400  500  aten::add         op          -
    main        890   10  cudaLaunchKernel  runtime     add
    stream 7    405   50  gemm              kernel      -
    stream 7    905   95  add               kernel      -
    """
WAITS = """
    track     start  dur  name                   kind        launches
    main          0  606  ProfilerStep#1         annotation  -
    main          0  100  aten::mm               op          -
    main         90   10  cudaLaunchKernel       runtime     gemm
    main        100  405  cudaStreamSynchronize  runtime     -
    main        505  100  aten::add              op          -
    main        595   10  cudaLaunchKernel       runtime     add
    stream 7    105  400  gemm                   kernel      -
    stream 7    610  390  add                    kernel      -
    """


def plan_of(text: str) -> tuple[Trace, Plan]:
    """The plan of the only device."""
    trace = trace_of(text)
    return trace, plan(trace, find_steps(trace), 0)


def test_played_as_recorded_the_step_is_as_long_as_it_was() -> None:
    for text in (LAUNCH_BOUND, WAITS):
        played = plan_of(text)[1].as_recorded().step_ns() / US
        assert abs(played - 1000) <= 15, played


def test_the_profilers_share_is_taken_off_the_host() -> None:
    _, made = plan_of(LAUNCH_BOUND)
    assert made.step_ns() < made.as_recorded().step_ns()
    played = [made.at(speed).step_ns() for speed in SPEEDS]
    assert played == sorted(played)
    assert played[-1] < made.as_recorded().step_ns()


def test_a_free_host_leaves_the_device() -> None:
    _, made = plan_of(LAUNCH_BOUND)
    free = made.with_host(pl.lit(True)).step_ns() / US
    assert 145 <= free <= 145 + 10  # and one launch delay


def test_without_waits_the_host_works_while_the_device_does() -> None:
    _, made = plan_of(WAITS)
    before, after = made.as_recorded().step_ns() / US, made.as_recorded().without_waits().step_ns() / US
    assert abs((before - after) - 105) <= 15, (before, after)


def test_work_on_a_stream_of_its_own_runs_beside_the_rest() -> None:
    trace, made = plan_of(WAITS)
    add = trace.events.filter(pl.col("name").cast(pl.String) == "add")["id"]
    beside = made.as_recorded().without_waits().on_own_stream(pl.col("event").is_in(add.implode()))
    assert abs(beside.step_ns() / US - 600) <= 20


def test_shorter_kernels_shorten_a_busy_device() -> None:
    _, made = plan_of(WAITS)
    halved = made.as_recorded().with_device(pl.lit(True), 0.5).step_ns() / US
    assert abs(halved - 605) <= 15, halved


def test_a_launch_into_a_full_queue_is_the_devices_time() -> None:
    launches = "\n".join(
        f"main  {10 + 10 * k}  5  cudaLaunchKernel  runtime  k{k}\nstream 7  {20 + 100 * k}  100  k{k}  kernel  -"
        for k in range(9)
    )
    _, made = plan_of(f"""
        track     start  dur  name              kind        launches
        main          0  1001  ProfilerStep#1    annotation  -
        {launches}
        main        100  900  cudaLaunchKernel  runtime     late
        stream 7   1010  190  late              kernel      -
        """)
    assert int(made.as_recorded().host["ns"].sum()) < 110 * US


def test_unprofiled_steps_decide_how_much_is_taken_off() -> None:
    trace = trace_of(LAUNCH_BOUND, capture={"unprofiled_step": {"mean_ns": 870 * US}})
    made = plan(trace, find_steps(trace), 0)
    assert abs(made.step_ns() / US - 870) <= 10


def test_threads_of_the_runtime_that_copy_delay_no_other() -> None:
    """The copy of an argument waits there, while the main thread goes on."""
    rows = steps(
        *gemm(0, 300), "pjrt_async_work_runner  320  40  cuStreamSynchronize  runtime  -", *gemm(400, 500)
    )
    waiting = steps(*gemm(0, 300), "main  320  40  cudaStreamSynchronize  runtime  -", *gemm(400, 500))
    waits = [case_of_text(each).plan.items["kind"].sum() for each in (rows, waiting)]
    assert waits == [0, 3]


def test_a_job_that_goes_on_finds_a_queue_that_a_recording_has_yet_to_fill() -> None:
    """300 µs pass before the first launch, then the device is behind: only a first step waits for the host."""
    text = "\n".join(
        [
            "track  start  dur  name  kind  launches",
            *(
                row
                for number in range(3)
                for row in (
                    f"main  {400 * number}  400  ProfilerStep#{number}  annotation  -",
                    f"main  {400 * number + 290}  10  cudaLaunchKernel  runtime  k{number}",
                    f"stream 7  {310 + 700 * number}  700  k{number}  kernel  -",
                )
            ),
        ]
    )
    made = plan_of(text)[1]
    first, *_ = made.lengths()
    assert first > 1000 * US
    assert abs(made.step_ns() / US - 700) <= 15
