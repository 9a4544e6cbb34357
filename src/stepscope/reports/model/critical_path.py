"""The critical path, as the report has it. Its rules and units are those of `model`."""

from __future__ import annotations

import msgspec


class PathRow(msgspec.Struct, kw_only=True):
    """What has one kind and name on the path, over all steps; `event` is the longest of them.

    `place` is before where the event did not spend the time but came next.
    """

    kind: str  # host, launch, device, wait or gap
    name: str
    ns: int
    share: float  # of the path
    count: int
    event: int | None = None
    step: int | None = None  # of `event`
    place: str | None = None


class CriticalPath(msgspec.Struct, kw_only=True):
    """What decides how long the steps are, on the critical device of the only rank.

    `source`: replay; account where the steps cannot be replayed; none in a report of several ranks or without steps.
    `total_ns` is the length of all steps, `kinds` the share of each kind.
    """

    source: str = "none"
    total_ns: int = 0
    kinds: dict[str, float] = {}
    rows: list[PathRow] = []
    rows_total: int = 0  # before they were capped
