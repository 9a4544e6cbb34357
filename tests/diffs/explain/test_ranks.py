"""One rank of several is slower: that rank is the first line, not the others that wait for it."""

from __future__ import annotations

from dataclasses import fields, replace

import polars as pl
import pytest

from stepscope.diffs.build import diff_sides
from stepscope.diffs.data.samples import CELL, Samples, Side, combine_ranks
from stepscope.diffs.render.text import as_text
from tests.diffs.recordings import recorded

RANKS = 4
LATE_NS = 50_000_000


def on_ranks(one: Side) -> Side:
    """The same rank several times."""
    ranks = [
        Samples(
            **{
                each.name: getattr(one.samples, each.name).with_columns(rank=pl.lit(rank, pl.Int32))
                for each in fields(Samples)
            }
        )
        for rank in range(RANKS)
    ]
    return replace(one, samples=combine_ranks(ranks))


def late(side: Side, ranks: set[int], part: str = "input", name: str = "load") -> Side:
    """These take longer in each step, and the others wait for them."""
    cells = side.samples.cells
    own = pl.col("rank").is_in(sorted(ranks))
    more = cells.select(
        *CELL,
        part=pl.when(own).then(pl.lit(part)).otherwise(pl.lit("host_collective")),
        name=pl.when(own).then(pl.lit(name)).otherwise(pl.lit("gloo:all_reduce")),
        ns=pl.lit(LATE_NS, pl.Int64),
    )
    samples = replace(
        side.samples,
        cells=cells.with_columns(pl.col("ns") + LATE_NS),
        parts=pl.concat([side.samples.parts, more.drop("name")]),
        names=pl.concat([side.samples.names, more.select(side.samples.names.columns)]),
    )
    return replace(side, samples=samples)


@pytest.mark.parametrize("back", [False, True])
def test_the_rank_that_changed_is_the_first_line(back: bool) -> None:
    a, b = on_ranks(recorded("wide.none.0")), late(on_ranks(recorded("wide.none.1")), {2})
    found = diff_sides(b, a) if back else diff_sides(a, b)
    line = found.lines[0]
    assert found.step.significant
    assert (line.title, line.ranks, line.kind) == ("rank 2: waiting for input in load", [2], "input")
    assert line.share == pytest.approx(1, abs=0.1)
    assert abs(line.difference) == pytest.approx(LATE_NS, rel=0.02)
    assert "what explains it" in as_text(found)


def test_several_ranks_are_one_line() -> None:
    found = diff_sides(on_ranks(recorded("wide.none.0")), late(on_ranks(recorded("wide.none.1")), {0, 3}))
    assert found.lines[0].title == "ranks 0, 3: waiting for input in load"
    assert found.lines[0].detail == "on 2 of 4 ranks"


def test_ranks_recorded_again_do_not_differ() -> None:
    found = diff_sides(on_ranks(recorded("wide.none.0")), on_ranks(recorded("wide.none.1")))
    assert not found.significant
    assert found.lines == []


def test_no_line_explains_more_than_the_change() -> None:
    """Calls beside each other add up to more than the step."""
    b = late(on_ranks(recorded("wide.none.1")), {2})
    called = b.samples.cells.select(
        *CELL,
        name=pl.lit("all_reduce"),
        dtype=pl.lit("float"),
        bytes=pl.lit(1, pl.Int64),
        ns=pl.lit(3 * LATE_NS, pl.Int64),
        exposed_ns=pl.lit(0, pl.Int64),
        calls=pl.lit(3, pl.Int64),
    )
    b = replace(b, samples=replace(b.samples, collectives=called))
    found = diff_sides(on_ranks(recorded("wide.none.0")), b)
    lines = {line.kind: line for line in found.lines}
    assert lines["collective"].share is None
    assert lines["collective"].detail == "only in B"
    assert all((line.share or 0) <= 1 for line in found.lines)
    assert next(iter(lines)) == "input"
