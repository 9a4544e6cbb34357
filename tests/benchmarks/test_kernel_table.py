"""The kernel table: `ncu`'s CSV read, and its launches matched to the profiler's."""

from __future__ import annotations

import gzip
from pathlib import Path

from benchmarks.kernel_table import ncu, table
from benchmarks.kernel_table.ncu import PACKED, TENSOR, Counted
from benchmarks.kernel_table.recorded import Recorded

HEAD = '"ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Value"\n'
MARK = "stepscope_case_marker"
ONE = (1, 1, 1)


def log(path: Path, *rows: tuple[int, str, str, str]) -> Path:
    """What ncu writes: its own talk, then a row for each counter."""
    lines = "".join(
        f'"{i}","{name}","(128, 1, 1)","(4, 1, 1)","{metric}","{value}"\n' for i, name, metric, value in rows
    )
    path.write_bytes(gzip.compress(("==PROF== Connected\n" + HEAD + lines).encode()))
    return path


def test_counters(tmp_path: Path) -> None:
    """Packed half arithmetic is taken off; formats are named."""
    path = log(
        tmp_path / "log.csv.gz",
        (0, "k<int, 3>", f"{TENSOR}.sum", "1,200"),
        (0, "k<int, 3>", f"{PACKED}.sum", "200"),
        (0, "k<int, 3>", "sm__ops_path_tensor_src_bf16_dst_fp32.sum", "5"),
        (0, "k<int, 3>", "sm__ops_path_tensor_src_fp8.sum", "0"),
        (1, "other", f"{TENSOR}.sum", "n/a"),
    )
    first, second = ncu.read(path)
    assert (first.name, first.grid, first.block) == ("k<int, 3>", (4, 1, 1), (128, 1, 1))
    assert (first.tensor_instructions(), first.formats()) == (1000, "bf16")
    assert (second.tensor_instructions(), second.formats()) == (0, None)


def test_metrics() -> None:
    """Few enough for one pass."""
    names = [
        TENSOR,
        PACKED,
        "sm__ops_path_tensor_src_fp8",
        "sm__ops_path_tensor_src_fp8_sparsity_on",
        "other",
    ]
    assert ncu.uses(names) == [f"{TENSOR}.sum", f"{PACKED}.sum"]
    assert ncu.uses([]) == [f"{TENSOR}.sum"]
    assert ncu.formats(names) == ["sm__ops_path_tensor_src_fp8.sum"]


def test_cases() -> None:
    """Only what ran between a case's markers belongs to it."""
    launches = [
        Counted("warm-up", ONE, ONE),
        Counted(MARK, (3, 1, 1), ONE),
        Counted("a", ONE, ONE),
        Counted(MARK, (3, 2, 1), ONE),
        Counted("b", ONE, ONE),
    ]
    assert {case: [x.name for x in found] for case, found in table.by_case(launches).items()} == {2: ["a"]}


def test_pairs() -> None:
    """In order where shapes agree; else by shape and beginning of the name."""
    counted = [Counted("void gemm<T1>(int)", (2, 1, 1), ONE), Counted("void add<T2>(int)", (8, 1, 1), ONE)]
    recorded = [
        Recorded("void gemm<float>(int)", (2, 1, 1), ONE, "aten::mm", ()),
        Recorded("add", (8, 1, 1), ONE, "", ()),
    ]
    assert [pair[1] for pair in table.paired(counted, recorded)] == recorded
    assert [pair[1] for pair in table.paired(counted, recorded[:1])] == [None, None]


def test_distinct_rows_keep_known_formats() -> None:
    """One row for each name and its input types."""
    first = table.Row("k", "torch", "a", "", "[]", "bf16", 5.0, None)
    again = table.Row("k", "torch", "b", "", "[]", "bf16", 7.0, "bf16")
    (row,) = table.distinct([first, again])
    assert (row.case, row.launches, row.tensor_formats) == ("a", 2, "bf16")
