"""The table of trust: trials that were kept, promised against measured, per finding."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

import msgspec

from stepscope.errors import StepscopeError
from stepscope.reports.model.report import Interval
from stepscope.reports.render.markdown import code as code_of
from stepscope.safe import safe
from stepscope.trial.conduct import Outcome
from stepscope.trial.text import interval_words

ENDING = ".trial.jsonl"


class Row(msgspec.Struct):
    """One change of one trial; without a promise, `code` is the finding of whose advice the change is a part, if any."""

    code: str
    change: str
    promised: Interval | None
    measured: Interval
    job: str = ""
    unix_s: int = 0
    device: str = ""

    @property
    def is_right(self) -> bool | None:
        """Whether the measured middle is in the promise, or the ranges overlap and it is at most 15 % outside; None without a promise."""
        if self.promised is None:
            return None
        low, high, mid = self.promised.low, self.promised.high, self.measured.mid
        overlaps = self.measured.low <= high and low <= self.measured.high
        return low <= mid <= high or (overlaps and 0.85 * low <= mid <= 1.15 * high)


def record(path: Path, outcome: Outcome, job: str, device: str = "") -> int:
    """Append what was promised and measured; how many rows that were. Changes that failed are left out."""
    rows = [
        Row(each.code, each.name, each.promised, each.measured, job, int(time.time()), device)
        for each in outcome.tried
        if each.measured is not None
    ]
    try:
        with path.open("ab") as stream:
            stream.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
    except OSError as error:
        raise StepscopeError(f"Cannot write {path}: {error.strerror or error}.") from None
    return len(rows)


def read_rows(paths: Iterable[Path]) -> Iterator[Row]:
    """All rows; lines that are none are left out."""
    for path in paths:
        for line in path.read_bytes().splitlines():
            try:
                yield msgspec.json.decode(line, type=Row)
            except msgspec.MsgspecError:
                continue


def trust_table(rows: Iterable[Row]) -> str:
    """Per finding: how many promises, how many of them held, and how far the measured speed-up was from the middle of the promise."""
    lines = []
    for code, found in _by_code(rows).items():
        ratios = [row.measured.mid / row.promised.mid for row in found if row.promised is not None]
        if ratios:
            lines.append(
                [f"`{code}`", str(len(ratios)), str(sum(row.is_right is True for row in found)), _off(ratios)]
            )
    return _table(["finding", "promises", "held", "measured / promised, median (range)"], lines)


def trials_table(rows: Iterable[Row]) -> str:
    """Every trial."""
    lines = [
        [
            f"`{code}`" if code else "-",
            f"`{row.change}`",
            code_of(row.job),
            safe(row.device),
            interval_words(row.promised),
            interval_words(row.measured),
            _HELD[row.is_right],
        ]
        for code, found in _by_code(rows).items()
        for row in found
    ]
    return _table(["finding", "change", "job", "device", "promised", "measured", "held"], lines)


_HELD = {True: "yes", False: "no", None: "-"}


def _by_code(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.code, []).append(row)
    return dict(sorted(found.items()))


def _off(ratios: list[float]) -> str:
    spread = f" ({min(ratios):.2f}–{max(ratios):.2f})" if len(ratios) > 1 else ""
    return f"{median(ratios):.2f}{spread}"


def _table(head: list[str], lines: list[list[str]]) -> str:
    rule = ["---"] * len(head)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *lines))
