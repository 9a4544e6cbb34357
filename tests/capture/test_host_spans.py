"""Stacks as the sampler sees them."""

from __future__ import annotations

import sys
import threading
import time

from stepscope.capture.process.host_spans import Sampler, _codes


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
    """Deep stacks, generators and short threads, with as many switches between threads as there can be."""
    before = sys.getswitchinterval()
    sampler = Sampler()
    sys.setswitchinterval(1e-6)
    sampler.start()
    try:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            thread = threading.Thread(target=_work, args=(20,))
            thread.start()
            thread.join()
    finally:
        sys.setswitchinterval(before)
        sampler.stop()
    assert any(span.name.endswith(": _work") for span in sampler.spans)


def _work(left: int) -> int:
    return _work(left - 1) if left else sum(i * i for i in range(3_000))
