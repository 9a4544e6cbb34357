"""Stands in for Cython's run-time module where Cython is not installed: decorators and types without effect."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")

compiled = False


def _unchanged(thing: T) -> T:
    return thing


final = cclass = cfunc = ccall = inline = _unchanged


class _NoGil:
    """`with cython.nogil:` and `@cython.nogil`."""

    def __call__(self, thing: T) -> T:
        return thing

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


nogil = _NoGil()
gil: AbstractContextManager[None] = nullcontext()


def exceptval(*_: object, **__: object) -> Callable[[T], T]:
    """The error value of a C function; without meaning in Python."""
    return _unchanged


def boundscheck(_: object) -> Callable[[T], T]:
    """Python checks bounds in any case."""
    return _unchanged


def cast(_: Any, value: T) -> T:
    """A C cast. Code that relies on wrap-around masks the value itself."""
    return value


def declare(_: Any = None, value: Any = None, **__: Any) -> Any:
    """A typed variable."""
    return value


class _Type:
    def __getitem__(self, _: object) -> _Type:
        return self

    def __call__(self, value: Any = 0) -> Any:
        return value


uchar = schar = short = ushort = int = uint = long = ulong = longlong = ulonglong = double = float = _Type()
Py_ssize_t = size_t = bint = const = void = _Type()
