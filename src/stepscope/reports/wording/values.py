"""Figures of the report for people: one way to write each kind of value."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, Literal

from stepscope import units

Kind = Literal["text", "name", "ns", "bytes", "count", "share", "flops", "rate", "number", "flag", "extent"]

NUMERIC: frozenset[str] = frozenset(["ns", "bytes", "count", "share", "flops", "rate", "number"])
UNKNOWN = "–"
_FRAMEWORKS = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}
_LEAST_RATE = 0.001
_SCALES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def shown(value: Any, kind: Kind) -> str:
    """The value as people read it; what is not known is a dash."""
    return UNKNOWN if value is None else _WAYS[kind](value)


def share(value: float) -> str:
    """A share in per cent; what is there but rounds to nothing is shown as such."""
    percent = 100 * value
    if 0 < percent < 0.05:
        return "< 0.1 %"
    return f"{percent:.1f} %"


def framework(name: str | None) -> str:
    """The framework's own spelling."""
    return ", ".join(_FRAMEWORKS.get(each, each) for each in (name or "unknown framework").split(", "))


def moment(unix_ns: int) -> str:
    """A time of day on the wall, in UTC so that it is the same everywhere."""
    when = datetime.datetime.fromtimestamp(unix_ns / 1e9, tz=datetime.timezone.utc)
    return when.strftime("%Y-%m-%d %H:%M:%S UTC")


def _scaled(value: float) -> str:
    for letter, scale in _SCALES:
        if abs(value) >= scale:
            return f"{value / scale:.3g} {letter}"
    return f"{value:.3g}"


def significant(value: float) -> str:
    """Three significant figures, never as a power of ten: 2,170 and not 2.17e+03."""
    return f"{float(f'{value:.3g}'):,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"


def _rate(value: float) -> str:
    """GB/s; what is there but next to nothing is shown as such."""
    return f"< {_LEAST_RATE}" if 0 < value < _LEAST_RATE else significant(value)


def _flag(value: bool) -> str:
    return "yes" if value else "no"


def _extent(value: list[int]) -> str:
    return "×".join(map(str, value))


_WAYS: dict[str, Callable[[Any], str]] = {
    "text": str,
    "name": str,
    "ns": units.duration,
    "bytes": units.size,
    "count": lambda value: f"{value:,}",
    "share": share,
    "flops": _scaled,
    "rate": _rate,
    "number": significant,
    "flag": _flag,
    "extent": _extent,
}
