"""Why the ranks hang: their flight-recorder dumps compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.ranks.hangs.calls import RankCalls, is_dump, list_calls
from stepscope.reports.model.report import Hang, HangCall, HangGroup, Problem
from stepscope.reports.problems import reported
from stepscope.reports.sections.section import Section
from stepscope.trace.problems import problem
from stepscope.units import duration

if TYPE_CHECKING:
    from stepscope.ranks.hangs.explain import Explained, Stand
    from stepscope.ranks.hangs.verdict import Verdict

NAME = "hang"
_CASES = {
    "op": "op",
    "size": "size",
    "dtype": "dtype",
    "stuck": "stuck",
    "device": "device",
    "dead": "dead",
    "deadlock": "deadlock",
}


def of_rank(context: RankContext) -> RankCalls | None:
    """The collectives of a dump; None of any other profile."""
    trace = context.whole_trace
    return list_calls(trace, context.rank) if is_dump(trace) else None


def joined(ranks: Sequence[RankCalls | None], options: Options) -> Mapping[str, Any]:
    """The dumps of all ranks together."""
    dumps = [rank for rank in ranks if rank is not None]
    if not dumps:
        return {NAME: Hang()}
    from stepscope.ranks.hangs.explain import explain

    found = explain(dumps)
    hang = _describe(found)
    problems = [_make_problem(hang)] if found.has_calls else []
    return {NAME: hang, "rank_problems": [*problems, *_mixed(dumps)]}


def _describe(found: Explained) -> Hang:
    from stepscope.ranks.hangs.words import write_answer

    return Hang(
        kind=_kind(found),
        sentence=write_answer(found),
        culprits=list(found.root.culprits) if found.root is not None else [],
        groups=[_describe_group(each, found.stands) for each in _root_first(found)],
        ranks=_group_alike(_place(each) for each in found.stands),
    )


def _kind(found: Explained) -> str:
    root = found.root
    if root is None:
        return "none"
    if found.is_deadlock:
        return "deadlock"
    has_dump = {stand.rank: stand.has_dump for stand in found.stands}
    is_dead = root.kind == "absent" and any(not has_dump.get(rank, False) for rank in root.culprits)
    return "dead" if is_dead else root.kind


def _root_first(found: Explained) -> list[Verdict]:
    return sorted(found.verdicts, key=lambda each: each is not found.root)


def _mixed(dumps: Sequence[RankCalls]) -> list[Problem]:
    """Dumps of several runs in one folder: some end before others begin."""
    times = {dump.rank: dump.calls["created_ns"] for dump in dumps if dump.calls["created_ns"].count()}
    if len(times) < 2:
        return []
    late = max(times, key=lambda rank: int(str(times[rank].min())))
    early = min(times, key=lambda rank: int(str(times[rank].max())))
    gap = int(str(times[late].min())) - int(str(times[early].max()))
    if gap <= 0:
        return []
    detail = f"The dump of rank {late} begins {duration(gap)} after the last call of rank {early}."
    return [reported(problem("mixed-dumps", detail))]


def _make_problem(hang: Hang) -> Problem:
    if hang.kind == "none":
        return reported(problem("nothing-pending", hang.sentence))
    return reported(problem("hang", hang.sentence, case=_CASES.get(hang.kind or "", "")))


def _describe_group(verdict: Verdict, stands: Sequence[Stand]) -> HangGroup:
    from stepscope.ranks.hangs.words import write_verdict

    rows = verdict.calls.sort("rank").iter_rows(named=True)
    calls = [_call(row, "differs" if row["rank"] in verdict.culprits else "waits") for row in rows]
    return HangGroup(
        name=verdict.group.title,
        ranks=list(verdict.group.members),
        kind=verdict.kind,
        sequence=verdict.sequence,
        waiting=list(verdict.waiting),
        culprits=list(verdict.culprits),
        sentence=f"{write_verdict(verdict, stands)}.",
        calls=_group_alike(calls),
    )


def _place(stand: Stand) -> HangCall:
    if not stand.has_dump:
        return HangCall(ranks=[stand.rank], state="no dump")
    state = "waits" if stand.is_waiting else "outside"
    return HangCall(ranks=[stand.rank], state=state) if stand.call is None else _call(stand.call, state)


def _call(row: Mapping[str, Any], state: str) -> HangCall:
    sizes = row["input_sizes"] or row["output_sizes"] or None
    return HangCall(
        ranks=[row["rank"]],
        state=state,
        group=row["title"],
        op=row["op"],
        sequence=row["sequence"],
        sizes=sizes,
        dtype=row["dtypes"] or None,
        function=row["function"],
        place=row["place"],
        stack=(row["stack"] or "").splitlines(),
        called_unix_ns=row["created_ns"],
    )


def _group_alike(calls: Iterable[HangCall]) -> list[HangCall]:
    """Equal calls with equal stacks are one row; the fewest ranks first, since they are the odd ones."""
    found: dict[tuple[Any, ...], HangCall] = {}
    for each in calls:
        key = (each.state, each.group, each.op, each.sequence, each.sizes, each.dtype, *each.stack)
        known = found.setdefault(key, each)
        if known is not each:
            known.ranks += each.ranks
            known.called_unix_ns = max((each.called_unix_ns or 0, known.called_unix_ns or 0)) or None
    return sorted(found.values(), key=lambda each: (len(each.ranks), each.ranks[0]))


SECTION = Section(NAME, of_rank, joined)
