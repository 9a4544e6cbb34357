"""Phases: the outermost annotations of a step, and their account."""

from __future__ import annotations

from stepscope.analysis.account.account import account
from stepscope.analysis.phases import phases
from stepscope.analysis.steps.find import find_steps
from tests.builders.inline import trace_of

US = 1000
TWO_STEPS = """
    track     start  dur  name              kind        launches
    main          0  100  ProfilerStep#1    annotation  -
    main          0   40  collect           annotation  -
    main         10   10  inner             annotation  -
    main         50   40  train             annotation  -
    main         55    5  cudaLaunchKernel  runtime     gemm
    stream 7     60   30  gemm              kernel      -
    main        100  100  ProfilerStep#2    annotation  -
    main        100   60  collect           annotation  -
    main        165   30  train             annotation  -
    main        165    5  cudaLaunchKernel  runtime     gemm
    stream 7    170   25  gemm              kernel      -
    main        196    4  once              annotation  -
    """


def found(text: str) -> dict[str, tuple[int, int, dict[str, int]]]:
    """name: calls, total in µs, parts in µs."""
    trace = trace_of(text)
    steps = find_steps(trace)
    table: dict[str, tuple[int, int, dict[str, int]]] = {}
    for name, calls, total, part, ns in phases(trace, steps, account(trace, steps), 0).iter_rows():
        table.setdefault(name, (calls, total // US, {}))[2][part] = ns // US
    return table


def test_outermost_annotations() -> None:
    """Neither the step, nor what is inside another annotation, nor what comes up once."""
    table = found(TWO_STEPS)
    assert list(table) == ["collect", "train"]
    assert [(calls, total) for calls, total, _ in table.values()] == [(2, 100), (2, 70)]


def test_parts_sum_to_the_phase() -> None:
    for _, total, parts in found(TWO_STEPS).values():
        assert sum(parts.values()) == total
    assert found(TWO_STEPS)["train"][2]["compute"] == 30 + 25
    assert "compute" not in found(TWO_STEPS)["collect"][2]


def test_no_annotations_no_phases() -> None:
    assert found("track  start  dur  name  kind  launches\nmain  0  10  aten::mm  op  -\n") == {}


def test_work_of_the_device_belongs_to_the_phase_that_launched_it() -> None:
    """The host is in the optimizer while the device still computes what the backward pass launched, and in the next step when it goes on."""
    table = found(
        """
        track     start  dur  name              kind        launches
        main          0  100  ProfilerStep#1    annotation  -
        main          0   20  backward          annotation  -
        main          5    5  cudaLaunchKernel  runtime     gemm
        main         30   20  optimizer         annotation  -
        main         35    5  cudaLaunchKernel  runtime     adam
        stream 7     10   80  gemm              kernel      -
        stream 7     95    5  adam              kernel      -
        main        100  100  ProfilerStep#2    annotation  -
        main        100   20  backward          annotation  -
        main        105    5  cudaLaunchKernel  runtime     gemm
        main        130   20  optimizer         annotation  -
        main        135    5  cudaLaunchKernel  runtime     adam
        stream 7    110   80  gemm              kernel      -
        stream 7    195    5  adam              kernel      -
        """
    )
    assert table["backward"][2]["compute"] == 160
    assert table["optimizer"][2] == {"compute": 10}
