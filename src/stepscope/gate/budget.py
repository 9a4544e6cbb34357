"""Budgets: what a step may cost, from a TOML file or arguments. Errors show the line to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """A maximum in ns or bytes, or as a share: of the step, or of growth against the baseline."""

    amount: float
    unit: str
    said: str = field(default="", compare=False)  # as it was written


@dataclass(frozen=True)
class Baseline:
    """Allowed growth against another profile; `paths` are recordings of the same job."""

    paths: tuple[str, ...] = ()
    step_time: Limit | None = None
    peak_memory: Limit | None = None
    parts: Mapping[str, Limit] = field(default_factory=dict)
    findings: bool = False  # no new ones


@dataclass(frozen=True)
class Budget:
    """All limits; None means unlimited."""

    step_time: Limit | None = None
    step_time_p90: Limit | None = None
    peak_memory: Limit | None = None
    parts: Mapping[str, Limit] = field(default_factory=dict)
    findings: tuple[str, ...] = ()  # that must not be there
    baseline: Baseline | None = None


def read_budget(path: Path) -> Budget:
    """The budget of a file; paths of its baseline are relative to the file."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise StepscopeError(
            f"No such file: {path}", fix="See `stepscope check --help`, or docs/gate.md for an example."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise StepscopeError(f"Cannot read {path} as text.", fix=str(error)) from error
    return relative_to(path.parent, budget(_parsed(text, path), str(path)))


def relative_to(folder: Path, found: Budget) -> Budget:
    """The same, paths of its baseline taken from that folder on; URLs stay what they are."""
    if found.baseline is None:
        return found
    paths = found.baseline.paths
    return with_baseline(found, [path if "://" in path else str(folder / path) for path in paths])


def with_baseline(found: Budget, paths: Sequence[str]) -> Budget:
    """The same against the profiles at these paths; without limits of its own the step may grow by 5 %."""
    base = found.baseline or Baseline(step_time=Limit(0.05, "share"))
    return replace(found, baseline=replace(base, paths=tuple(paths)))


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = msgspec.toml.decode(text)
    except msgspec.DecodeError as error:
        raise StepscopeError(
            f"{path} is not valid TOML: {error}.", fix='Write for example: step_time = "120 ms"'
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
        raise StepscopeError(f"{where} contains no limits.", fix='Write for example: step_time = "120 ms"')
    return found


def _baseline(value: Any, where: str) -> Baseline:
    if isinstance(value, str | list | tuple):
        return Baseline(paths=_paths(value, where), step_time=Limit(0.05, "share"))
    readers: dict[str, Callable[[Any, str], Any]] = {
        "path": _paths,
        "step_time": _limit("share", "ns"),
        "peak_memory": _limit("share", "bytes"),
        "parts": _parts("share", "ns"),
        "findings": _flag,
    }
    found = _fields(value, readers, where)
    return Baseline(paths=found.pop("path", ()), **found)


def _fields(given: Any, readers: Mapping[str, Callable[[Any, str], Any]], where: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise StepscopeError(
            f"{where} is {given!r}, but must be a table.", fix=f"It may hold {', '.join(readers)}."
        )
    for key in given:
        if key not in readers:
            raise StepscopeError(f"{where}: unknown key {key}.", fix=_nearest(key, readers))
    return {key: readers[key](value, f"{where}: {key}") for key, value in given.items()}


def _nearest(word: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), 1)
    return (f"Did you mean {close[0]}? " if close else "") + f"Known: {', '.join(known)}."


def limit(value: Any, where: str, *units: str) -> Limit:
    """`120 ms`, `24 GB` or `5 %`."""
    examples = " or ".join(_EXAMPLES[unit] for unit in units)
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    for unit, scales in _UNITS:
        written = _spelt(found[2], scales) if found and unit in units else None
        if found and written is not None:
            return Limit(float(found[1]) * scales[written], unit, f"{found[1]} {written}")
    known = ", ".join(word for unit, scales in _UNITS if unit in units for word in scales)
    raise StepscopeError(
        f"{where}: invalid amount {value!r}.",
        fix=f"Write a number and its unit, such as {examples}. Units: {known}.",
    )


def _spelt(unit: str, known: Mapping[str, float]) -> str | None:
    """The unit as we spell it: gb is GB."""
    if unit in known:
        return unit
    return next((word for word in known if word.lower() == unit.lower()), None)


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
            raise StepscopeError(f"--fail-on {text}: unknown figure {key}.", fix=_nearest(key, known))
    return _baseline(found, "--fail-on")


def _parts(*units: str) -> Callable[[Any, str], dict[str, Limit]]:
    def read(value: Any, where: str) -> dict[str, Limit]:
        return _fields(value, dict.fromkeys(PARTS, _limit(*units)), where)

    return read


def _findings(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(code, str) for code in value):
        raise StepscopeError(
            f"{where} is {value!r}, but must be a list of codes.",
            fix='Such as ["input-bound", "device-sync"].',
        )
    for code in value:
        if code not in FINDINGS:
            raise StepscopeError(f"{where}: unknown finding {code}.", fix=_nearest(code, FINDINGS))
    return tuple(value)


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise StepscopeError(
            f"{where} is {value!r}, but must be true or false.",
            fix="true fails on findings that the baseline does not have.",
        )
    return value


def _paths(value: Any, where: str) -> tuple[str, ...]:
    """One, or several recordings of the same job."""
    found = (value,) if isinstance(value, str) else value
    if (
        not isinstance(found, list | tuple)
        or not found
        or not all(isinstance(path, str) and path for path in found)
    ):
        raise StepscopeError(
            f"{where} is {value!r}, but must be a quoted path or a list of them.",
            fix='Such as "profiles/main", or ["profiles/main-1", "profiles/main-2"].',
        )
    return tuple(found)
