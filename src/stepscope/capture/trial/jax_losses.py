"""The loss that a jitted function of JAX returns: a scalar of a floating type, alone or beside new parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_DEEPEST = 3
_MOST_PARTS = 1_000  # of a result: parameters may be as many as there are layers
Path = tuple[Any, ...]


class JaxLosses:
    """By function, since a job may have several; the one that is called most often is the step."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._paths: dict[int, Path | None] = {}
        self._found: dict[int, list[Any]] = {}

    def hear(self, function: Any, result: Any) -> None:
        """A call has returned; its loss is kept as it is, without waiting for the device."""
        key = id(function)
        if key not in self._paths:
            self._paths[key] = find_loss(result)
            self._found[key] = []
        path = self._paths[key]
        if path is not None and len(self._found[key]) < self._kept:
            self._found[key].append(_follow(result, path))

    def values(self) -> list[Any]:
        """The first losses of the function that returned most of them."""
        return max(self._found.values(), key=len, default=[])


def find_loss(result: Any) -> Path | None:
    """Where the loss is: what is called so, else the first scalar, the outermost first. None where there is none."""
    paths = sorted(_scalars(result, (), [0]), key=len)
    named = (path for path in paths if any("loss" in str(part).lower() for part in path))
    return next(named, paths[0] if paths else None)


def _scalars(part: Any, path: Path, seen: list[int]) -> Iterator[Path]:
    seen[0] += 1
    if seen[0] > _MOST_PARTS:
        return
    if _is_scalar(part):
        yield path
    elif len(path) < _DEEPEST:
        for name, inner in _inside(part):
            yield from _scalars(inner, (*path, name), seen)


def _inside(part: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(part, dict):
        yield from part.items()
    elif isinstance(part, tuple) and hasattr(part, "_fields"):
        yield from zip(part._fields, part, strict=False)
    elif isinstance(part, tuple | list):
        yield from enumerate(part)


def _is_scalar(part: Any) -> bool:
    kind = getattr(part, "dtype", None)
    return getattr(part, "shape", None) == () and "float" in str(kind)


def _follow(part: Any, path: Path) -> Any:
    for name in path:
        is_field = isinstance(part, tuple) and isinstance(name, str)
        part = getattr(part, name) if is_field else part[name]
    return part
