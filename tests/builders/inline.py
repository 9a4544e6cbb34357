"""Accounts of small traces written as text, with times in µs.

    track     start  dur  name              kind     launches
    main         10    5  cudaLaunchKernel  runtime  gemm
    stream 7     20   30  gemm              kernel   -

`launches` names device work: the first launch of a name belongs to the first event of that name, and so on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.analysis.account.account import PARTS, account
from stepscope.analysis.steps.find import Steps, find_steps
from stepscope.trace.finish import finish
from stepscope.trace.schema import TABLES
from stepscope.trace.trace import Trace
from tests.builders.tables import Row, draft, rows

US = 1_000


def trace_of(text: str, **info: Any) -> Trace:
    """The trace that the table describes, with what is known of it as a whole."""
    found = rows(text)
    made = draft(text, links=_launches(found))
    made.info = replace(made.info, **info)
    kernels = [number for number, row in enumerate(found) if row["kind"] == "kernel"]
    made.kernels = pl.DataFrame({"event": kernels}, schema={"event": pl.UInt32})
    made.events = made.events.with_columns(pl.col("start_ns") * US, pl.col("dur_ns") * US)
    return finish(made)


def _launches(found: list[Row]) -> pl.DataFrame:
    waiting = defaultdict(list)
    for number, row in enumerate(found):
        if row["kind"] in ("kernel", "copy", "memset"):
            waiting[row["name"]].append(number)
    pairs = [
        (number, waiting[row["launches"]].pop(0)) for number, row in enumerate(found) if row.get("launches")
    ]
    return pl.DataFrame(
        {"from": [pair[0] for pair in pairs], "to": [pair[1] for pair in pairs], "why": "launch"},
        schema=TABLES["links"],
    )


def check(text: str, parts: str, device: int | None = 0) -> None:
    """The steps of the table together have these parts: `compute=10 input=5 (load > sort)`, in µs, with their names.

    A name is that of most of the part's time, with what says more about it behind `>`; it may be left out.
    """
    trace = trace_of(text)
    found = account(trace, find_steps(trace)).slices.filter(pl.col("device").eq_missing(device))
    names = trace.events["name"].cast(pl.String)
    named = found.with_columns(
        ns=pl.col("end_ns") - pl.col("start_ns"),
        name=names.gather(found["named_by"]),
        more=names.gather(found["detail"]),
    )
    shown = []
    for part in PARTS:
        mine = named.filter(pl.col("part") == part)
        if len(mine):
            most = (
                mine.group_by("name", "more").agg(pl.col("ns").sum()).sort("ns", "name").row(-1, named=True)
            )
            text_of = most["name"] if most["more"] is None else f"{most['name']} > {most['more']}"
            shown.append((f"{part}={mine['ns'].sum() // US}", f"({text_of})"))
    wanted = _wanted(parts)
    assert [amount for amount, _ in shown] == [amount for amount, _ in wanted], shown
    assert [name for (_, name), (_, want) in zip(shown, wanted, strict=True) if want] == [
        want for _, want in wanted if want
    ]


def _wanted(parts: str) -> list[tuple[str, str]]:
    """Amounts and names in the order of the account."""
    found = re.findall(r"(\w+=\d+)(?: (\(.*?\)))?(?=\s+\w+=\d|\s*$)", parts)
    order = {part: place for place, part in enumerate(PARTS)}
    return sorted(found, key=lambda pair: order[pair[0].split("=")[0]])


def windows_of(steps: Steps) -> list[tuple[int, int, int]]:
    """step, start and end in µs."""
    return [
        (step, start // US, end // US)
        for step, start, end in steps.windows.select("step", "start_ns", "end_ns").iter_rows()
    ]
