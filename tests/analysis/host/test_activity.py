"""Host time by what it does: frames and ops that compute, dispatch between launches, the allocator, our own frames."""

from __future__ import annotations

import pytest

from stepscope.analysis.host.causes import host_causes
from tests.builders.inline import check, trace_of


@pytest.mark.parametrize(
    "library",
    [
        "numpy/core/fromnumeric.py(5): sort",
        "transformers/image_transforms.py(390): normalize",
        "PIL/Image.py(7): resize",
        "torch/utils/_pytree.py(3): tree_map",
    ],
)
def test_long_python_belongs_to_the_innermost_frame_whoever_wrote_it(library: str) -> None:
    check(
        f"""
        track     start  dur  name                                      kind        launches
        main          0  910  ProfilerStep#1                            annotation  -
        main          0  900  train.py(9): shuffle                      python      -
        main          0  900  {library}                                 python      -
        main          0  900  <built-in method sort of numpy.ndarray>   python      -
        main        900    5  cudaLaunchKernel                          runtime     gemm
        stream 7    905    5  gemm                                      kernel      -
        """,
        f"compute=5 python=900 ({library} > train.py(9): shuffle) dispatch=5",
    )


def test_a_built_in_or_the_standard_library_is_its_callers() -> None:
    check(
        """
        track     start  dur  name                                kind        launches
        main          0  910  ProfilerStep#1                      annotation  -
        main          0  900  train.py(9): log                    python      -
        main          0  900  json/encoder.py(5): encode          python      -
        main        900    5  cudaLaunchKernel                    runtime     gemm
        stream 7    905    5  gemm                                kernel      -
        """,
        "compute=5 python=900 (train.py(9): log > json/encoder.py(5): encode) dispatch=5",
    )


@pytest.mark.parametrize(("length", "part"), [(280, "dispatch"), (300, "python")])
def test_short_python_between_launches_is_dispatch(length: int, part: str) -> None:
    check(
        f"""
        track     start         dur             name               kind        launches
        main          0         {length + 20}   ProfilerStep#1     annotation  -
        main          0         5               cudaLaunchKernel   runtime     first
        main          5         {length}        train.py(9): step  python      -
        main          {length + 5}  5           cudaLaunchKernel   runtime     second
        stream 7      0         5               first              kernel      -
        stream 7      {length + 10}  10         second             kernel      -
        """,
        f"compute=15 {part}={length + 5 * (part == 'dispatch')}" + " dispatch=5" * (part == "python"),
    )


def test_a_long_op_without_a_launch_is_computed_on_the_host() -> None:
    check(
        """
        track     start  dur  name                kind        launches
        main          0  500  ProfilerStep#1      annotation  -
        main          0  400  aten::sort          op          -
        main        380   20  aten::copy_         op          -
        main        400   20  aten::mm            op          -
        main        410   10  cudaLaunchKernel    runtime     gemm
        stream 7    420   80  gemm                kernel      -
        """,
        "compute=80 python=400 (aten::sort) dispatch=20 (aten::mm)",
    )


def test_a_long_op_that_launches_or_only_looks_at_tensors_is_dispatch() -> None:
    check(
        """
        track     start  dur  name                kind        launches
        main          0  900  ProfilerStep#1      annotation  -
        main          0  400  aten::split         op          -
        main        400  420  aten::mm            op          -
        main        810   10  cudaLaunchKernel    runtime     gemm
        stream 7    820   80  gemm                kernel      -
        """,
        "compute=80 dispatch=820 (aten::mm)",
    )


@pytest.mark.parametrize("call", ["cudaMalloc", "cudaFree", "cudaHostAlloc", "hipMalloc", "cuMemCreate"])
def test_memory_asked_of_the_driver_is_the_allocators(call: str) -> None:
    check(
        f"""
        track     start  dur  name                kind        launches
        main          0  500  ProfilerStep#1      annotation  -
        main          0  400  aten::empty         op          -
        main         20  370  {call}              runtime     -
        main        400   20  aten::mm            op          -
        main        410   10  cudaLaunchKernel    runtime     gemm
        stream 7    420   80  gemm                kernel      -
        """,
        f"compute=80 dispatch=50 allocator=370 ({call} > aten::empty)",
    )


def test_emptying_the_cache_is_the_allocators() -> None:
    check(
        """
        track     start  dur  name                                   kind        launches
        main          0  500  ProfilerStep#1                         annotation  -
        main          0  400  train.py(9): step                      python      -
        main          0  400  torch/cuda/memory.py(170): empty_cache  python     -
        main         20  380  cudaFree                               runtime     -
        main        410   10  cudaLaunchKernel                       runtime     gemm
        stream 7    420   80  gemm                                   kernel      -
        """,
        "compute=80 dispatch=20 allocator=400 (torch/cuda/memory.py(170): empty_cache > train.py(9): step)",
    )


def test_our_own_frames_are_the_profilers_and_what_they_call_is_the_jobs() -> None:
    check(
        """
        track     start  dur  name                                       kind        launches
        main          0  900  ProfilerStep#1                             annotation  -
        main          0  900  site-packages/stepscope/capture/run.py(1): run  python  -
        main         50  750  train.py(9): step                          python      -
        main        810   10  cudaLaunchKernel                           runtime     gemm
        stream 7    820   80  gemm                                       kernel      -
        """,
        "compute=80 python=750 (train.py(9): step) dispatch=10 profiler=60",
    )


def test_a_wait_of_no_time_is_none() -> None:
    check(
        """
        track     start  dur  name                       kind        launches
        main          0  100  ProfilerStep#1             annotation  -
        main          1    4  cudaLaunchKernel           runtime     first
        main         49    2  cudaStreamSynchronize      runtime     -
        main         55   20  aten::mm                   op          -
        main         70    5  cudaLaunchKernel           runtime     second
        stream 7      5   45  first                      kernel      -
        stream 7     75   25  second                     kernel      -
        """,
        "compute=70 dispatch=30 (aten::mm)",
    )


@pytest.mark.parametrize(
    ("op", "around", "part"),
    [
        ("aten::copy_", "mel.py(3): build_filters", "python"),
        ("aten::select", "mel.py(3): build_filters", "dispatch"),
        ("aten::add_", "Optimizer.step#Adam.step", "dispatch"),
    ],
)
def test_short_ops_of_a_call_that_launches_nothing_compute_if_they_add_up(
    op: str, around: str, part: str
) -> None:
    """Views compute nothing, and an optimizer that counts its steps dispatches."""
    trace = trace_of(_filters(op, 110, around))
    causes = host_causes(trace).filter(trace.events["name"].cast(str).is_in([op, "mel.py(9): fill"]))
    assert set(causes["cause"]) == {part}


@pytest.mark.parametrize(("length", "part"), [(90, "dispatch"), (100, "python")])
def test_short_ops_compute_from_some_time_together(length: int, part: str) -> None:
    trace = trace_of(_filters("aten::copy_", length, "mel.py(3): build_filters"))
    causes = host_causes(trace)["cause"].filter(trace.events["name"].cast(str) == "aten::copy_")
    assert set(causes) == {part}


def test_short_ops_that_compute_belong_to_the_function_that_calls_them() -> None:
    check(
        _filters("aten::copy_", 110, "mel.py(3): build_filters"),
        "compute=10 python=410 (mel.py(9): fill > aten::copy_) dispatch=10",
    )


def test_a_call_that_launches_among_its_short_ops_dispatches() -> None:
    launching = (
        "main        405    5  cudaLaunchKernel  runtime  fill\n        stream 7    408    1  fill  kernel  -"
    )
    trace = trace_of(_filters("aten::copy_", 110, "mel.py(3): build_filters", launching))
    causes = host_causes(trace)["cause"].filter(trace.events["name"].cast(str) == "aten::copy_")
    assert set(causes) == {"dispatch"}


def _filters(op: str, length: int, around: str, more: str = "") -> str:
    """A function that calls one op after the other, and then the launch of a product."""
    kind = "annotation" if around.startswith("Optimizer") else "python"
    return f"""
        track     start  dur       name              kind        launches
        main          0  430       ProfilerStep#1    annotation  -
        main          0  410       {around}          {kind}      -
        main          0  410       mel.py(9): fill   python      -
        main          5  {length}  {op}              op          -
        main        130  {length}  {op}              op          -
        main        260  {length}  {op}              op          -
        main        410   10       cudaLaunchKernel  runtime     gemm
        stream 7    420   10       gemm              kernel      -
        {more}
        """
