"""A value that several threads may ask of an object: computed once, by whoever asks first, while the others wait."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class shared(Generic[T]):
    """Like functools.cached_property, with a lock for each object and value. A value may ask for others, without circles."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        values = instance.__dict__
        locks: dict[str, RLock] = values.setdefault("_locks", {})
        with locks.setdefault(self._name, RLock()):
            if self._name not in values:
                values[self._name] = self._compute(instance)
        found: T = values[self._name]
        return found
