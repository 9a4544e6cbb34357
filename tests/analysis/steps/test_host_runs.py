"""Programs that JAX runs on the CPU behind the host: steps last until these have run, and their time is compute."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.account.account import account
from stepscope.analysis.replay.plan import recorded_plan
from stepscope.analysis.steps.find import find_steps, steps_of_events
from stepscope.analysis.steps.host_runs import host_runs
from stepscope.trace.trace import Trace
from tests.builders.inline import trace_of

HEAD = "track  start  dur  name  kind"
RUNNER, HELPER = "tf_XLAPjRtCpuClient/1", "tf_XLAEigen/2"
CALL = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
WAIT = "ThunkExecutor::Execute (wait for completion)"


def call(at: int, name: str, *inside: str) -> list[str]:
    """A function is called, and hands its program over, unless it runs it itself."""
    return [f"main  {at}  10  PjitFunction({name})  span", f"main  {at + 2}  6  {CALL}  span", *inside]


def run(at: int, length: int, *ops: str) -> list[str]:
    """A thread runs a program, for which others compute."""
    first = f"{RUNNER}  {at}  5  ThunkExecutor::Execute  span"
    return [first, f"{RUNNER}  {at + 5}  {length - 5}  {WAIT}  span", *ops]


def jax_trace(*rows: str) -> Trace:
    """Three steps of 100 µs on the host, and 60 µs between them and the end of the recording."""
    marks = [f"main  {100 * number}  100  train#{number}  annotation" for number in range(3)]
    return trace_of("\n".join([HEAD, *marks, "main  900  10  stop  span", *rows]), framework="jax")


def ahead() -> Trace:
    """Each step calls two functions within 100 µs, whose programs then take 250 µs."""
    rows = []
    for number in range(3):
        rows += [*call(100 * number + 20, "update"), *call(100 * number + 50, "loss")]
        at = 40 + 250 * number
        rows += run(at, 150, f"{HELPER}  {at + 10}  90  dot.1  op")
        rows += run(at + 150, 100, f"{HELPER}  {at + 150}  100  dot.2  op")
    return jax_trace(*rows)


def test_steps_last_until_the_programs_that_they_called_have_run() -> None:
    steps = find_steps(ahead())
    ends = (steps.windows["end_ns"] - steps.windows["start_ns"][0]) // 1000
    assert ends.to_list() == [290, 540, 790]
    assert steps.windows["start_ns"][1:].to_list() == steps.windows["end_ns"][:-1].to_list()


def test_a_program_computes_while_it_runs_though_no_op_says_so() -> None:
    """Named by the function that called it."""
    trace = ahead()
    made = account(trace, find_steps(trace)).slices
    computing = made.filter(pl.col("part") == "host_compute")
    names = trace.events["name"].cast(pl.String).gather(computing["named_by"])
    by_name = pl.DataFrame([names, computing["end_ns"] - computing["start_ns"]]).group_by("name").sum()
    times = {name: ns // 1000 for name, ns in by_name.iter_rows()}
    assert times["dot.1"] == 3 * 90
    assert times["PjitFunction(update)"] + times.get("ThunkExecutor::Execute", 0) == 3 * 60
    assert sum(times.values()) == 750


def test_what_runs_behind_the_host_is_of_the_step_in_which_it_runs() -> None:
    trace = ahead()
    steps = find_steps(trace)
    of = steps_of_events(trace, steps.host, steps.windows)
    named = pl.DataFrame({"name": trace.events["name"].cast(pl.String), "step": of})
    assert named.filter(pl.col("name") == "dot.2")["step"].to_list() == [0, 1, 2]
    assert named.filter(pl.col("name") == "PjitFunction(loss)")["step"].to_list() == [0, 1, 2]


@pytest.mark.parametrize(
    ("rows", "spans"),
    [
        ([*call(10, "f"), *run(30, 100)], [(12, 35, 130)]),
        (
            [*call(10, "f", "main  13  4  ThunkExecutor::Execute  span"), *call(40, "g"), *run(60, 100)],
            [(42, 65, 160)],
        ),
        ([*run(5, 15), *call(10, "f"), *run(30, 100)], [(12, 35, 130)]),
        ([*call(10, "f"), *call(40, "g"), *run(60, 100)], [(12, 65, 160)]),
        (["main  10  10  PjitFunction(f)  span"], []),
    ],
)
def test_runs_are_matched_with_calls_in_the_order_of_both(
    rows: list[str], spans: list[tuple[int, int, int]]
) -> None:
    """Not with calls that run their program themselves, nor with those that were made before the recording or ran after it."""
    trace = jax_trace(*rows)
    origin = int(trace.events["start_ns"].min() or 0)  # type: ignore[arg-type]
    found = host_runs(trace).select((pl.col("at_ns", "start_ns", "end_ns") - origin) // 1000)
    assert found.rows() == spans


def test_the_replay_takes_as_long_as_the_programs_do() -> None:
    trace = ahead()
    made = recorded_plan(trace, find_steps(trace), None)[0]
    assert made.step_ns() == pytest.approx(263_000, rel=0.03)


def _read_back() -> Trace:
    """Each step calls a function, and then reads its result, for which it waits 70 of 100 µs."""
    rows = []
    for number in range(3):
        at = 100 * number
        rows += [*call(at + 5, "update"), f"main  {at + 20}  74  np.asarray(jax.Array)  span"]
        rows += run(at + 12, 80, f"{HELPER}  {at + 15}  75  dot.1  op")
    return jax_trace(*rows)


def test_waiting_for_a_program_of_the_host_takes_the_time_of_the_program() -> None:
    """No device works meanwhile: what the thread waits for is the host's own work."""
    trace = _read_back()
    found, _ = recorded_plan(trace, find_steps(trace), None)
    assert found.step_ns() == pytest.approx(100_000, rel=0.05)
    assert found.host.filter(pl.col("cause") == "host_compute")["recorded_ns"].sum() > 3 * 60_000
