"""Two runs side by side: the diff of the command line."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.options import Options
from stepscope.diffs.build import diff_sides
from stepscope.diffs.data.samples import Side
from stepscope.diffs.render.cells import explain_no_lines, title_lines
from stepscope.diffs.side import read_side
from stepscope.server.runs.opened import OpenedRun


def comparison(a: OpenedRun, b: OpenedRun) -> dict[str, Any]:
    """The diff as JSON values, with the runs as the page lists them. Made in the background."""
    sides = {"a": _read_side(a), "b": _read_side(b)}
    diff = diff_sides(sides["a"], sides["b"])
    answer: dict[str, Any] = msgspec.to_builtins(diff)
    for name, run in zip("ab", (a, b), strict=True):
        answer[name] |= {"id": run.listed.id, "name": run.listed.name}
    answer["lines_title"], answer["no_lines"] = title_lines(diff).capitalize(), explain_no_lines(diff)
    answer["each_step"] = {name: each_step(side.samples.cells) for name, side in sides.items()}
    return answer


def each_step(cells: pl.DataFrame) -> list[dict[str, Any]]:
    """Every step once, however many ranks took part: the mean over them, and the slowest."""
    slowest = pl.col("rank").sort_by("ns").last()
    return (
        cells.group_by("recording", "step")
        .agg(pl.col("ns").mean(), slowest_ns=pl.col("ns").max(), slowest=slowest, ranks=pl.len())
        .sort("recording", "step")
        .drop("recording", "step")
        .to_dicts()
    )


def difference(a: OpenedRun, b: OpenedRun) -> bytes:
    """The diff as `stepscope diff --format json` writes it."""
    return msgspec.json.encode(diff_sides(_read_side(a), _read_side(b)))


def _read_side(run: OpenedRun) -> Side:
    return run.later("diff side", lambda: read_side(run.profile, Options(limit=0)), "comparing")
