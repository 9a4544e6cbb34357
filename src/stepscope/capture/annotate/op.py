"""A custom operator under its own name: its host time, the device time below it, and what it did to memory."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from stepscope.capture.annotate.annotate import Annotation, Function, as_it_is, is_compiling, is_wanted
from stepscope.capture.annotate.native_scopes import Framework
from stepscope.capture.machine import memory
from stepscope.capture.process import active
from stepscope.ring_layout import OP


def op(name: str) -> Callable[[Function], Function]:
    """Report a function as an op of this name: `@stepscope.op("my_kernel")`."""

    def named(function: Function) -> Function:
        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            if not _is_wanted():
                return function(*arguments, **options)
            with _Call(name, arguments):
                return function(*arguments, **options)

        return call  # type: ignore[return-value]

    return named


@as_it_is
def _is_wanted() -> bool:
    return not is_compiling() and is_wanted()


class _Call(Annotation):
    """One call: an annotation that PyTorch takes for an op, with memory before and after."""

    kind = "op"
    _kind_in_ring = OP

    def __init__(self, name: str, arguments: tuple[Any, ...]) -> None:
        super().__init__(name)
        self._arguments = arguments

    def _open(self) -> None:
        self._allocated, self._used = _memory()
        super()._open()

    def _open_in(self, framework: Framework) -> None:
        if framework.name == "torch" and framework.is_recording():
            self._enter(_TorchOp(self._name, self._arguments))
        else:
            super()._open_in(framework)

    def _close(self) -> None:
        took = time.perf_counter_ns() - self._start
        super()._close()
        if active.is_timing:
            allocated, used = _memory()
            active.note_op(self._name, took, _change(self._allocated, allocated), _change(self._used, used))


def _memory() -> tuple[int | None, int | None]:
    if not active.is_timing:
        return None, None
    try:
        return memory.allocator_bytes(), memory.device_bytes()
    except Exception:  # a device that is being reset
        return None, None


def _change(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


class _TorchOp:
    """A record function of the scope that PyTorch's own ops have, so that shapes are recorded too."""

    __slots__ = ("_arguments", "_handle", "_name")

    def __init__(self, name: str, arguments: tuple[Any, ...]) -> None:
        import torch

        self._name = name
        self._arguments = [each for each in arguments if isinstance(each, torch.Tensor)]
        self._handle: Any = None

    def __enter__(self) -> _TorchOp:
        import torch

        self._handle = torch.autograd._record_function_with_args_enter(self._name, *self._arguments)
        return self

    def __exit__(self, *error: object) -> None:
        import torch

        torch.autograd._record_function_with_args_exit(self._handle)
        self._handle = None
