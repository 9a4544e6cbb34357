"""What surely goes with a fix, and what only may: functions beside the longest, workers, and a host that is kept busy."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.change import with_busy_host
from stepscope.analysis.findings.rules.host import host_python, input_bound
from stepscope.analysis.findings.rules.useless import padding
from stepscope.analysis.input_facts import InputFacts
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.policy.useless_work import NOT_PADDING_LEAST, NOT_PADDING_MOST
from stepscope.trace.frames import conform
from tests.builders.cases import HEAD, case_of, case_of_text, gemm, steps
from tests.builders.inline import trace_of


def _python_left(*rows: str) -> tuple[float, float]:
    """µs of Python in a step that surely and that possibly stay."""
    case = case_of_text(steps(*rows, *gemm(900, 80), count=4))
    assert host_python.find(case) is not None
    change = case.changes[host_python.RULE.code]
    smallest, largest = (
        int(plan.host.filter(pl.col("cause") == "python")["recorded_ns"].sum()) / 4e3
        for plan in (change.smallest, change.largest)
    )
    return smallest, largest


def test_what_is_beside_the_function_that_takes_most_may_stay() -> None:
    surely, at_most = _python_left(
        "main  0  600  data.py(4): normalize  python  -", "main  600  200  data.py(9): join  python  -"
    )
    assert surely == pytest.approx(200, rel=0.05)
    assert at_most == 0


@pytest.mark.parametrize(
    "rows",
    [
        ("main  0  400  data.py(4): normalize  python  -", "main  400  400  data.py(9): join  python  -"),
        (
            "main  0  800  data.py(4): sample  python  -",
            "main  10  600  numpy/_core/shape_base.py(378): stack  python  -",
        ),
    ],
)
def test_all_goes_where_no_function_stands_out_or_one_calls_the_rest(rows: tuple[str, ...]) -> None:
    assert _python_left(*rows) == (0, 0)


def _high_over_mid(sending: int) -> float:
    """Of `host-python` in steps of 1 ms, 600 µs of them Python; the copy of what it made takes the host so many µs."""
    lines = steps(
        "main  0  600  data.py(4): gather  python  -",
        f"main  600  {sending}  device_put  op  -",
        f"main  {600 + sending - 10}  5  cudaMemcpyAsync  runtime  Memcpy HtoD (Pageable -> Device)",
        f"stream 7  {600 + sending - 5}  20  Memcpy HtoD (Pageable -> Device)  copy  -",
        f"main  {600 + sending}  {340 - sending}  step  op  -",
        *gemm(970, 15),
        count=4,
    )
    trace = trace_of("\n".join([HEAD, *lines]))
    copies = trace.events.filter(pl.col("kind") == "copy")
    places = {"direction": pl.lit("HtoD"), "source": pl.lit("Pageable"), "target": pl.lit("Device")}
    table = copies.select(event="id", bytes=pl.lit(1 << 20), **places)
    table = conform(table, trace.copies.schema)
    case = case_of(trace.over({**trace.tables, "copies": table}, trace.cold))
    found = host_python.find(case)
    assert found is not None
    return found.speedup.high / found.speedup.mid


def test_where_sending_is_most_of_what_is_left_it_may_all_go() -> None:
    """Only an index is sent where the device has the data already."""
    assert _high_over_mid(300) > 1.5 * _high_over_mid(200)


@pytest.mark.parametrize(("framework", "stays"), [("jax", True), ("pytorch", False)])
def test_a_program_is_called_after_the_fix_as_well(framework: str, stays: bool) -> None:
    """In place of the stack of a list, a compiled function picks the rows."""
    rows = [
        "main  0  800  replay.py(4): sample  python  -",
        "main  400  100  stack  op  -",
        "main  420  60  cudaLaunchKernel  runtime  stacked",
        "stream 7  480  10  stacked  kernel  -",
    ]
    case = case_of_text(steps(*rows, *gemm(900, 80), *gemm(950, 30), count=4), framework=framework)
    assert host_python.find(case) is not None
    change = case.changes[host_python.RULE.code]
    inside = (pl.col("cause") == "dispatch") & pl.col("named_by").is_in(
        case.trace.events.filter(pl.col("name").is_in(["stack", "cudaLaunchKernel"]))["id"].implode()
    )
    before, surely, at_most = (
        int(plan.host.filter(inside)["recorded_ns"].sum())
        for plan in (case.plan, change.smallest, change.largest)
    )
    assert (surely > before / 2) == stays
    assert at_most < before


_WAITING = "main  0  700  enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__  annotation  -"


@pytest.mark.parametrize(
    ("workers", "cores", "left"), [(4, 8, 200), (4, 16, 0), (16, 16, 700), (4, None, 200)]
)
def test_a_loader_with_workers_gets_as_many_as_there_are_cores(
    workers: int, cores: int | None, left: int
) -> None:
    """A step of 1000 µs, of which 300 are not spent waiting: twice as many workers leave 500, and 200 to wait."""
    case = case_of_text(steps(_WAITING, *gemm(700, 285), count=4))
    facts = InputFacts(has_workers=True, workers=workers, cores=cores)
    change = input_bound.loaded_beside(case, facts)
    waiting = int(change.smallest.host.filter(pl.col("cause") == "input")["ns"].sum()) / 4e3
    assert waiting == pytest.approx(left, abs=25)


def test_shorter_batches_are_sent_and_at_most_made_in_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        _WAITING.replace("700", "300"),
        "main  300  100  cudaMemcpyAsync  runtime  Memcpy HtoD (Pageable -> Device)",
        "stream 7  305  95  Memcpy HtoD (Pageable -> Device)  copy  -",
        *gemm(410, 500),
    )
    trace = trace_of("\n".join([HEAD, *steps(*rows, count=4)]), framework="pytorch")
    copies = trace.events.filter(pl.col("kind") == "copy").select(
        event="id",
        bytes=pl.lit(1 << 20),
        direction=pl.lit("HtoD"),
        source=pl.lit("Pageable"),
        target=pl.lit("Device"),
    )
    case = case_of(trace.over({**trace.tables, "copies": conform(copies, trace.copies.schema)}, trace.cold))
    monkeypatch.setattr(padding, "_padded_length", lambda case: 512)
    assert padding.find(case) is not None
    change = case.changes[padding.RULE.code]
    mine = pl.col("event").is_in(copies["event"].implode())
    sent = [plan.items.filter(mine)["device_ns"][0] / 95e3 for plan in (change.smallest, change.largest)]
    assert sent == pytest.approx([NOT_PADDING_MOST, NOT_PADDING_LEAST], rel=0.01)
    before, *made = (
        int(plan.host.filter(pl.col("cause") == "input")["ns"].sum())
        for plan in (case.plan, change.smallest, change.largest)
    )
    assert [each / before for each in made] == pytest.approx([1, NOT_PADDING_LEAST], rel=0.01)


def test_a_host_that_waited_for_the_device_dispatches_faster_when_it_is_kept_busy() -> None:
    """100 µs of dispatch, and 880 µs of the device that the host waits for."""
    waits = "main  105  880  cudaStreamSynchronize  runtime  -"
    plan = case_of_text(steps("main  0  100  aten::mm  op  -", *gemm(90, 880), waits, count=4)).plan

    def dispatch(of: Plan) -> int:
        return int(of.host.filter(pl.col("cause") == "dispatch")["ns"].sum())

    assert dispatch(with_busy_host(plan, plan, 0.7)) == pytest.approx(0.7 * dispatch(plan), rel=0.01)
    assert with_busy_host(plan, plan, 0.7, idle=0.95) is plan
