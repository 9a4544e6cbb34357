"""Budgets: what a step may cost, from a TOML file or from arguments. Every error in one says what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from stepscope.analysis.parts import PARTS
from stepscope.errors import StepscopeError, no_such_path

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([^\s\d]*)\s*")
_TIMES = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}
SIZES = {
    "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_UNITS = (("ns", _TIMES), ("bytes", SIZES), ("share", {"%": 0.01}))
_EXAMPLES = {"ns": '"120 ms"', "bytes": '"24 GB"', "share": '"5 %"'}


@dataclass(frozen=True)
class Limit:
    """A maximum in ns or bytes, or as a share: of the step, or of the baseline's figure."""

    amount: float
    unit: str
    said: str = field(default="", compare=False)  # as it was written


@dataclass(frozen=True)
class Baseline:
    """How much figures may grow compared with another profile; `paths` are recordings of one job."""

    paths: tuple[str, ...] = ()
    step_time: Limit | None = None
    peak_memory: Limit | None = None
    parts: Mapping[str, Limit] = field(default_factory=dict)
    findings: bool = False  # no new ones


@dataclass(frozen=True)
class Budget:
    """All limits; None means that there is no limit."""

    step_time: Limit | None = None
    step_time_p90: Limit | None = None
    peak_memory: Limit | None = None
    parts: Mapping[str, Limit] = field(default_factory=dict)
    findings: tuple[str, ...] = ()  # that must not be there
    baseline: Baseline | None = None
    regions: Mapping[str, Budget] = field(default_factory=dict)  # limits on the steps of each region alone

    @property
    def has_own_limits(self) -> bool:
        """Whether there are limits that are not of a region."""
        return replace(self, regions={}) != Budget()


def read_budget(path: Path) -> Budget:
    """The budget of a file; paths of its baseline are relative to the file."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise StepscopeError(
            no_such_path(path), fix="See `stepscope check --help`, or docs/gate.md for an example."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise StepscopeError(f"{path} is not a text file.", fix=str(error)) from error
    return relative_to(path.parent, budget(_parse_toml(text, path), str(path)))


def relative_to(folder: Path, given: Budget) -> Budget:
    """The same budget with paths of its baseline resolved against that folder; URLs stay as they are."""
    regions = {name: relative_to(folder, limits) for name, limits in given.regions.items()}
    given = replace(given, regions=regions)
    if given.baseline is None:
        return given
    paths = given.baseline.paths
    return with_baseline(given, [path if "://" in path else str(folder / path) for path in paths])


def with_baseline(given: Budget, paths: Sequence[str]) -> Budget:
    """The same budget against the profiles at these paths; without limits of its own the step may grow by 5 %."""
    base = given.baseline or with_limit(Baseline())
    return replace(given, baseline=replace(base, paths=tuple(paths)))


def with_limit(base: Baseline) -> Baseline:
    """A baseline without limits would pass everything: the step may grow by 5 %, unless there are limits."""
    if replace(base, paths=()) != Baseline():
        return base
    return replace(base, step_time=Limit(0.05, "share"))


def _parse_toml(text: str, path: Path) -> dict[str, Any]:
    try:
        table: dict[str, Any] = msgspec.toml.decode(text)
    except msgspec.DecodeError as error:
        raise StepscopeError(
            f"{path} is not valid TOML: {error}.", fix='A line looks like step_time = "120 ms".'
        ) from None
    return table


def budget(given: Mapping[str, Any], where: str) -> Budget:
    """The budget of a TOML table, or of the arguments of a marker."""
    limits = Budget(**_read_fields(given, {**_limit_readers(), "regions": _read_regions}, where))
    if limits == Budget():
        raise StepscopeError(f"{where} sets no limits.", fix='Write for instance step_time = "120 ms".')
    return limits


def _read_regions(value: Any, where: str) -> dict[str, Budget]:
    """`[regions.train]`: the same limits, for the steps of one region."""
    if not isinstance(value, Mapping) or not value:
        raise StepscopeError(
            f"{where} must be a table for each region, not {value!r}.",
            fix='Write for instance step_time = "20 ms" below [regions.train].',
        )
    found = {}
    for name, given in value.items():
        found[str(name)] = Budget(**_read_fields(given, _limit_readers(), f"{where}.{name}"))
        if found[str(name)] == Budget():
            raise StepscopeError(
                f"{where}.{name} sets no limits.", fix='Write for instance step_time = "20 ms".'
            )
    return found


def _limit_readers() -> dict[str, Callable[[Any, str], Any]]:
    readers: dict[str, Callable[[Any, str], Any]] = {
        "step_time": _read_limit("ns"),
        "step_time_p90": _read_limit("ns"),
        "peak_memory": _read_limit("bytes"),
        "parts": _read_parts("ns", "share"),
        "findings": _read_findings,
        "baseline": _read_baseline,
    }
    return readers


def _read_baseline(value: Any, where: str) -> Baseline:
    if isinstance(value, str | list | tuple):
        return with_limit(Baseline(paths=_read_paths(value, where)))
    readers: dict[str, Callable[[Any, str], Any]] = {
        "path": _read_paths,
        "step_time": _read_limit("share", "ns"),
        "peak_memory": _read_limit("share", "bytes"),
        "parts": _read_parts("share", "ns"),
        "findings": _read_flag,
    }
    fields = _read_fields(value, readers, where)
    return with_limit(Baseline(paths=fields.pop("path", ()), **fields))


def _read_fields(given: Any, readers: Mapping[str, Callable[[Any, str], Any]], where: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise StepscopeError(
            f"{where} must be a table, not {given!r}.", fix=f"Its keys may be {', '.join(readers)}."
        )
    for key in given:
        if key not in readers:
            raise StepscopeError(f"{where}: unknown key {key}.", fix=_suggest(key, readers))
    return {key: readers[key](value, f"{where}: {key}") for key, value in given.items()}


def _suggest(word: str, known: Collection[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), 1)
    return (f"Did you mean {close[0]}? " if close else "") + f"Known: {', '.join(known)}."


def limit(value: Any, where: str, *units: str) -> Limit:
    """`120 ms`, `24 GB` or `5 %`."""
    examples = " or ".join(_EXAMPLES[unit] for unit in units)
    parsed = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    for unit, scales in _UNITS:
        written = _find_unit(parsed[2], scales) if parsed and unit in units else None
        if parsed and written is not None:
            return Limit(float(parsed[1]) * scales[written], unit, f"{parsed[1]} {written}")
    known = ", ".join(word for unit, scales in _UNITS if unit in units for word in scales)
    raise StepscopeError(
        f"{where}: invalid amount {value!r}.",
        fix=f"Write a number and its unit, such as {examples}. Units are {known}.",
    )


def _find_unit(unit: str, known: Mapping[str, float]) -> str | None:
    """The unit as it is usually written: GB for gb."""
    if unit in known:
        return unit
    return next((word for word in known if word.lower() == unit.lower()), None)


def _read_limit(*units: str) -> Callable[[Any, str], Limit]:
    return lambda value, where: limit(value, where, *units)


def growth(given: Sequence[str]) -> Baseline:
    """What `--fail-on` allows: `5%` of the step, `peak_memory=3%`, `compute=2 ms`."""
    limits: dict[str, Any] = {}
    for text in given:
        name, is_named, value = text.rpartition("=")
        key = name.strip() if is_named else "step_time"
        if key in PARTS:
            limits.setdefault("parts", {})[key] = value
        elif key in ("step_time", "peak_memory"):
            limits[key] = value
        else:
            known = ("step_time", "peak_memory", *PARTS)
            raise StepscopeError(f"--fail-on {text}: unknown limit {key}.", fix=_suggest(key, known))
    return _read_baseline(limits, "--fail-on")


def _read_parts(*units: str) -> Callable[[Any, str], dict[str, Limit]]:
    def read(value: Any, where: str) -> dict[str, Limit]:
        return _read_fields(value, dict.fromkeys(PARTS, _read_limit(*units)), where)

    return read


def _read_findings(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(code, str) for code in value):
        raise StepscopeError(
            f"{where} must be a list of codes, not {value!r}.",
            fix='Such as ["input-bound", "device-sync"].',
        )
    known = finding_codes()
    for code in value:
        if code not in known:
            raise StepscopeError(f"{where}: unknown finding {code}.", fix=_suggest(code, known))
    return tuple(value)


def finding_codes() -> list[str]:
    """The codes that a budget may forbid, those of plug-ins included."""
    from stepscope.reports.ranks.rules import all_rules  # only where a budget names findings

    return [rule.code for rule in all_rules()]


def _read_flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise StepscopeError(
            f"{where} must be true or false, not {value!r}.",
            fix="true fails on findings that the baseline does not have.",
        )
    return value


def _read_paths(value: Any, where: str) -> tuple[str, ...]:
    """One, or several recordings of the same job."""
    paths = (value,) if isinstance(value, str) else value
    is_list = isinstance(paths, list | tuple)
    if not is_list or not paths or not all(isinstance(path, str) and path for path in paths):
        raise StepscopeError(
            f"{where} must be a path in quotes, or a list of them, not {value!r}.",
            fix='Such as "profiles/main", or ["profiles/main-1", "profiles/main-2"].',
        )
    return tuple(paths)
