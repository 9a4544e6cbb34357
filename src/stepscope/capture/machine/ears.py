"""Functions of PyTorch that are wrapped while a window records, so that it hears of what they are given.

torch.compile looks some of them up in each call of a compiled function, and compiles again where it finds another: those that it
guards on are left as they are once it has compiled anything, either with our wrapper or without.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol


class Function(NamedTuple):
    """`module` has it by this name; to scripts it is `op`. `is_guarded`: whether torch.compile looks it up in each call."""

    module: str
    name: str
    op: str
    is_guarded: bool = False


class Listener(Protocol):
    """Who hears of calls."""

    def note(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """The function of this name is called; whatever this raises would reach the job."""


class Ears:
    """Wraps some functions, for one listener at a time."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self._functions = functions
        self._wrapped: dict[Function, Callable[..., Any]] = {}
        self.listener: Listener | None = None

    def open(self, torch: Any, listener: Listener) -> None:
        """Let it hear of all calls from now on; where the functions have other names, of none."""
        try:
            self._wrap(torch)
            self.listener = listener
        except Exception:  # another version
            self._unwrap(torch)

    def close(self, torch: Any, listener: Listener) -> None:
        """Let it hear of nothing more."""
        if self.listener is listener:
            self.listener = None
            self._unwrap(torch)

    def _wrap(self, torch: Any) -> None:
        compiles = has_compiled()
        for each in self._functions:
            if each not in self._wrapped:
                if each.is_guarded and compiles:
                    continue
                self._wrapped[each] = self._heard(torch, each)
                # A job that scripts the function now gets the op, not ours. The table goes by identity, so ours is kept for good.
                torch.jit._builtins._register_builtin(self._wrapped[each], f"aten::{each.op}")
            self._exchange(each, _own(self._wrapped[each]), self._wrapped[each], compiles)

    def _unwrap(self, torch: Any) -> None:
        """Where ours has been wrapped in turn, it stays, and only calls what it wraps."""
        compiles = has_compiled()
        for each, heard in self._wrapped.items():
            self._exchange(each, heard, _own(heard), compiles)

    def _exchange(self, function: Function, old: Any, new: Any, compiles: bool) -> None:
        module = _found(function.module)
        if getattr(module, function.name, None) is old and not (function.is_guarded and compiles):
            setattr(module, function.name, new)

    def _heard(self, torch: Any, function: Function) -> Callable[..., Any]:
        name, own = function.name, getattr(_found(function.module), function.name)
        is_compiling = getattr(getattr(torch, "compiler", None), "is_dynamo_compiling", bool)

        @functools.wraps(own)
        def heard(*arguments: Any, **options: Any) -> Any:
            listener = self.listener
            if listener is not None and not is_compiling():
                listener.note(name, arguments, options)
            return own(*arguments, **options)

        return heard


def has_compiled() -> bool:
    """Whether torch.compile has compiled anything in this process; so it is taken to have where that is not known."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is None:
        return False
    try:
        return bool(dynamo.utils.counters["frames"])
    except Exception:
        return True


def is_transformed(torch: Any, tensor: Any) -> bool:
    """Whether the values are not there to be read later: in a transform of functions, a mode, or the capture of a CUDA graph."""
    if torch._C._functorch.peek_interpreter_stack() is not None or torch._C._len_torch_dispatch_stack():
        return True
    return tensor.device.type == "cuda" and bool(torch.cuda.is_current_stream_capturing())


def _found(module: str) -> Any:
    """By its full name; a part of an extension may not be listed as a module."""
    first, *rest = module.split(".")
    return functools.reduce(getattr, rest, sys.modules[first])


def _own(heard: Any) -> Any:
    """PyTorch's own function."""
    return heard.__wrapped__
