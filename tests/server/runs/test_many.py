"""A folder of logs with hundreds of runs: listed by their names and first bytes, which are read once."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stepscope import formats
from stepscope.profiles.find import runs as grouping
from stepscope.profiles.find.skipped import HEAD_BYTES
from stepscope.server.runs.watch import Place, Runs

RUNS = 500
START_NS = 1_700_000_000 * 10**9
MINUTE_NS = 60 * 10**9
_opened: Counter[str] | None = None
# Once for its rank; for when it was recorded its first bytes, whether it is packed, and its last bytes.
OPENS_OF_A_RUN = 4


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _opened is not None and event == "open" and str(arguments[0]).endswith(".pt.trace.json"):
        _opened[str(arguments[0])] += 1


sys.addaudithook(_note)


@contextmanager
def opens() -> Iterator[Counter[str]]:
    """How often each trace is opened meanwhile."""
    global _opened
    found: Counter[str] = Counter()
    _opened = found
    try:
        yield found
    finally:
        _opened = None


def write_logs(folder: Path, apart: bool) -> None:
    """Recordings of one job, a minute after each other, in one folder or in one each."""
    for number in range(RUNS):
        begins = START_NS + number * MINUTE_NS
        events = [
            {"ph": "X", "cat": "cpu_op", "name": f"aten::op_{k}", "pid": 7 + number, "tid": 1, "ts": k + 1, "dur": 1}
            for k in range(20)
        ]  # fmt: skip
        text = json.dumps({"baseTimeNanoseconds": begins, "traceEvents": events})
        place = folder / f"run_{number}" if apart else folder
        place.mkdir(parents=True, exist_ok=True)
        (place / f"host_{7 + number}.{begins + 10**9}.pt.trace.json").write_text(text)


@pytest.mark.parametrize("apart", [True, False])
def test_five_hundred_runs_are_listed_without_reading_them(
    apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a list of runs reads no trace")

    monkeypatch.setattr(formats, "read", refuse)
    write_logs(tmp_path, apart)
    runs = Runs([Place(str(tmp_path))])
    with opens() as first:
        assert len(runs.look_now().runs) == RUNS
    assert max(first.values()) <= OPENS_OF_A_RUN
    with opens() as again:
        assert len(runs.look_now().runs) == RUNS
    assert not again


def test_the_first_bytes_are_few() -> None:
    assert HEAD_BYTES <= 1 << 16


def test_runs_of_one_file_are_not_compared_with_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def note(*two: object) -> bool:
        compared.append(two)
        return False

    monkeypatch.setattr(grouping, "_repeats", note)
    write_logs(tmp_path, apart=True)
    Runs([Place(str(tmp_path))]).look_now()
    assert not compared
