"""The snapshot of an out-of-memory error, with a stand-in for PyTorch: written once, bounded, and the error stays as it is."""

from __future__ import annotations

import pickle
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.backends.out_of_memory import FOLDER, SWITCH, WITHOUT_STACKS, Watch
from stepscope.capture.schedule import NEVER


class FakeTorch(types.ModuleType):
    """As much of torch as is asked: CUDA that is initialised later, a history, an observer."""

    def __init__(self, history: bool = False, available: bool = True) -> None:
        super().__init__("torch")
        self.calls: list[str] = []
        self.contexts: list[str | None] = []
        self.reserved = 0
        self.traces: list[list[dict[str, Any]]] = []
        self.waiting: list[Any] = []
        self.observer: Any = None
        self.broken = False
        self.cuda: Any = types.SimpleNamespace()
        self.cuda.is_available = lambda: available
        self.cuda._lazy_call = self.waiting.append
        self.cuda.current_device = lambda: 0
        self.cuda.get_device_properties = lambda device: types.SimpleNamespace(total_memory=1000)
        self.cuda.memory_reserved = lambda device: self.reserved
        self.cuda.memory = types.SimpleNamespace(
            _record_memory_history=self._record,
            _snapshot=self._snapshot,
        )
        self._C: Any = types.SimpleNamespace(
            _cuda_isHistoryEnabled=lambda: history, _cuda_attach_out_of_memory_observer=self._attach
        )

    def _record(self, *, enabled: str | None, context: str | None = "none", **_: Any) -> None:
        self.calls.append(f"history {enabled}")
        self.contexts.append(context)

    def _attach(self, observer: Any) -> None:
        self.observer = observer

    def _snapshot(self) -> dict[str, Any]:
        if self.broken:
            raise RuntimeError("no")
        return {"segments": [], "device_traces": self.traces}

    def initialise(self) -> None:
        """What the job's first use of CUDA does."""
        for act in self.waiting:
            act()


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTorch]:
    """In place of the real one."""
    yield install(monkeypatch, FakeTorch())


def install(monkeypatch: pytest.MonkeyPatch, fake: FakeTorch) -> FakeTorch:
    """For this test."""
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setitem(sys.modules, "torch.cuda", fake.cuda)
    warnings.simplefilter("ignore")
    return fake


def written(folder: Path) -> list[Path]:
    """The snapshots there."""
    return sorted((folder / FOLDER).rglob("*.pickle"))


def test_nothing_happens_before_the_job_uses_cuda(torch: FakeTorch, tmp_path: Path) -> None:
    Watch().start(tmp_path)
    assert torch.calls == [] and torch.observer is None
    torch.initialise()
    assert torch.calls == ["history all"] and torch.observer is not None


def test_a_failure_leaves_a_snapshot(torch: FakeTorch, tmp_path: Path) -> None:
    watch = Watch()
    watch.start(tmp_path)
    torch.initialise()
    torch.observer(0, 1024, 2048, 512)
    assert written(tmp_path) == watch.files
    assert pickle.loads(watch.files[0].read_bytes()) == {"segments": [], "device_traces": []}


def test_a_job_that_tries_again_leaves_two_at_most(torch: FakeTorch, tmp_path: Path) -> None:
    Watch().start(tmp_path)
    torch.initialise()
    for _ in range(5):
        torch.observer(0, 1, 1, 1)
    assert len(written(tmp_path)) == 2


def test_what_fails_here_never_reaches_the_job(torch: FakeTorch, tmp_path: Path) -> None:
    Watch().start(tmp_path)
    torch.initialise()
    torch.broken = True
    with pytest.warns(UserWarning, match="could not be written: RuntimeError: no"):
        torch.observer(0, 1, 1, 1)
    assert written(tmp_path) == []


def test_a_history_of_the_job_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = install(monkeypatch, FakeTorch(history=True))
    watch = Watch()
    watch.start(tmp_path)
    fake.initialise()
    watch.stop()
    assert fake.calls == [] and fake.observer is not None


def test_after_stop_nothing_is_written(torch: FakeTorch, tmp_path: Path) -> None:
    watch = Watch()
    watch.start(tmp_path)
    torch.initialise()
    watch.stop()
    torch.observer(0, 1, 1, 1)
    assert torch.calls == ["history all", "history None"] and written(tmp_path) == []


def test_for_good_outlasts_the_window(torch: FakeTorch, tmp_path: Path) -> None:
    watch = Watch()
    watch.start(tmp_path, for_good=True)
    torch.initialise()
    watch.start(tmp_path / "window")
    watch.stop()
    torch.observer(0, 1, 1, 1)
    assert len(written(tmp_path)) == 1


def test_without_cuda_or_when_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = install(monkeypatch, FakeTorch(available=False))
    Watch().start(tmp_path)
    monkeypatch.setenv(SWITCH, "0")
    other = install(monkeypatch, FakeTorch())
    Watch().start(tmp_path)
    assert fake.waiting == other.waiting == []


def test_stacks_are_recorded_at_first_and_while_memory_is_short(torch: FakeTorch, tmp_path: Path) -> None:
    watch = Watch()
    watch.start(tmp_path)
    torch.initialise()
    after = watch.look(0)
    assert torch.contexts == ["alloc"]
    again = watch.look(after)
    assert after < again and torch.contexts == ["alloc", None]
    torch.reserved = 700
    later = watch.look(again)
    assert again < later and torch.contexts == ["alloc", None, "alloc"]
    watch.look(later)
    assert torch.contexts == ["alloc", None, "alloc"]


def test_looks_never_touch_a_history_of_the_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch = install(monkeypatch, FakeTorch(history=True))
    watch = Watch()
    watch.start(tmp_path)
    torch.initialise()
    number = 0
    for _ in range(4):
        number = watch.look(number)
    assert torch.contexts == [] and number < NEVER


def test_nothing_is_looked_at_when_no_snapshot_is_wanted(torch: FakeTorch) -> None:
    assert Watch().look(0) == NEVER


def test_a_version_that_cannot_tell_keeps_what_it_records(torch: FakeTorch, tmp_path: Path) -> None:
    watch = Watch()
    watch.start(tmp_path)
    torch.initialise()
    del torch.cuda.memory_reserved
    watch.look(watch.look(0))
    assert torch.contexts == ["alloc"]


@pytest.mark.parametrize("frames", [[], [{"filename": "model.py", "line": 3, "name": "forward"}]])
def test_the_line_that_asked_is_known_without_stacks(
    torch: FakeTorch, tmp_path: Path, frames: list[dict[str, Any]]
) -> None:
    watch = Watch()
    watch.start(tmp_path)
    torch.initialise()
    torch.traces = [[{"action": "alloc", "frames": []}, {"action": "oom", "frames": frames}], []]
    torch.observer(0, 1 << 30, 1 << 40, 0)
    (path,) = written(tmp_path)
    first, failed = pickle.loads(path.read_bytes())["device_traces"][0]
    assert first["frames"] == []
    if frames:
        assert failed["frames"] == frames
    else:
        inner = failed["frames"][0]
        assert (inner["name"], inner["filename"]) == (
            "test_the_line_that_asked_is_known_without_stacks",
            __file__,
        )


def test_a_snapshot_says_when_no_stacks_were_recorded(torch: FakeTorch, tmp_path: Path) -> None:
    watch = Watch()
    watch.start(tmp_path)
    torch.initialise()
    torch.traces = [[]]
    number = watch.look(watch.look(0))
    torch.reserved = 700
    watch.look(number)
    torch.observer(0, 1, 1, 1)
    begin, end = pickle.loads(watch.files[0].read_bytes())["external_annotations"]
    assert [note["stage"] for note in (begin, end)] == ["START", "END"]
    assert begin["name"] == end["name"] == WITHOUT_STACKS and begin["device"] == 0
    assert begin["time_us"] <= end["time_us"]
