"""Lines about what is done more or less often in every step, or in one run only: certain, also where no time is.

They come after what takes longer for sure, and first where nothing does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest

from stepscope.diffs.data.match import without_line
from stepscope.diffs.data.model import Line, Row

MOST = 4
NAMED_OPS = 3
MANY = 1_000  # told without fractions


def how_often(
    waits: Sequence[Row],
    scopes: Sequence[Row],
    functions: Sequence[Row],
    ops: Sequence[Row],
    told: Sequence[Line],
) -> Iterator[Line]:
    """At most MOST of them; with another batch all that is a matter of course."""
    if any(line.kind == "batch" for line in told):
        return
    names = {without_line(line.name or "") for line in told}
    kinds = (
        [_wait(row) for row in waits if not any(line.kind == "sync" for line in told)],
        [_scope(row) for row in scopes],
        [_function(row) for row in functions if row.name not in names],
        [_op(row) for row in ops if row.name not in names and not _is_below(row, scopes)],
    )
    # The first of each kind, then the second: one change often shows in several.
    in_turn = (line for turn in zip_longest(*kinds) for line in turn if line is not None)
    yield from islice(in_turn, MOST)


def shown(name: str) -> str:
    """A name as people write it: JAX marks Python's functions."""
    return name.removeprefix("$")


def _is_below(op: Row, scopes: Sequence[Row]) -> bool:
    """Whether an op of one run is one of those in its new scopes."""
    return not (op.a and op.b) and any(op.name in scope.note.split(", ") for scope in scopes)


def _wait(row: Row) -> Line:
    often = (row.b_calls or 0) - (row.a_calls or 0)
    title = _often(f"{row.name}, which waits for the device,", row.a_calls, row.b_calls)
    return Line(title=title, kind="sync", difference=often, unit="calls", name=row.name)


def _scope(row: Row) -> Line:
    here, count = ("B", row.b) if row.b else ("A", row.a)
    ops = row.note.split(", ")
    few = ", ".join(ops[:NAMED_OPS]) + (", …" if len(ops) > NAMED_OPS else "")
    return Line(
        title=f"only {here} has {row.name}",
        kind="calls",
        difference=row.difference,
        unit="calls",
        detail=f"{count:.4g} call{'' if count == 1 else 's'} of ops a step: {few}",
        name=row.name,
    )


def _function(row: Row) -> Line:
    return _line(row, f"Python function {shown(row.name)}")


def _op(row: Row) -> Line:
    return _line(row, row.name)


def _line(row: Row, what: str) -> Line:
    return Line(
        title=_often(what, row.a, row.b),
        kind="calls",
        difference=row.difference,
        unit="calls",
        name=row.name,
    )


def _often(what: str, a: float | None, b: float | None) -> str:
    if not a or not b:
        here, count = ("B", b) if b else ("A", a)
        return f"{what} is called {_times(count)} a step in {here} only"
    return f"{what} is called {_times(a)} a step in A, {_times(b)} in B"


def _times(count: float | None) -> str:
    if count == 1:
        return "once"
    return f"{count or 0:,.0f} times" if (count or 0) >= MANY else f"{count:.3g} times"
