"""The cause among several groups that hang: a rank that others wait for may itself wait in another group."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.lazy import dataclass
from stepscope.ranks.hangs.calls import RankCalls
from stepscope.ranks.hangs.groups import Group, list_groups
from stepscope.ranks.hangs.pairs import judge_pairs
from stepscope.ranks.hangs.verdict import Verdict, judge


@dataclass(frozen=True)
class Stand:
    """Where one rank is: the call that it waits in, else its last one. `has_dump` is false for ranks that left none."""

    rank: int
    has_dump: bool
    is_waiting: bool
    call: dict[str, object] | None


@dataclass(frozen=True)
class Explained:
    """`root` is the verdict to begin with; in `is_deadlock` the groups wait for each other, and it is only the first."""

    verdicts: list[Verdict]
    root: Verdict | None
    is_deadlock: bool
    stands: list[Stand]
    has_calls: bool


def explain(dumps: Sequence[RankCalls]) -> Explained:
    """Compare the dumps of all ranks."""
    groups = list_groups(dumps)
    verdicts = [each for group in groups for each in _judge_all(group)]
    root, is_deadlock = _find_root(verdicts)
    ranks = sorted({rank for group in groups for rank in group.members} | {dump.rank for dump in dumps})
    by_rank = {dump.rank: dump for dump in dumps}
    has_calls = any(not dump.calls.is_empty() for dump in dumps)
    waiting = {rank for each in verdicts for rank in _list_inside(each)}
    stands = [_find_stand(rank, by_rank.get(rank), rank in waiting) for rank in ranks]
    return Explained(verdicts, root, is_deadlock, stands, has_calls)


def _judge_all(group: Group) -> list[Verdict]:
    found = judge(group)
    return [*([found] if found is not None else []), *judge_pairs(group)]


def _find_root(verdicts: Sequence[Verdict]) -> tuple[Verdict | None, bool]:
    """The verdict whose culprits wait in no other group; of several the one with most waiting, then the oldest."""
    if not verdicts:
        return None, False
    ordered = sorted(
        verdicts, key=lambda each: (each.kind == "stuck", -len(each.waiting), each.began_ns or 0)
    )
    roots = [each for each in ordered if not _waits_elsewhere(each, verdicts)]
    return (roots[0], False) if roots else (ordered[0], True)


def _waits_elsewhere(verdict: Verdict, verdicts: Sequence[Verdict]) -> bool:
    """Whether one that did not come waits in another group. A call with other arguments is a fault wherever its rank waits."""
    if verdict.kind != "absent":
        return False
    others = {rank for each in verdicts if each is not verdict for rank in each.waiting}
    return any(rank in others for rank in verdict.culprits)


def _list_inside(verdict: Verdict) -> tuple[int, ...]:
    """The ranks that are in the call, or in another one instead of it."""
    return verdict.waiting if verdict.kind == "absent" else (*verdict.waiting, *verdict.culprits)


def _find_stand(rank: int, dump: RankCalls | None, is_waiting: bool) -> Stand:
    if dump is None:
        return Stand(rank, False, False, None)
    waiting = dump.calls.filter("is_pending").head(1)
    shown = waiting if len(waiting) else dump.calls.tail(1)
    call = shown.row(0, named=True) if len(shown) else None
    return Stand(rank, True, is_waiting or len(waiting) > 0, call)
