"""Stacks as the sampler sees them."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.capture.process.host_spans import _codes
from stepscope.capture.process.stacks import read_stack


def test_a_stack_from_the_outermost_function_inwards() -> None:
    def inner() -> list[str]:
        return [code.co_name for code in _codes(sys._getframe())]

    def outer() -> list[str]:
        return inner()

    assert outer()[-3:] == ["test_a_stack_from_the_outermost_function_inwards", "outer", "inner"]


def test_only_the_innermost_of_a_deep_stack() -> None:
    def deep(left: int) -> list[str]:
        return deep(left - 1) if left else [code.co_name for code in _codes(sys._getframe())]

    assert deep(100) == ["deep"] * 64


def test_stepscope_itself_is_not_seen() -> None:
    names = {"__name__": "stepscope.capture.somewhere"}
    exec("import sys\ndef own(see): return see(sys._getframe())", names)
    own = names["own"]
    assert callable(own)
    assert "own" not in [code.co_name for code in own(_codes)]


def test_threads_that_end_while_they_are_sampled() -> None:
    """In a process of its own: what goes wrong here ends a process."""
    job = Path(__file__).parent / "jobs" / "short_threads.py"
    done = subprocess.run([sys.executable, str(job)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("collects", [True, False])
def test_whether_garbage_is_collected_stays_as_it_was(collects: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        assert _codes(sys._getframe())
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="only 3.11 collects while it makes frames")
def test_no_finalizer_runs_while_a_stack_is_read() -> None:
    """A collection would let the thread that is looked at go on."""
    begun: list[str] = []
    thresholds = gc.get_threshold()
    note = lambda phase, info: begun.append(phase)  # noqa: E731

    def deep(left: int) -> int:
        if left:
            return deep(left - 1)
        gc.collect()
        begun.clear()
        return len(read_stack(sys._getframe(), 64))

    gc.set_threshold(20)
    gc.callbacks.append(note)
    try:
        assert deep(100) == 64
        assert not begun
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*thresholds)
