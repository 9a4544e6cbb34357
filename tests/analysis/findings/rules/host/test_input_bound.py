"""Batches that a function of the job makes of bytes: what is left when they are sent as they are."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.host.input_bound import RULE, find
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of, findings_of, steps

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes"
BYTES, FLOATS = "unsigned char,Scalar,long int", "float,Scalar"
BATCH = "[[64,3,160,160],[]]"


def case(picks: str = "aten::index_select", dtypes: str = BYTES) -> Case:
    """Steps of 1 ms, 700 µs of which make a batch: 200 µs pick it, 320 µs convert it, 100 µs pin it."""
    rows = [
        "main  1  700  job.py(84): load_batch  python  -  -  -",
        f"main  10  200  {picks}  op  -  {BATCH}  {dtypes}",
        f"main  220  320  aten::to  op  -  {BATCH}  {BYTES}",
        f"main  225  310  aten::copy_  op  -  {BATCH}  float,unsigned char",
        f"main  550  100  aten::pin_memory  op  -  {BATCH}  {FLOATS}",
        f"main  710  20  aten::to  op  -  {BATCH}  {FLOATS}",
        "main  715  5  cudaLaunchKernel  runtime  gemm  -  -",
        "stream 7  730  200  gemm  kernel  -  -  -",
    ]
    lines = [HEAD]
    for number in range(3):
        lines.append(f"main  {1000 * number}  1000  ProfilerStep#{number}  annotation  -  -  -")
        for row in rows:
            track, start, rest = row.split("  ", 2)
            lines.append(f"{track}  {1000 * number + int(start)}  {rest}")
    return case_of(compute_trace("\n".join(lines)))


def input_left(made: Case) -> list[float]:
    """The shares of making batches that stay, at worst and at best."""
    assert find(made) is not None
    change, is_input = made.changes[RULE.code], pl.col("cause") == "input"
    before, *after = (
        int(plan.host.filter(is_input)["ns"].sum()) for plan in (made.plan, change.smallest, change.largest)
    )
    return [each / before for each in after]


def test_bytes_are_picked_and_pinned_in_the_step_at_worst() -> None:
    """A quarter of the bytes is pinned; the conversion goes."""
    assert input_left(case()) == pytest.approx([(200 + 100 / 4) / 700, 0], abs=0.01)


@pytest.mark.parametrize(
    ("picks", "dtypes"), [("aten::index_select", FLOATS), ("aten::add", BYTES), ("aten::add", FLOATS)]
)
def test_what_computes_or_makes_no_bytes_goes(picks: str, dtypes: str) -> None:
    assert input_left(case(picks, dtypes)) == pytest.approx([100 / 4 / 700, 0], abs=0.01)


def waiting(*pipeline: str) -> Finding:
    """Steps of TensorFlow on a CPU that wait 300 µs of 1 ms for a batch."""
    rows = ["main  0  300  IteratorGetNextOp::DoCompute  op  -", "main  300  690  Conv2D  op  -"]
    found = findings_of(steps(*rows, *pipeline), framework="tensorflow")
    return next(each for each in found if each.code == RULE.code)


def test_threads_that_make_batches_ahead_already_share_the_cores_with_the_step() -> None:
    """Whether less waiting leaves the cores to it, nobody knows; prefetching is no advice then."""
    ahead = "main  0  299  Iterator::Prefetch  span  -"
    threads = "tf_data_private_threadpool  0  900  Iterator::ParallelMapV2  span  -"
    alone = waiting("main  0  290  Iterator::Map  span  -")
    assert ".prefetch(" in alone.fix
    assert ".prefetch(" in waiting(ahead).fix
    beside = waiting(ahead, threads)
    assert "make batches ahead already" in beside.detail
    assert ".cache()" in beside.fix
    assert ".prefetch(" not in beside.fix
    assert beside.speedup.low < alone.speedup.low
    assert beside.speedup.mid == pytest.approx(1 / (1 - 0.5 * 0.3), rel=0.01)
