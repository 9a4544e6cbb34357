"""Dataclasses and patterns that are finished when first used, and with little to compile.

`dataclasses` compiles six methods for each class, about a millisecond: a report imports some two hundred classes, and needs
a quarter of them. Of those, only `__init__` is worth compiling: the others are called too rarely, or lose nothing as closures.
Most patterns are for names of libraries that a profile does not mention.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from threading import RLock
from typing import TYPE_CHECKING, Any, AnyStr

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
                _finish(self._cls, self._options)
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
    with _finishing:  # or another thread has given it fields, and no `__init__` yet
        getattr(cls, _FIELDS)
    return object.__new__(cls)


def _new(cls: type, *values: object, **named: object) -> Any:
    """The `__new__` of a class that has been finished."""
    return object.__new__(cls)


def _finish(cls: type, options: dict[str, Any]) -> None:
    """What `dataclasses` would do, but all except `__init__` without compiling anything."""
    if not set(options) <= {"frozen", "kw_only"} or not _is_plain(cls):
        dataclasses.dataclass(cls, **options)
        return
    own, frozen = dict(vars(cls)), bool(options.get("frozen"))
    dataclasses.dataclass(cls, init=False, repr=False, eq=False, kw_only=bool(options.get("kw_only")))
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {"__init__": _init(cls, fields, frozen), "__repr__": _repr(fields)}
    methods["__eq__"] = _eq([each.name for each in fields if each.compare])
    if "__hash__" not in own or (own["__hash__"] is None and "__eq__" in own):
        hashed = [each.name for each in fields if (each.compare if each.hash is None else each.hash)]
        own.pop("__hash__", None)
        methods["__hash__"] = _hash(hashed) if frozen else None
    if frozen:
        methods["__setattr__"], methods["__delattr__"] = _refusals(cls, {each.name for each in fields})
    for name, method in methods.items():
        if name not in own:
            if method is not None:
                method.__qualname__ = f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)
    parameters = vars(cls)["__dataclass_params__"]  # which decide who may inherit
    parameters.init = parameters.repr = parameters.eq = True
    parameters.frozen = frozen


def _is_plain(cls: type) -> bool:
    """Whether it inherits no fields, and leaves to `dataclasses` no more than methods."""
    inherits = any(hasattr(base, _FIELDS) for base in cls.__bases__)
    special = {"__slots__", "__setattr__", "__delattr__"} & set(vars(cls))
    types = map(str, vars(cls).get("__annotations__", {}).values())
    return not (inherits or special or cls.__doc__ is None or any("InitVar" in each for each in types))


class _Absent:
    """In place of a default that is made for each instance; signatures show it."""

    def __repr__(self) -> str:
        return "<factory>"


_ABSENT = _Absent()


def _init(cls: type, fields: tuple[dataclasses.Field[Any], ...], frozen: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"_put_": object.__setattr__, "_absent_": _ABSENT}
    this = "_self_" if any(each.name == "self" for each in fields) else "self"
    by_position, by_name, lines = [this], list[str](), list[str]()
    for each in fields:
        name = value = each.name
        if each.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}_"] = each.default_factory
            default = "=_absent_"
            value = f"_make_{name}_()" + (f" if {name} is _absent_ else {name}" if each.init else "")
        elif each.default is not dataclasses.MISSING:
            known[f"_default_{name}_"] = each.default
            default = f"=_default_{name}_"
        else:
            default = ""
        if each.init:
            (by_name if each.kw_only else by_position).append(f"{name}{default}")
        elif value == name:  # set by others, or as it is in the class
            continue
        lines.append(f"_put_({this}, {name!r}, {value})" if frozen else f"{this}.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(f"{this}.__post_init__()")
    taken = [*by_position, *(["*", *by_name] if by_name else [])]
    exec(f"def __init__({', '.join(taken)}):\n " + "\n ".join(lines or ["pass"]), known)
    made: Callable[..., None] = known["__init__"]
    made.__annotations__ = {each.name: each.type for each in fields if each.init} | {"return": None}
    made.__module__ = cls.__module__
    return made


def _repr(fields: tuple[dataclasses.Field[Any], ...]) -> Callable[[Any], str]:
    shown = [each.name for each in fields if each.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({values})"

    return __repr__


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Those of an instance, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _eq(names: list[str]) -> Callable[[Any, object], bool]:
    values = _values(names)

    def __eq__(self: Any, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return __eq__


def _hash(names: list[str]) -> Callable[[Any], int]:
    values = _values(names)

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _refusals(cls: Any, names: set[str]) -> tuple[Callable[..., None], Callable[..., None]]:
    """Of a frozen class: `__setattr__` and `__delattr__`."""

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


class _Pattern:
    """In place of a pattern that has not been compiled, and then with its methods."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._wanted: Any = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._wanted), name)
        setattr(self, name, found)  # the next time it is not asked for here
        return found


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, but compiled when it is first used; for `search` and all other methods, not for functions of `re`."""
    made: Any = _Pattern(text, flags)
    return made  # type: ignore[no-any-return]
