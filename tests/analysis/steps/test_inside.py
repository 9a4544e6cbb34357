"""Device work is counted for the time it ran inside the windows of the steps."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from tests.builders.inline import trace_of

TEXT = """
    track     start  dur  name              kind        launches
    main         10    2  cudaLaunchKernel  runtime     early
    main        100  100  ProfilerStep#4    annotation  -
    main        101    2  cudaLaunchKernel  runtime     own
    main        102    2  cudaLaunchKernel  runtime     side
    main        200  100  ProfilerStep#5    annotation  -
    main        205    2  cudaLaunchKernel  runtime     later
    stream 7     20   90  early             kernel      -
    stream 7    120   60  own               kernel      -
    stream 7    220   50  later             kernel      -
    stream 9    190   40  side              kernel      -
    stream 9    290   40  beyond            kernel      -
    """


def calls(options: Options) -> dict[str, tuple[int | None, int]]:
    """For each kernel of the tables its step and its time in µs."""
    context = RankContext(0, trace_of(TEXT), options)
    rows = context.kernel_calls.select(pl.col("name").cast(pl.String), "step", pl.col("dur_ns") // 1_000)
    return {name: (step, us) for name, step, us in rows.iter_rows()}


def test_work_is_of_the_step_it_ran_in_and_takes_its_time_there() -> None:
    assert calls(Options()) == {"own": (4, 60), "side": (4, 40), "later": (5, 50), "beyond": (5, 10)}


def test_a_chosen_step_has_its_own_part_of_the_work() -> None:
    assert calls(Options(steps=(5, 5))) == {"side": (5, 30), "later": (5, 50), "beyond": (5, 10)}


def test_kernels_take_as_long_as_the_account_says() -> None:
    context = RankContext(0, trace_of(TEXT), Options())
    busy = context.parts.filter(pl.col("part") == "compute")["ns"].sum()
    both_ran = 10_000  # `side` and `later` at once
    assert context.kernel_calls["dur_ns"].sum() - both_ran == busy
