"""Two reports side by side."""

from __future__ import annotations

import msgspec
import pytest

from stepscope.across.compare import Comparison, Row, Side, compare, judged
from stepscope.across.diff_model import Diff, Rows, Run
from stepscope.across.diff_model import Row as DiffRow
from stepscope.report.build import report
from stepscope.report.model import (
    BreakdownRow,
    Finding,
    KernelRow,
    Kernels,
    MemoryDevice,
    OpRow,
    Ops,
    Profile,
    Report,
    StepRow,
    Steps,
)
from stepscope.report.model import Memory as MemorySection
from stepscope.report.summary import own_steps


def op(name: str, device: int, host: int = 1, calls: int = 2) -> OpRow:
    return OpRow(
        name=name,
        calls=calls,
        host_total_ns=host,
        host_self_ns=host,
        device_total_ns=device,
        device_self_ns=device,
    )


def kernel(name: str, total: int) -> KernelRow:
    return KernelRow(name=name, calls=1, total_ns=total, mean_ns=total, min_ns=total, max_ns=total)


def finding(code: str, saves: int) -> Finding:
    return Finding(code=code, class_="time", title=code, detail="", saves_ns_per_step=saves)


def side(**parts: object) -> Side:
    """A report over two steps."""
    rows = [StepRow(rank=0, device=0, step=n, start_ns=n, duration_ns=100 + n, parts={}) for n in range(2)]
    steps = Steps(count=2, median_ns=100, rows=rows, critical_devices={"0": 0})
    made = Report(profile=Profile(path="x", ranks=[0]), steps=steps, **parts)  # type: ignore[arg-type]
    return Side(msgspec.to_builtins(made), own_steps(made))


def by_name(rows: list[Row]) -> dict[str, tuple[float | None, float | None, float]]:
    return {row.name: (row.a, row.b, row.difference) for row in rows}


@pytest.fixture(scope="module")
def compared() -> Comparison:
    a = side(
        breakdown=[BreakdownRow(part="compute", ns=200, share=1.0)],
        ops=Ops(rows=[op("mm", 40), op("add", 6)]),
        kernels=Kernels(rows=[kernel("gemm", 30), kernel("gemm", 10)]),
        findings=[finding("input-bound", 50), finding("device-sync", 10)],
        memory=MemorySection(devices=[MemoryDevice(device=0, device_kind="gpu", peak_bytes=100)]),
    )
    b = side(
        breakdown=[
            BreakdownRow(part="compute", ns=300, share=0.9),
            BreakdownRow(part="input", ns=20, share=0.1),
        ],
        ops=Ops(rows=[op("mm", 20), op("new", 100)]),
        kernels=Kernels(rows=[kernel("gemm", 20)]),
        findings=[finding("device-sync", 4), finding("fp32-matmul", 9)],
        memory=MemorySection(devices=[MemoryDevice(device=0, device_kind="gpu", peak_bytes=150)]),
    )
    return compare(a, b)


def test_parts_are_per_step(compared: Comparison) -> None:
    assert by_name(compared.parts) == {"compute": (100, 150, 50), "input": (None, 10, 10)}


def test_the_largest_difference_comes_first(compared: Comparison) -> None:
    assert [row.name for row in compared.ops] == ["new", "mm", "add"]
    assert by_name(compared.ops)["mm"] == (20, 10, -10)
    assert compared.ops_measure == "device"
    assert compared.ops[1].more["calls"] == [1, 1]


def test_kernels_of_one_name_are_one(compared: Comparison) -> None:
    assert by_name(compared.kernels) == {"gemm": (20, 10, -10)}


def test_memory_and_steps(compared: Comparison) -> None:
    assert by_name(compared.memory) == {"gpu 0": (100, 150, 50)}
    assert compared.steps == {"a": [100, 101], "b": [100, 101]}
    assert by_name(compared.figures)["peak memory"] == (100, 150, 50)


def test_findings_gained_and_lost(compared: Comparison) -> None:
    assert [change.code for change in compared.gained] == ["fp32-matmul"]
    assert [change.code for change in compared.lost] == ["input-bound"]
    assert [(change.code, change.a_saves_ns, change.b_saves_ns) for change in compared.kept] == [
        ("device-sync", 10, 4)
    ]


def test_a_run_against_itself_differs_in_nothing() -> None:
    found = report("src/stepscope/samples/tiny_gpt.pt.trace.json.gz", limit=0)
    same = Side(msgspec.to_builtins(found), own_steps(found))
    compared = compare(same, same)
    rows = [*compared.figures, *compared.parts, *compared.ops, *compared.kernels, *compared.memory]
    assert all(row.difference == 0 and row.a == row.b for row in rows)
    assert not compared.gained
    assert not compared.lost
    assert sum(row.a or 0 for row in compared.parts) * own_steps(found) == pytest.approx(
        sum(row.ns for row in found.breakdown)
    )


def test_without_a_device_host_time_counts() -> None:
    compared = compare(side(ops=Ops(rows=[op("mm", 0, 10)])), side(ops=Ops(rows=[op("mm", 0, 30)])))
    assert compared.ops_measure == "host"
    assert by_name(compared.ops) == {"mm": (5, 15, 10)}


def test_the_diff_says_what_is_more_than_chance(compared: Comparison) -> None:
    def judged_row(name: str, significant: bool) -> DiffRow:
        return DiffRow(name=name, a=1, b=2, difference=1, noise=0.5, significant=significant)

    diff = Diff(
        a=Run(path="a"),
        b=Run(path="b"),
        verdict="longer",
        significant=True,
        step=judged_row("step", True),
        parts=[judged_row("compute", True)],
        ops=Rows(rows=[judged_row("mm", False), judged_row("mm", True)]),
    )
    found = judged(
        msgspec.structs.replace(compared, parts=[msgspec.structs.replace(row) for row in compared.parts]),
        diff,
    )
    rows = {row.name: row for row in [*found.parts, *found.ops, *found.figures]}
    assert found.verdict == "longer"
    assert (rows["compute"].significant, rows["compute"].noise) == (True, 0.5)
    assert (rows["mm"].significant, rows["mm"].noise) == (True, None)
    assert rows["input"].significant is None
    assert rows["median step"].significant
