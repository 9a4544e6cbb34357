"""Names that are used in every way a loop can, and the look at the machine at both ends of a window."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import stepscope
from stepscope.capture.annotate import annotate as module
from stepscope.capture.annotate import native_scopes
from stepscope.capture.machine import nvml
from stepscope.capture.machine.telemetry import Telemetry

HOST: dict[str, Any] = {"backends": ("host",), "stacks": False}


def recorded(folder: Path, **options: Any) -> stepscope.Profiler:
    return stepscope.Profiler(folder, **(HOST | {"telemetry": False} | options))


def test_a_name_inside_itself_is_two_calls(tmp_path: Path) -> None:
    with recorded(tmp_path) as prof:
        with stepscope.annotate("part"), stepscope.annotate("part"):
            pass
        prof.step()
    assert prof.phases["part"]["calls"] == 2


def test_one_object_may_be_entered_again_and_by_others(tmp_path: Path) -> None:
    part = stepscope.annotate("part")
    inside = threading.Barrier(3)

    def work() -> None:
        with part:
            inside.wait()

    threads = [threading.Thread(target=work) for _ in range(2)]
    with recorded(tmp_path) as prof:
        for thread in threads:
            thread.start()
        with part:
            inside.wait()
        for thread in threads:
            thread.join()
        prof.step()
    assert prof.phases["part"]["calls"] == 3


def test_what_was_entered_before_the_window_does_not_end_what_came_after(tmp_path: Path) -> None:
    prof = recorded(tmp_path)
    with stepscope.annotate("part"):
        prof.start()
        with stepscope.annotate("part"):
            pass
    with stepscope.annotate("part"):
        prof.stop()
    assert prof.phases["part"]["calls"] == 1
    assert not module._names["part"]._open


def test_names_made_in_a_loop_are_not_all_kept() -> None:
    for number in range(module._MOST_NAMES + 10):
        with stepscope.annotate(f"made {number}"):
            pass
    assert len(module._names) <= module._MOST_NAMES


def test_a_short_window_has_a_sample_at_each_end(tmp_path: Path) -> None:
    with recorded(tmp_path, telemetry=True) as prof:
        prof.step()
    note = json.loads(next(tmp_path.glob("*.stepscope.json")).read_text("utf-8"))
    first, *_, last = note["telemetry"]["samples"]  # more in between, where the machine took its time
    assert first["rss_bytes"] > 0 and "cpu_percent" not in first
    assert last["cpu_percent"] >= 0 and last["unix_ns"] >= first["unix_ns"]


def test_gpus_are_asked_for_once(monkeypatch: Any) -> None:
    made: list[object] = []

    class Gpus:
        def __init__(self) -> None:
            made.append(self)

        def facts(self) -> list[dict[str, Any]]:
            return [{"index": 0, "name": "a GPU"}]

        def sample(self) -> list[dict[str, Any]]:
            return [{"index": 0, "power_watts": 70.0}]

    monkeypatch.setattr(nvml, "Nvml", Gpus)
    monkeypatch.setattr(nvml, "_shared", None)
    for _ in range(2):
        telemetry = Telemetry()
        telemetry.prepare()
        telemetry.before()
        told = telemetry.stop()
        assert told["gpus"] and all(row["gpus"][0]["power_watts"] == 70.0 for row in told["samples"])
    assert len(made) == 1


def _tensorflow(monkeypatch: pytest.MonkeyPatch, enabled: Any) -> Any:
    """A TensorFlow whose profiler says in this way whether it records."""
    trace: Any = ModuleType("tensorflow.python.profiler.trace")
    trace.enabled, trace.Trace = enabled, object
    modules: list[Any] = [ModuleType(name) for name in ("context", "ops", "tensorflow")]
    context, ops, tensorflow = modules
    context.executing_eagerly = lambda: True
    ops._default_graph_stack = SimpleNamespace(stack=[])
    tensorflow.name_scope = object
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", context)
    monkeypatch.setitem(sys.modules, "tensorflow.python.profiler.trace", trace)
    monkeypatch.setitem(sys.modules, "tensorflow.python.framework.ops", ops)
    monkeypatch.setattr(native_scopes, "loaded", ())
    return trace


def test_a_tensorflow_that_says_by_a_flag_whether_it_records(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = _tensorflow(monkeypatch, False)
    made = native_scopes._made("tensorflow", native_scopes._tensorflow)
    assert made is not None and not made.is_recording()
    trace.enabled = True
    assert made.is_recording()


def test_a_framework_whose_questions_fail_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> bool:
        raise TypeError("another version")

    _tensorflow(monkeypatch, fail)
    assert native_scopes._made("tensorflow", native_scopes._tensorflow) is None
