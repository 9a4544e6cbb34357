"""What a wait waits for: all that was launched, or only what was done when it ended."""

from __future__ import annotations

import polars as pl

from stepscope.native.host import replay as native
from tests.builders.cases import case_of_text, steps
from tests.builders.inline import US

LAUNCH = "main  100  10  cudaLaunchKernel  runtime  gemm"
# The wait ends when the work of the step before does, and the work of its own step begins.
READS_THE_STEP_BEFORE = (
    LAUNCH,
    "main  110  295  cudaStreamSynchronize  runtime  -",
    "stream 7  400  1000  gemm  kernel  -",
)
READS_ITS_OWN = (
    LAUNCH,
    "main  110  405  cudaStreamSynchronize  runtime  -",
    "stream 7  115  400  gemm  kernel  -",
)


def test_a_wait_for_the_step_before_lets_the_device_go_on() -> None:
    made = case_of_text(steps(*READS_THE_STEP_BEFORE)).plan
    assert abs(made.as_recorded().lengths()[-1] / US - 1000) <= 20


def test_a_wait_that_ends_with_the_last_work_is_for_all() -> None:
    made = case_of_text(steps(*READS_ITS_OWN)).plan
    assert made.items["back"].max() == 0
    assert abs(made.as_recorded().lengths()[-1] / US - 1000) <= 20


def test_nothing_is_waited_for_that_was_launched_before_the_recording() -> None:
    made = case_of_text(steps(*READS_THE_STEP_BEFORE)).plan
    back = made.items.filter(pl.col("kind") == native.WAIT)["back"]
    assert back[0] > len(made.items)
    assert back[1:].to_list() == [4, 4]  # launch, end, wait, launch
