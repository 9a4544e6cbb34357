"""Budgets: what a step may cost, as a TOML file or arguments say. Whatever is wrong with them is told with the line to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from stepscope.analysis.parts import PARTS
from stepscope.errors import StepscopeError

FINDINGS = (
    "input-bound", "recompilation", "retracing", "host-python", "device-sync", "round-trip-copy", "cpu-fallback",
    "optimizer-loop", "small-batch", "launch-bound", "eager-execution", "exposed-copy", "exposed-collective", "straggler",
    "fp32-matmul", "unfused-attention", "layout-conversion", "low-occupancy", "step-outliers", "warm-up", "idle-unexplained",
    "memory-pressure", "memory-growth",
)  # fmt: skip
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([^\s\d]*)\s*")
_TIMES = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}
SIZES = {
    "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_UNITS = (("ns", _TIMES), ("bytes", SIZES), ("share", {"%": 0.01}))
_EXAMPLES = {"ns": '"120 ms"', "bytes": '"24 GB"', "share": '"5 %"'}


@dataclass(frozen=True)
class Limit:
    """At most so many ns or bytes, or such a share: of the step, or more than the baseline."""

    amount: float
    unit: str
    said: str = field(default="", compare=False)  # as it was written


@dataclass(frozen=True)
class Baseline:
    """What the figures may grow by, against another profile."""

    path: str | None = None
    step_time: Limit | None = None
    peak_memory: Limit | None = None
    parts: Mapping[str, Limit] = field(default_factory=dict)
    findings: bool = False  # no new ones


@dataclass(frozen=True)
class Budget:
    """Everything that is limited; what is None is not."""

    step_time: Limit | None = None
    step_time_p90: Limit | None = None
    peak_memory: Limit | None = None
    parts: Mapping[str, Limit] = field(default_factory=dict)
    findings: tuple[str, ...] = ()  # that must not be there
    baseline: Baseline | None = None


def read_budget(path: Path) -> Budget:
    """The budget of a file; its baseline's path is relative to the file."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise StepscopeError(
            f"There is no file {path}.", fix="See `stepscope check --help`, or docs/gate.md for an example."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise StepscopeError(f"{path} cannot be read as text.", fix=str(error)) from error
    found = budget(_parsed(text, path), str(path))
    base = found.baseline
    if base is None or base.path is None or "://" in base.path:
        return found
    return with_baseline(found, str(path.parent / base.path))


def with_baseline(found: Budget, path: str) -> Budget:
    """The same against the profile at that path; without limits of its own the step may grow by 5 %."""
    base = found.baseline or Baseline(step_time=Limit(0.05, "share"))
    return Budget(**{**found.__dict__, "baseline": Baseline(**{**base.__dict__, "path": path})})


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = msgspec.toml.decode(text)
    except msgspec.DecodeError as error:
        raise StepscopeError(
            f"{path} is no TOML: {error}.", fix='A line of it reads step_time = "120 ms".'
        ) from None
    return found


def budget(given: Mapping[str, Any], where: str) -> Budget:
    """From a table of TOML, or the arguments of a marker."""
    readers: dict[str, Callable[[Any, str], Any]] = {
        "step_time": _limit("ns"),
        "step_time_p90": _limit("ns"),
        "peak_memory": _limit("bytes"),
        "parts": _parts("ns", "share"),
        "findings": _findings,
        "baseline": _baseline,
    }
    found = Budget(**_fields(given, readers, where))
    if found == Budget():
        raise StepscopeError(f"{where} limits nothing.", fix='Write for instance step_time = "120 ms".')
    return found


def _baseline(value: Any, where: str) -> Baseline:
    if isinstance(value, str):
        return Baseline(path=value, step_time=Limit(0.05, "share"))
    readers: dict[str, Callable[[Any, str], Any]] = {
        "path": _text,
        "step_time": _limit("share", "ns"),
        "peak_memory": _limit("share", "bytes"),
        "parts": _parts("share", "ns"),
        "findings": _flag,
    }
    return Baseline(**_fields(value, readers, where))


def _fields(given: Any, readers: Mapping[str, Callable[[Any, str], Any]], where: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise StepscopeError(
            f"{where} is {given!r}, and should be a table.", fix=f"It may hold {', '.join(readers)}."
        )
    for key in given:
        if key not in readers:
            raise StepscopeError(
                f"{where} has the key {key}, which means nothing.", fix=_nearest(key, readers)
            )
    return {key: readers[key](value, f"{where}: {key}") for key, value in given.items()}


def _nearest(word: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), 1)
    return (f"Did you mean {close[0]}? " if close else "") + f"There are {', '.join(known)}."


def limit(value: Any, where: str, *units: str) -> Limit:
    """`120 ms`, `24 GB` or `5 %`."""
    examples = " or ".join(_EXAMPLES[unit] for unit in units)
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    for unit, scales in _UNITS:
        if found and unit in units and found[2] in scales:
            return Limit(float(found[1]) * scales[found[2]], unit, f"{found[1]} {found[2]}")
    raise StepscopeError(
        f"{where} is {value!r}, which is no amount.", fix=f"Write a number and its unit, such as {examples}."
    )


def _limit(*units: str) -> Callable[[Any, str], Limit]:
    return lambda value, where: limit(value, where, *units)


def growth(given: Sequence[str]) -> Baseline:
    """What `--fail-on` allows: `5%` of the step, `peak_memory=3%`, `compute=2 ms`."""
    found: dict[str, Any] = {}
    for text in given:
        name, is_named, value = text.rpartition("=")
        key = name.strip() if is_named else "step_time"
        if key in PARTS:
            found.setdefault("parts", {})[key] = value
        elif key in ("step_time", "peak_memory"):
            found[key] = value
        else:
            known = ("step_time", "peak_memory", *PARTS)
            raise StepscopeError(f"--fail-on {text}: there is no {key}.", fix=_nearest(key, known))
    return _baseline(found, "--fail-on")


def _parts(*units: str) -> Callable[[Any, str], dict[str, Limit]]:
    def read(value: Any, where: str) -> dict[str, Limit]:
        return _fields(value, dict.fromkeys(PARTS, _limit(*units)), where)

    return read


def _findings(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(code, str) for code in value):
        raise StepscopeError(
            f"{where} is {value!r}, and should be a list of codes.",
            fix='Such as ["input-bound", "device-sync"].',
        )
    for code in value:
        if code not in FINDINGS:
            raise StepscopeError(f"{where} has {code}, which is no finding.", fix=_nearest(code, FINDINGS))
    return tuple(value)


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise StepscopeError(
            f"{where} is {value!r}, and should be true or false.",
            fix="true fails on findings that the baseline has not.",
        )
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise StepscopeError(
            f"{where} is {value!r}, and should be a path in quotes.", fix='Such as "profiles/main".'
        )
    return value
