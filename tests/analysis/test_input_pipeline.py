"""The input pipeline: its share, what of it the device waited for, its stages and the verdict."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.account.account import account
from stepscope.analysis.input_pipeline import InputPipeline, input_pipeline
from stepscope.analysis.steps.find import find_steps
from tests.builders.inline import trace_of

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
BOUND = f"""
    track     start  dur  name                        kind        launches
    main          0  100  ProfilerStep#1              annotation  -
    main          0   60  {LOADER}  annotation  -
    main         10   40  data.py(7): __getitem__     python      -
    main         15   20  PIL/Image.py(3): open       python      -
    main         50    8  aten::stack                 op          -
    main         62    5  cudaLaunchKernel            runtime     gemm
    stream 7     65   30  gemm                        kernel      -
    """
HIDDEN = f"""
    track     start  dur  name                        kind        launches
    main          0  100  ProfilerStep#1              annotation  -
    main          0    5  cudaLaunchKernel            runtime     gemm
    stream 7      1   99  gemm                        kernel      -
    main         10   60  {LOADER}  annotation  -
    """


def found_in(text: str) -> InputPipeline:
    """The pipeline of the table's steps."""
    trace = trace_of(text)
    steps = find_steps(trace)
    return input_pipeline(trace, steps, account(trace, steps))


def test_share_and_exposed_share() -> None:
    found = found_in(BOUND)
    assert found.share == pytest.approx(0.6)
    assert found.exposed_share == pytest.approx(0.6, abs=0.02)
    assert found.verdict.startswith("Input-bound")


def test_a_loader_behind_a_busy_device_costs_nothing() -> None:
    found = found_in(HIDDEN)
    assert found.share == pytest.approx(0.6)
    assert found.exposed_share < 0.02
    assert found.verdict.startswith("Not input-bound: the loader takes 60 %")


def test_stages() -> None:
    """Self time is without the stages inside; the kind is told by the name, the slowest first."""
    stages = found_in(BOUND).stages
    rows = {
        row["name"]: (row["kind"], row["total_ns"] // 1000, row["self_ns"] // 1000)
        for row in stages.to_dicts()
    }
    assert rows["data.py(7): __getitem__"] == ("preprocess", 40, 20)
    assert rows["PIL/Image.py(3): open"] == ("read", 20, 20)
    assert rows["aten::stack"] == ("batch", 8, 8)
    assert rows[LOADER] == ("other", 60, 12)
    assert stages["self_ns"].is_sorted(descending=True)
    assert int(stages["self_ns"].sum()) == 60_000


def test_a_piece_of_work_has_its_kind() -> None:
    """An op inside `__getitem__` is preprocessing; what lies in the loader alone is not known."""
    text = BOUND.replace("PIL/Image.py(3): open       python", "aten::normal_               op    ")
    kinds = dict(found_in(text).stages.select("name", "kind").iter_rows())
    assert kinds["aten::normal_"] == "preprocess"
    assert kinds[LOADER] == "other"


def test_a_stage_inside_itself_counts_once() -> None:
    text = BOUND.replace("aten::stack                 op    ", "data.py(7): __getitem__     python").replace(
        "main         50    8", "main         36   10"
    )
    row = found_in(text).stages.filter(pl.col("name") == "data.py(7): __getitem__").row(0, named=True)
    assert (row["calls"], row["total_ns"]) == (2, 40_000)


def test_workers_that_were_not_recorded() -> None:
    verdict = found_in(BOUND.replace("_SingleProcess", "_MultiProcessing")).verdict
    assert verdict.endswith("what the loader's worker processes did was not recorded.")
    assert "not recorded" not in found_in(BOUND).verdict


def test_no_loader() -> None:
    found = found_in("track  start  dur  name  kind  launches\nmain  0  100  ProfilerStep#1  annotation  -\n")
    assert (found.share, found.exposed_share, found.verdict) == (0.0, 0.0, "No input pipeline was recorded.")


def steps_of(lengths: list[int], waits: int) -> str:
    """Steps of these lengths that each wait for data first, then launch one kernel that takes the rest."""
    rows: list[tuple[object, ...]] = [("track", "start", "dur", "name", "kind", "launches")]
    at = 0
    for number, length in enumerate(lengths):
        rows += [
            ("main", at, length, f"ProfilerStep#{number}", "annotation", "-"),
            ("main", at, waits, LOADER, "annotation", "-"),
            ("main", at + waits, 1, "cudaLaunchKernel", "runtime", f"gemm{number}"),
            ("stream 7", at + waits + 1, length - waits - 1, f"gemm{number}", "kernel", "-"),
        ]
        at += length
    return "\n".join("  ".join(map(str, row)) for row in rows)


def test_the_verdict_is_about_the_usual_steps_as_the_finding_is() -> None:
    """One step that takes a hundred times as long hides the loader in the mean of all."""
    found = found_in(steps_of([10_000, 100, 100, 100, 100, 100], 40))
    assert found.exposed_share < 0.03
    assert found.verdict.startswith(
        "Input-bound: the device waits for data 40 % of the time in usual steps (2 % of all"
    )
    assert found_in(steps_of([100] * 6, 40)).verdict.startswith(
        "Input-bound: the device waits for data 40 % of the time;"
    )


def test_an_annotation_that_makes_the_batch_is_the_pipeline() -> None:
    """A loop of one's own has no loader, and the account charges its annotation: finding, verdict and stages agree."""
    text = BOUND.replace(LOADER, "load batch").replace("data.py(7): __getitem__", "own.py(7): make        ")
    found = found_in(text)
    assert found.exposed_share == pytest.approx(0.6, abs=0.02)
    assert found.share == pytest.approx(0.6)
    assert "load batch" in found.stages["name"].to_list()
    assert found.verdict.startswith("Input-bound: the device waits for data 6")


def test_a_wait_is_never_what_is_slow() -> None:
    """The loader waits for a lock most of its time: what is named is the code that does the work."""
    wait = "<built-in method acquire of _thread.lock object at 0x7f00>"
    text = BOUND.replace("PIL/Image.py(3): open     ", wait).replace("15   20", "12   35")
    verdict = found_in(text).verdict
    assert "acquire" not in verdict
    assert "the slowest stage is DataLoader.__next__" in verdict
