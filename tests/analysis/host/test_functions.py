"""Functions of the job: their places, their whole calls, and those that ran in slow steps alone."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.account.account import account
from stepscope.analysis.host.functions import calls_of, functions_of_slow_steps, place_of, where
from stepscope.analysis.host.place import Place
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.trace import Trace
from tests.builders.inline import US, trace_of


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("train.py(12): step", Place("train.py", 12, "step")),
        ("/a (b)/train.py(12): <lambda>", Place("/a (b)/train.py", 12, "<lambda>")),
        ("$train.py:7 make_batch", Place("train.py", 7, "make_batch")),
        ("<built-in method sort of list>", None),
        ("$builtins len", None),
        ("aten::mm", None),
        ("x.py(99999999999999999999): f", None),
        (None, None),
    ],
)
def test_the_place_in_a_name(name: str | None, place: Place | None) -> None:
    assert place_of(name) == place


TRACE = """
    track     start  dur  name                   kind        launches
    main          0  900  ProfilerStep#1         annotation  -
    main          0  800  train.py(3): evaluate  python      -
    main         10  400  numpy/a.py(5): mean    python      -
    main        420   60  aten::copy_            op          -
    main        430   50  cudaMemcpyAsync        runtime     Memcpy DtoH
    main        800   50  aten::mm               op          -
    main        810   40  cudaLaunchKernel       runtime     gemm
    stream 7    440   30  Memcpy DtoH            copy        -
    stream 7    850   50  gemm                   kernel      -
    """


def event(trace: Trace, name: str) -> pl.Series:
    """The events of this name."""
    return trace.events.filter(pl.col("name").cast(pl.String) == name)["id"]


def test_a_call_is_its_python_ops_copies_and_waits() -> None:
    trace = trace_of(TRACE)
    calls = calls_of(trace, event(trace, "train.py(3): evaluate"))
    names = trace.events["name"].cast(pl.String)
    assert set(names.filter(calls.inside)) == {
        "train.py(3): evaluate",
        "numpy/a.py(5): mean",
        "aten::copy_",
        "cudaMemcpyAsync",
    }
    assert names.gather(calls.copies).to_list() == ["Memcpy DtoH"]
    assert names.gather(calls.waits).to_list() == ["cudaMemcpyAsync"]
    slices = account(trace, find_steps(trace)).slices
    owned = slices.filter(calls.owns(slices))
    # The whole call. The queue is filled again 50 µs later, but its wait ended 320 µs before, and had held the host up for 50 µs.
    assert int((owned["end_ns"] - owned["start_ns"]).sum()) == 800 * US


def test_no_frame_has_no_calls() -> None:
    trace = trace_of(TRACE)
    calls = calls_of(trace, pl.Series([None], dtype=pl.UInt32))
    assert not calls.inside.any()
    assert calls.launched.is_empty()


def test_places_of_events_each_once() -> None:
    trace = trace_of(TRACE)
    ids = pl.concat([event(trace, name) for name in ("aten::mm", "train.py(3): evaluate")] * 2)
    assert where(trace, ids) == [Place("train.py", 3, "evaluate")]


def loop(steps: int, slow: int) -> Trace:
    """Steps that train; one of them evaluates, which calls the model, too."""
    lines, now = [], 0
    for number in range(steps):
        length = 1000 if number == slow else 200
        lines.append(f"main  {now}  {length}  ProfilerStep#{number}  annotation  -")
        lines.append(f"main  {now}  150  train.py(3): train  python  -")
        lines.append(f"main  {now + 10}  100  train.py(9): model  python  -")
        if number == slow:
            lines.append(f"main  {now + 150}  800  train.py(20): evaluate  python  -")
            lines.append(f"main  {now + 160}  700  train.py(9): model  python  -")
        now += length
    return trace_of("\n".join(["track  start  dur  name  kind  launches", *lines]))


def test_the_function_that_ran_in_the_slow_step_alone_comes_first() -> None:
    trace = loop(8, slow=5)
    found = functions_of_slow_steps(trace, find_steps(trace).host, pl.Series([5], dtype=pl.Int32))
    assert found["name"].to_list() == ["train.py(20): evaluate", "train.py(9): model"]
    assert found["only_slow"].to_list() == [True, False]
    assert found["extra_ns"].to_list() == [800 * US, 700 * US]
    assert found["self_extra_ns"].to_list() == [100 * US, 700 * US]


def test_without_slow_steps_no_function_stands_out() -> None:
    trace = loop(8, slow=5)
    assert functions_of_slow_steps(trace, find_steps(trace).host, pl.Series([], dtype=pl.Int32)).is_empty()
