"""Promises that rest on what is sent to the device: pictures as floats, and samples that are in memory."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.host import host_python, input_bound
from stepscope.analysis.findings.spread import OF_BYTES, Spread
from stepscope.analysis.ops.sent import samples_sent, sends_pictures
from stepscope.trace.frames import conform
from tests.builders.cases import HEAD, case_of, gemm, steps
from tests.builders.inline import trace_of

_COPY = "Memcpy HtoD (Pageable -> Device)"
_COUNT = 4
_LOADING = "main  0  600  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  annotation  -"
_MAKING = "main  0  600  data.py(4): normalize  python  -"


def _case(
    making: str, shapes: str | None, dtypes: str = '["float", "float"]', between: tuple[str, ...] = ()
) -> Case:
    """Steps of 1 ms: 600 µs make a batch, and an op sends it in 200 µs. `between`: what comes before that."""
    rows = (
        making,
        *between,
        "main  600  210  aten::copy_  op  -",
        f"main  605  200  cudaMemcpyAsync  runtime  {_COPY}",
        f"stream 7  605  200  {_COPY}  copy  -",
        "main  815  100  aten::mm  op  -",
        *gemm(900, 80),
    )
    trace = trace_of("\n".join([HEAD, *steps(*rows, count=_COUNT)]), framework="pytorch")
    events = trace.events
    places = {"direction": pl.lit("HtoD"), "source": pl.lit("Pageable"), "target": pl.lit("Device")}
    copies = events.filter(pl.col("kind") == "copy").select(event="id", bytes=pl.lit(1 << 21), **places)
    senders = events.filter(pl.col("name").cast(pl.String) == "aten::copy_")
    noted = {"shapes": pl.lit(shapes, dtype=pl.String), "dtypes": pl.lit(dtypes)}
    unknown = {name: pl.lit(None) for name in trace.ops.columns if name not in ("event", *noted)}
    ops = senders.select(event="id", **noted, **unknown)
    tables = {"copies": conform(copies, trace.copies.schema), "ops": conform(ops, trace.ops.schema)}
    return case_of(trace.over({**trace.tables, **tables}, trace.cold))


@pytest.mark.parametrize(
    ("shapes", "dtypes", "pictures", "samples"),
    [
        ("[[64, 3, 224, 224], [64, 3, 224, 224]]", '["float", "float"]', True, 64),
        ("[[64, 224, 224, 3]]", '["float"]', True, 64),
        ("[[64, 3, 224, 224]]", '["unsigned char"]', False, 64),
        ("[[64, 80, 224, 224]]", '["float"]', False, 64),
        ("[[64, 3, 8, 224]]", '["float"]', False, 64),
        ("[[2048, 48]]", '["float"]', False, 2048),
        ("[[[1, 2]], 7]", '["float"]', False, 0),
        ("not a list", '["float"]', False, 0),
        ("[[]]", '["float"]', False, 0),
        (None, '["float"]', False, 0),
    ],
)
def test_what_is_sent_is_known_by_the_shapes_of_its_ops(
    shapes: str | None, dtypes: str, pictures: bool, samples: int
) -> None:
    case = _case(_MAKING, shapes, dtypes)
    assert (sends_pictures(case.trace), samples_sent(case.trace)) == (pictures, samples)


_PICTURES, _ROWS = "[[64, 3, 224, 224]]", "[[64, 1024]]"


def _sent_surely(case: Case) -> float:
    """What is left of the copies of a step with the smallest change, as a share."""
    mine = pl.col("event").is_in(case.trace.copies["event"].implode())
    left = case.changes[host_python.RULE.code].smallest.items.filter(mine)["device_ns"].sum()
    return int(left) / int(case.plan.items.filter(mine)["device_ns"].sum())


@pytest.mark.parametrize(("shapes", "left"), [(_PICTURES, 0.25), (_ROWS, 1.0)])
def test_pictures_that_python_turns_into_floats_are_sent_as_bytes(shapes: str, left: float) -> None:
    """No op of PyTorch reads the bytes where NumPy does."""
    case = _case(_MAKING, shapes)
    found = host_python.find(case)
    assert found is not None
    assert _sent_surely(case) == pytest.approx(left, rel=0.01)
    assert ("as bytes" in found.fix) == (left < 1)


def test_python_that_comes_long_before_pictures_are_sent_does_not_make_them() -> None:
    launches = tuple(row for at in range(500, 590, 10) for row in gemm(at, 5))
    case = _case(_MAKING.replace("600", "490"), _PICTURES, between=launches)
    found = host_python.find(case)
    assert found is not None
    assert sends_pictures(case.trace)
    assert _sent_surely(case) == 1.0
    assert "as bytes" not in found.fix


@pytest.mark.parametrize(("shapes", "counted"), [(_PICTURES, True), (_ROWS, False)])
def test_what_the_fix_puts_in_place_of_pictures_is_counted_once(
    shapes: str, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what goes, a share may come back; not where sending the bytes is played."""
    chosen: list[Spread | None] = []
    choose = host_python._choose_spread

    def note(made: host_python._Made, change: Change) -> Spread | None:
        chosen.append(choose(made, change))
        return chosen[-1]

    monkeypatch.setattr(host_python, "_choose_spread", note)
    assert host_python.find(_case(_MAKING, shapes)) is not None
    assert (chosen[0] is OF_BYTES) == counted
    assert not OF_BYTES.remains


def _found(shapes: str | None) -> tuple[Finding, Case]:
    case = _case(_LOADING, shapes)
    found = input_bound.find(case)
    assert found is not None
    return found, case


def _left(case: Case) -> list[int]:
    """Time of copies that are left of all steps: surely, and at most."""
    change = case.changes[input_bound.RULE.code]
    mine = pl.col("event").is_in(case.trace.copies["event"].implode())
    return [int(plan.items.filter(mine)["device_ns"].sum()) for plan in (change.smallest, change.largest)]


def test_samples_in_memory_are_picked_at_once_and_need_no_workers() -> None:
    """600 µs for 256 rows: nothing is read or decoded in 2.3 µs."""
    found, case = _found("[[256, 48]]")
    assert _left(case)[0] > 0
    assert _left(case)[1] == 0
    assert "picked one by one" in found.detail
    assert "one index" in found.fix
    assert "workers_needed" not in found.evidence


@pytest.mark.parametrize("shapes", ["[[16, 48]]", "[[4096, 48]]", None])
def test_samples_that_take_long_and_whole_batches_are_made_by_workers(shapes: str | None) -> None:
    """600 µs for 16 samples are 37 µs for each of them; nobody picks 4096 one by one in that time."""
    found, case = _found(shapes)
    assert min(_left(case)) > 0
    assert "picked one by one" not in found.detail
    assert "num_workers" in found.fix
