"""Loads are shared, bounded and let go; values are made once."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.profiles.cache import background
from stepscope.profiles.find.catalog import scan
from stepscope.profiles.load import load_run
from stepscope.profiles.profile import Profile
from stepscope.server.http.request import Refused
from stepscope.server.runs import opened
from stepscope.server.runs.listed import ListedRun, listed
from stepscope.server.runs.memo import Values, Workers, size_of
from stepscope.server.runs.opened import Limits, NotYet, Opened, OpenedRun
from stepscope.server.timeline.view import view_at
from tests.patience import PATIENCE_S, tries
from tests.server.conftest import SAMPLE


def runs_in(folder: Path, count: int) -> list[ListedRun]:
    """So many runs."""
    for number in range(count):
        shutil.copy(SAMPLE, folder / f"run{number}.pt.trace.json.gz")
    return [listed(run, str(folder)) for run in scan(folder).runs]


def got(store: Opened, run: ListedRun) -> OpenedRun:
    """The open run, however long it takes."""
    while True:
        try:
            return store.get(run)
        except NotYet:
            time.sleep(0.01)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[Opened]:
    made = Opened(getattr(request, "param", None))
    yield made
    made.close()


def test_many_ask_and_one_reads(store: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def slow(run: Any, **options: Any) -> Profile:
        calls.append(run.name)
        time.sleep(0.1)
        return load_run(run, **options)

    monkeypatch.setattr(opened, "load_run", slow)
    (run,) = runs_in(tmp_path, 1)
    monkeypatch.setattr(ListedRun, "is_stored", lambda self: False)
    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda _: got(store, run), range(20)))
    assert len({id(one) for one in found}) == 1
    assert len(calls) == 1


@pytest.mark.parametrize("store", [Limits(runs=2)], indirect=True)
def test_the_least_recently_used_goes(store: Opened, tmp_path: Path) -> None:
    a, b, c = runs_in(tmp_path, 3)
    first = got(store, a)
    got(store, b)
    assert got(store, a) is first
    got(store, c)
    assert [store.state(run)[0] for run in (a, b, c)] == ["ready", "new", "ready"]
    got(store, b)
    assert store.state(a)[0] == "new"


@pytest.mark.parametrize("store", [Limits(bytes=3_000_000)], indirect=True)
def test_bytes_are_bounded(store: Opened, tmp_path: Path) -> None:
    a, b = runs_in(tmp_path, 2)
    one, other = got(store, a), got(store, b)
    for number in range(10):
        other.kept(f"value {number}", lambda: bytes(1_000_000))
    assert store.room.bytes() <= 3_000_000
    assert store.state(a)[0] == "new"
    assert one.kept("x", lambda: 1) == 1  # whoever still holds it can go on


def test_a_read_profile_moves_out_of_memory(store: Opened, tmp_path: Path) -> None:
    (run,) = runs_in(tmp_path, 1)
    found = got(store, run)
    assert any(not found.is_in_memory for _ in tries())
    assert len(found.profile.traces[0].events) == len(load_run(run.run).traces[0].events)


def test_values_are_made_once_and_limited() -> None:
    workers = Workers(Limits())
    values = Values(workers, most=3)
    made: list[int] = []

    def make() -> int:
        made.append(1)
        time.sleep(0.05)
        return 7

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: values.kept("seven", make), range(8))) == {7}
    assert len(made) == 1
    for number in range(5):
        values.kept(str(number), lambda: bytes(100))
    assert values.bytes < 500
    assert values.kept("seven", lambda: 8) == 8
    workers.close()


def test_what_takes_long_is_not_waited_for() -> None:
    workers = Workers(Limits())
    values = Values(workers, most=3)
    go_on = threading.Event()
    with pytest.raises(NotYet) as told:
        values.later("slow", lambda: go_on.wait(PATIENCE_S), "thinking")
    assert told.value.progress.stage == "thinking"
    go_on.set()
    assert any(values.bytes for _ in tries())
    assert values.later("slow", lambda: False) is True
    workers.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks waits for as long as it takes."""
    monkeypatch.setattr("stepscope.server.runs.memo.PATIENCE_S", PATIENCE_S)


@pytest.mark.usefixtures("patient")
def test_what_will_be_asked_for_is_begun() -> None:
    workers = Workers(Limits(waiting=1, workers=1))
    values = Values(workers, most=3)
    go_on = threading.Event()
    values.soon("a", lambda: go_on.wait(PATIENCE_S))
    values.soon("a", lambda: False)
    values.soon("b", lambda: False)  # too much at once: left to whoever asks for it
    go_on.set()
    assert any(values.bytes for _ in tries())
    assert values.later("a", lambda: False) is True
    assert values.later("b", lambda: 5) == 5
    workers.close()


def test_what_will_be_asked_for_waits_for_what_is_asked_for_now() -> None:
    workers = Workers(Limits())
    values = Values(workers, most=3)
    values.soon("a", lambda: "later", after_s=0.01)
    assert values.bytes == 0
    assert any(values.bytes for _ in tries())
    assert values.later("a", lambda: "never") == "later"
    workers.close()


@pytest.mark.usefixtures("patient")
def test_a_failure_is_not_kept() -> None:
    workers = Workers(Limits())
    values = Values(workers, most=3)

    def fail() -> int:
        raise Refused("no")

    for _ in range(2):
        with pytest.raises(Refused, match="no"):
            values.later("x", fail)
    assert values.later("x", lambda: 1) == 1
    assert not values._making
    workers.close()


def test_too_much_at_once_is_refused() -> None:
    workers = Workers(Limits(waiting=2, workers=1))
    go_on = threading.Event()
    for _ in range(2):
        workers.submit(go_on.wait)
    with pytest.raises(Refused) as told:
        workers.submit(go_on.wait)
    assert told.value.status == 429
    go_on.set()
    workers.close()


def test_sizes() -> None:
    assert size_of(pl.DataFrame({"a": range(1000)})) >= 8000
    assert size_of({"a": [bytes(1000)], "b": memoryview(bytes(500))}) > 1500
    assert size_of(Limits()) > 0


def test_what_the_viewer_keeps_counts_as_memory(store: Opened, tmp_path: Path) -> None:
    """Rows of the picture with what native code holds of them, and arguments that were unpacked for somebody."""
    (listed_run,) = runs_in(tmp_path, 1)
    load_run(listed_run.run)
    background.wait()
    run = got(store, listed_run)
    rank = run.profile.ranks[0]
    events = len(run.profile.trace(rank).events)
    before = run.bytes
    made = view_at(run, rank).store
    order, longest, roles = 4 * events, events // 4, events
    assert size_of(made) == made.nbytes >= order + longest + roles
    assert run.bytes >= before + made.nbytes
    before = run.bytes
    run.kept("arguments", lambda: run.profile.trace(rank).arguments(0))
    unpacked = sum(frame.estimated_size() for frame in run.profile.trace(rank).cold.values())
    assert unpacked > 10_000
    assert run.bytes >= before + 0.9 * unpacked  # names count once for all


def test_unpacked_arguments_go_when_there_is_no_room(store: Opened, tmp_path: Path) -> None:
    (listed_run,) = runs_in(tmp_path, 1)
    load_run(listed_run.run)
    background.wait()
    run = got(store, listed_run)
    arguments = run.profile.traces[0].arguments(0)
    run.kept("a", lambda: 1)
    run.kept("b", lambda: 2)
    full = run.bytes
    assert run.forget_oldest() and run.forget_oldest()
    assert not run.forget_oldest()
    assert run.bytes < full - 10_000
    assert run.profile.traces[0].arguments(0) == arguments
