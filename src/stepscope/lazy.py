"""Dataclasses that are finished when first used.

`dataclasses` compiles six methods for each class, about a millisecond: a report imports some two hundred classes, and needs
a quarter of them.
"""

from __future__ import annotations

import dataclasses
from threading import RLock
from typing import TYPE_CHECKING, Any

_FIELDS = "__dataclass_fields__"
_finishing = RLock()  # of any class: finishing one may finish its bases

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from inspect import Signature
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """As `dataclasses.dataclass`, but the methods are made for the first instance, or when someone asks for the fields."""
        if cls is None:
            return lambda found: dataclass(found, **options)
        if options.get("slots") or "__new__" in vars(
            cls
        ):  # another class, or a way of its own to make instances
            return dataclasses.dataclass(cls, **options)
        setattr(cls, _FIELDS, _Unfinished(cls, options))
        cls.__new__, cls.__signature__ = _finish_first, _Signature()
        return cls


class _Unfinished:
    """In place of the fields of a class that has not been finished."""

    def __init__(self, cls: type, options: dict[str, Any]) -> None:
        self._cls, self._options = cls, options

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        with _finishing:
            if vars(self._cls)[_FIELDS] is self:
                delattr(self._cls, _FIELDS)
                dataclasses.dataclass(self._cls, **self._options)
                self._cls.__new__ = (
                    _new  # none at all is no way back: Python would refuse what is meant for `__init__`
                )
            fields: dict[str, Any] = vars(self._cls)[_FIELDS]
            return fields


class _Signature:
    """What documentation and completion show: `__new__` takes anything, so that of `__init__`."""

    def __get__(self, instance: object, owner: type) -> Signature:
        from inspect import signature

        getattr(owner, _FIELDS)
        found = signature(owner.__init__)  # type: ignore[misc]
        return found.replace(parameters=list(found.parameters.values())[1:])


def _finish_first(cls: type, *values: object, **named: object) -> Any:
    """The `__new__` of a class that has not been finished: its `__init__` is looked for afterwards."""
    getattr(cls, _FIELDS)
    return object.__new__(cls)


def _new(cls: type, *values: object, **named: object) -> Any:
    """The `__new__` of a class that has been finished."""
    return object.__new__(cls)
