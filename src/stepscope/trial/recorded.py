"""The table of trust: trials that were kept, promised against measured, per finding."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from stepscope.errors import StepscopeError
from stepscope.reports.model.report import Interval
from stepscope.trial.conduct import Outcome
from stepscope.trial.text import interval_words

ENDING = ".trial.jsonl"


class Row(msgspec.Struct):
    """One change of one trial."""

    code: str
    change: str
    promised: Interval
    measured: Interval
    job: str = ""
    unix_s: int = 0

    @property
    def is_right(self) -> bool:
        """Whether the measured middle is in the promise, or the ranges overlap and it is at most 15 % outside."""
        low, high, mid = self.promised.low, self.promised.high, self.measured.mid
        overlaps = self.measured.low <= high and low <= self.measured.high
        return low <= mid <= high or (overlaps and 0.85 * low <= mid <= 1.15 * high)


def record(path: Path, outcome: Outcome, job: str) -> int:
    """Append what was promised and measured; how many rows that were."""
    rows = [
        Row(each.code, each.name, each.promised, each.measured, job, int(time.time()))
        for each in outcome.tried
        if each.promised is not None and each.measured is not None
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
    """Per finding: how many trials, how many promises held, and each of them."""
    by_code: dict[str, list[Row]] = {}
    for row in rows:
        by_code.setdefault(row.code, []).append(row)
    lines = [
        [
            f"`{code}`",
            str(len(found)),
            str(sum(row.is_right for row in found)),
            ", ".join(f"{interval_words(row.promised)} → {interval_words(row.measured)}" for row in found),
        ]
        for code, found in sorted(by_code.items())
    ]
    head = ["| finding | trials | held | promised → measured |", "|---|---|---|---|"]
    return "".join(f"{line}\n" for line in [*head, *(f"| {' | '.join(cells)} |" for cells in lines)])
