"""A host that cannot launch any more, because its device waits, does nothing, however long its calls take."""

from __future__ import annotations

import polars as pl

from stepscope.ranks.stragglers.full_queue import blocked_launches
from tests.builders.inline import trace_of

STEPS = pl.DataFrame(
    {"step": [3, 4], "track": [0, 0], "start_ns": [0, 500_000], "end_ns": [500_000, 1_000_000]}
)
CALLS = """
    track     start  dur  name              kind        launches
    main          0    4  cudaLaunchKernel  runtime     first
    main         10    4  cudaLaunchKernel  runtime     second
    main         20    4  cudaLaunchKernel  runtime     third
    main         30  200  cudaLaunchKernel  runtime     fourth
    main        600    4  cudaLaunchKernel  runtime     fifth
"""


def test_a_launch_waits_while_earlier_work_has_not_begun() -> None:
    trace = trace_of(
        CALLS
        + """    stream 7     10  220  first             kernel      -
    stream 7    230   20  second            kernel      -
    stream 7    250   20  third             kernel      -
    stream 7    270   20  fourth            kernel      -
    stream 7    620   20  fifth             kernel      -
"""
    )
    assert blocked_launches(trace, STEPS).rows() == [(3, 196_000)]


def test_a_long_launch_on_an_idle_device_is_work() -> None:
    trace = trace_of(
        CALLS
        + """    stream 7      5    3  first             kernel      -
    stream 7     15    3  second            kernel      -
    stream 7     25    3  third             kernel      -
    stream 7    231   20  fourth            kernel      -
    stream 7    620   20  fifth             kernel      -
"""
    )
    assert blocked_launches(trace, STEPS).is_empty()
