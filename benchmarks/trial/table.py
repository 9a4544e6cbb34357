"""Promised against measured: a line a job, and the totals. `trial.score` and `diagnosis.score` print the same table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.trial.interval import Interval, is_right, promise

COUNTS = 1.1  # a job counts for the cause if its fix gains so much in every round
CALM = 1.05
DEVICE_BOUND = 0.8  # of the un-profiled step, in which the device is busy
_KINDS = ("device", "host")
_FAR = 0.25


@dataclass(frozen=True)
class Row:
    """One job, and what a report says of it. `truth` is None for a healthy job, or where nothing could be measured."""

    name: str
    healthy: bool
    truth: Interval | None
    findings: tuple[Any, ...]
    expect: tuple[str, ...] = ()  # codes that name the mistake; empty until a person has looked
    mistake: str = ""
    bound: str = ""  # device or host
    replayed_ns: float | None = None
    unprofiled_ns: float | None = None
    stated_ns: float | None = None  # the un-profiled step, as the capture found it
    error: str = ""

    @property
    def counts(self) -> bool:
        """Whether the fix gains enough for the cause to be asked for."""
        return not self.healthy and not self.error and self.truth is not None and self.truth.low >= COUNTS

    @property
    def first(self) -> Any | None:
        """The finding that comes first."""
        return self.findings[0] if self.findings else None

    @property
    def cause(self) -> bool | None:
        """Whether the first finding names the mistake; None until it was judged."""
        if not self.counts or not self.expect:
            return None
        return self.first is not None and self.first.code in self.expect

    @property
    def judged(self) -> Any | None:
        """The finding whose promise is judged: that of the mistake, where it is known, else the first."""
        if not self.expect:
            return self.first
        return next((found for found in self.findings if found.code in self.expect), None)

    @property
    def promised(self) -> Interval | None:
        """What that finding promises."""
        return promise(self.judged) if self.judged is not None else None

    @property
    def right(self) -> bool | None:
        """Whether the promise came true; None where the job does not count."""
        if not self.counts or self.truth is None:
            return None
        return self.promised is not None and is_right(self.promised, self.truth)

    @property
    def calm(self) -> bool | None:
        """No promise beyond what there is to gain; None where there is much."""
        if self.counts or self.error:
            return None
        most = max(CALM, self.truth.high if self.truth else CALM)
        return all(promise(one).mid <= most for one in self.findings if one.class_ == "time")

    @property
    def replay_error(self) -> float | None:
        """How far the replayed, unchanged step is from the un-profiled one."""
        return _off(self.replayed_ns, self.unprofiled_ns)

    @property
    def stated_error(self) -> float | None:
        """How far the un-profiled step that the capture found is from that of the rounds."""
        return _off(self.stated_ns, self.unprofiled_ns)


def _off(found: float | None, truth: float | None) -> float | None:
    return found / truth - 1 if found and truth else None


def bound(busy_ns: float | None, step_ns: float | None) -> str:
    """Whether the device or the host decides how long a step takes; empty where that is not known."""
    if not busy_ns or not step_ns:
        return ""
    return "device" if busy_ns / step_ns >= DEVICE_BOUND else "host"


def lines(rows: Iterable[Row]) -> list[str]:
    """The table for people: figures, and the author's words beside ours."""
    head = f"{'job':34} {'bound':6} {'measured':18} {'promised':18} {'cause':6} {'promise':7} {'replay':>7}  first finding"
    return [head, *(line for row in rows for line in _lines_of(row))]


def _lines_of(row: Row) -> list[str]:
    if row.error:
        return [f"{row.name:34} not judged: {row.error}"]
    error = row.replay_error
    cells = [
        f"{row.name:34}",
        f"{row.bound:6}",
        f"{'healthy' if row.healthy else _text(row.truth):18}",
        f"{_text(row.promised):18}",
        f"{_word(row.cause, 'first', 'WRONG'):6}",
        f"{_word(row.right, 'right', 'WRONG') if row.counts else _word(row.calm, 'calm', 'LOUD'):7}",
        f"{error:+7.0%}" if error is not None else " " * 7,
        f" {row.first.code if row.first is not None else '-'}",
    ]
    said = [f"{one.code} {_text(promise(one))}: {one.title}" for one in row.findings[:3]]
    author = [f"    author: {row.mistake}"] if row.mistake else []
    return [" ".join(cells).rstrip(), *author, *(f"    ours:   {text}" for text in said)]


def markdown(rows: Iterable[Row]) -> list[str]:
    """The table for the documentation."""
    head = ["job", "its mistake", "measured", "promised", "first finding", "cause", "promise"]
    return [_cells(head), _cells(["---"] * len(head)), *(_markdown_of(row) for row in rows if not row.error)]


def _markdown_of(row: Row) -> str:
    judged = _word(row.right, "right", "wrong") if row.counts else _word(row.calm, "calm", "loud")
    first = f"`{row.first.code}`" if row.first is not None else "none"
    measured = "healthy" if row.healthy else _text(row.truth)
    cause = _word(row.cause, "first", "wrong") if row.counts else ""
    return _cells([row.name, row.mistake, measured, _text(row.promised), first, cause, judged])


def _cells(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in texts) + " |"


def _text(found: Interval | None) -> str:
    return found.text() if found else "-"


def _word(good: bool | None, yes: str, no: str) -> str:
    return "?" if good is None else yes if good else no


def totals(rows: Iterable[Row]) -> dict[str, Any]:
    """The figures of the issue: cause, promise, width, calm and replay."""
    known = [row for row in rows if not row.error]
    return {
        "jobs": len(known),
        "cause": _counted(row.cause for row in known),
        "not_judged": sum(row.counts and not row.expect for row in known),
        "promise": _counted(row.right for row in known),
        "width": _by_kind(known, _width, median),
        "healthy_calm": _counted(row.calm for row in known if row.healthy),
        "others_calm": _counted(row.calm for row in known if not row.healthy),
        "replay_error": _by_kind(known, lambda row: _size(row.replay_error), median),
        "replay_near": _counted(_is_near(row.replay_error) for row in known),
        "stated_error": _by_kind(known, lambda row: _size(row.stated_error), median),
        "stated_near": _counted(_is_near(row.stated_error) for row in known),
    }


def total_lines(found: dict[str, Any]) -> list[str]:
    """The totals for people."""

    def share(name: str) -> str:
        good, count = found[name]
        return f"{good} of {count}" + (f" ({good / count:.0%})" if count else "")

    width = ", ".join(f"{kind} {value:.2f}" for kind, value in found["width"].items())

    def errors(name: str) -> str:
        by_kind = ", ".join(f"{kind} {value:.1%}" for kind, value in found[f"{name}_error"].items())
        return f"{by_kind or '-'}; within 25 %: {share(f'{name}_near')}"

    return [
        f"cause first: {share('cause')}; {found['not_judged']} not judged yet",
        f"promise right: {share('promise')}",
        f"median width of the promise: {width or '-'}",
        f"calm: healthy {share('healthy_calm')}, others with little to gain {share('others_calm')}",
        f"replay of the unchanged step, median error: {errors('replay')}",
        f"un-profiled step as the capture states it, median error: {errors('stated')}",
    ]


def _width(row: Row) -> float | None:
    return row.promised.width if row.counts and row.promised else None


def _size(error: float | None) -> float | None:
    return abs(error) if error is not None else None


def _is_near(error: float | None) -> bool | None:
    return abs(error) <= _FAR if error is not None else None


def _counted(values: Iterable[bool | None]) -> tuple[int, int]:
    known = [value for value in values if value is not None]
    return sum(known), len(known)


def _by_kind(
    rows: list[Row], value: Callable[[Row], float | None], summary: Callable[[list[float]], float]
) -> dict[str, float]:
    found = {}
    for kind in (*_KINDS, "all"):
        values = [each for row in rows if kind in (row.bound, "all") and (each := value(row)) is not None]
        if values:
            found[kind] = round(summary(values), 4)
    return found


def as_json(row: Row) -> dict[str, Any]:
    """A row for machines."""
    return {
        "name": row.name,
        "healthy": row.healthy,
        "bound": row.bound,
        "measured": row.truth.rows() if row.truth else None,
        "promised": row.promised.rows() if row.promised else None,
        "mistake": row.mistake,
        "expect": list(row.expect),
        "findings": [
            {"code": one.code, "class": one.class_, "title": one.title, "speedup": promise(one).rows()}
            for one in row.findings
        ],
        "counts": row.counts,
        "cause": row.cause,
        "right": row.right,
        "calm": row.calm,
        "replay_error": row.replay_error,
        "stated_error": row.stated_error,
        "error": row.error,
    }
