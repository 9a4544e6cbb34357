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
