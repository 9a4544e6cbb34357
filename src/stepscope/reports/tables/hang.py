"""Tables of a hang: where the ranks are, the call that does not end in each group, and the stacks."""

from __future__ import annotations

from typing import Any

from stepscope.names import shorten_place
from stepscope.profiles.ranks import spans
from stepscope.reports.model.report import HangCall, Report
from stepscope.reports.tables.table import Column, Table, table

_STATES = {"waits": "waits in", "differs": "called instead", "outside": "last was in", "no dump": "no dump"}
_CALL = (
    Column("ranks", "ranks"),
    Column("state", "state"),
    Column("op", "collective"),
    Column("sequence", "number", "number"),
    Column("group", "group"),
    Column("sizes", "sizes"),
    Column("dtype", "dtype", minor=True),
    Column("function", "function"),
    Column("place", "at"),
)
_GROUPS = (
    Column("group", "group"),
    Column("ranks", "ranks"),
    Column("sequence", "number", "number"),
    Column("kind", "kind"),
    Column("sentence", "what is wrong"),
)
_STACKS = (
    Column("ranks", "ranks"),
    Column("op", "collective"),
    Column("depth", "depth", "number"),
    Column("frame", "function", "name"),
)


def hang_tables(report: Report) -> list[Table]:
    """All of them."""
    found = report.hang
    calls = [_row(call, call.group) for group in found.groups for call in group.calls]
    groups = [
        {
            "group": group.name,
            "ranks": spans(group.ranks),
            "sequence": group.sequence,
            "kind": group.kind,
            "sentence": group.sentence,
        }
        for group in found.groups
    ]
    return [
        table("hang", "where the ranks are", _CALL, [_row(call, call.group) for call in found.ranks]),
        table("hang_groups", "groups that wait", _GROUPS, groups),
        table("hang_calls", "the calls that do not end", _CALL, calls),
        table("hang_stacks", "stacks", _STACKS, _stacks(report)),
    ]


def _row(call: HangCall, group: str | None) -> dict[str, Any]:
    return {
        "ranks": spans(call.ranks),
        "state": _STATES.get(call.state, call.state),
        "op": call.op,
        "sequence": call.sequence,
        "group": group,
        "sizes": call.sizes,
        "dtype": call.dtype,
        "function": call.function,
        "place": None if call.place is None else shorten_place(call.place),
    }


def _stacks(report: Report) -> list[dict[str, Any]]:
    """A row for each function, the innermost first."""
    return [
        {"ranks": spans(call.ranks), "op": call.op, "depth": depth, "frame": frame}
        for call in report.hang.ranks
        for depth, frame in enumerate(call.stack)
    ]
