"""The comparison of our FLOPs and bytes with counters, without a device."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.compute.compare import DRAM, L2, NOTHING, SASS, TENSOR, Ours, Work, compare, counted, ours
from benchmarks.kernel_table.marker import BEGIN, END, NAME
from benchmarks.kernel_table.ncu import Counted


def marker(case: int, side: int) -> Counted:
    """A marker as `ncu` lists it."""
    return Counted(NAME, (case + 1, side, 1), (1, 1, 1))


def test_launches_between_markers_belong_to_their_case() -> None:
    product = Counted("gemm", (8, 1, 1), (128, 1, 1), {f"{TENSOR}bf16_dst_fp32": 100.0, DRAM: 10.0, L2: 30.0})
    plain = Counted("add", (8, 1, 1), (128, 1, 1), {f"{SASS}ffma_pred_on": 5.0, f"{SASS}fadd_pred_on": 1.0})
    launches = [product, marker(3, BEGIN), product, plain, marker(3, END), product]
    assert counted(launches) == {3: Work(111.0, 10.0, 30.0)}


def test_what_each_class_is_judged_by() -> None:
    names = {
        0: "matmul/square/bf16/large", 1: "copy/clone/bf16/small", 2: "embedding/table/bf16/large", 3: "norm/x/bf16/large",
        4: "layout/transpose/bf16/large",
    }  # fmt: skip
    mine = Ours({0: (103.0, 5.0), 1: (0.0, 95.0), 2: (0.0, 40.0), 4: (0.0, 20.0)})
    theirs = {0: Work(100, 9, 9), 1: Work(0, 1, 100), 2: Work(0, 90, 39), 4: Work(0, 90, 100)}
    rows = compare(names, mine, theirs)
    assert [(row.what, row.agrees) for row in rows] == [
        ("FLOPs", True),
        ("L2 bytes, at least", True),
        ("L2 bytes", True),
        ("L2 bytes, at least", False),  # more than was counted
        ("missing", False),
        ("L2 bytes, at least", True),
    ]


def test_copies_of_the_driver_are_not_counted() -> None:
    """Only where the profile has nothing but copies, and ncu came to the end of the case without a kernel."""
    names = {number: f"copy/{number}/bf16/large" for number in range(4)}
    launches = [each for case in (0, 1) for each in (marker(case, BEGIN), marker(case, END))]
    broken_off = [marker(2, BEGIN)]
    theirs = counted([*launches, *broken_off])
    assert theirs == {0: NOTHING, 1: NOTHING}
    rows = compare(names, Ours({1: (0.0, 5.0)}, frozenset({0, 2, 3})), theirs)
    assert [(row.what, row.agrees) for row in rows] == [
        ("not counted by ncu", None),
        ("missing", False),  # the profile has a kernel that was not counted
        ("missing", False),
        ("missing", False),
    ]


def test_what_a_profile_says_of_the_cases(tmp_path: Path) -> None:
    """Kernels and copies between the markers; a case with both is not one of copies alone."""
    at = iter(range(10, 1000, 10))

    def device(category: str, name: str, **arguments: object) -> dict[str, object]:
        placed = {"device": 0, "stream": 7, **arguments}
        return {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": 0,
            "tid": 7,
            "ts": next(at),
            "dur": 5,
            "args": placed,
        }

    def case(number: int, *inside: tuple[str, str]) -> list[dict[str, object]]:
        ends = [{"grid": [number + 1, side, 1], "block": [1, 1, 1]} for side in (BEGIN, END)]
        begin = device("kernel", NAME, **ends[0])
        work = [device(category, name, bytes=64) for category, name in inside]
        return [begin, *work, device("kernel", NAME, **ends[1])]

    copy, kernel = ("gpu_memcpy", "Memcpy DtoD (Device -> Device)"), ("kernel", "add")
    events = [*case(0, copy), *case(1, kernel), *case(2, copy, kernel), *case(3)]
    path = tmp_path / "compute.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}))
    found = ours(path)
    assert set(found.work) == {1, 2}
    assert set(found.copied) == {0}
