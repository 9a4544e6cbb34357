"""The answer in one sentence: rank, collective and source line."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.names import shorten_place
from stepscope.profiles.ranks import spans
from stepscope.ranks.hangs.explain import Explained, Stand
from stepscope.ranks.hangs.verdict import Verdict

_HOW = {
    "order": "; it makes these calls in another order",
    "skipped": "; it skipped that call",
    "extra": "; it made a call that the others did not",
    "": "; it skipped a call, or makes its calls in another order",
}


def name_ranks(ranks: Sequence[int]) -> str:
    """`rank 2`, `ranks 0–1, 3`."""
    return f"rank{'s' if len(ranks) != 1 else ''} {spans(sorted(ranks))}"


def write_answer(found: Explained) -> str:
    """For people who read nothing else."""
    root = found.root
    if root is None:
        return _NOTHING if found.has_calls else _EMPTY
    if found.is_deadlock:
        chain = "; ".join(_write_wait(each) for each in found.verdicts if each.kind == "absent")
        return f"The groups wait for each other: {chain}."
    return f"{write_verdict(root, found.stands)}."


_NOTHING = (
    "No collective is pending in these dumps: the ranks hang outside of collectives, or they do not hang."
)
_EMPTY = "The dumps hold no collectives."


def write_verdict(verdict: Verdict, stands: Sequence[Stand]) -> str:
    """What is wrong in one group, without a full stop."""
    if verdict.kind == "absent":
        missing = [stand for stand in stands if stand.rank in verdict.culprits]
        return f"{_raise(_write_waiting(verdict))}; {_write_absent(verdict.culprits, missing)}"
    if verdict.kind == "stuck":
        return _write_stuck(verdict)
    if verdict.kind == "device":
        return _write_not_started(verdict)
    return _write_difference(verdict)


def _write_waiting(verdict: Verdict) -> str:
    verb = "waits" if len(verdict.waiting) == 1 else "wait"
    return f"{name_ranks(verdict.waiting)} {verb} in {describe_calls(verdict.calls, verdict.waiting)}"


def _write_wait(verdict: Verdict) -> str:
    return f"{_write_waiting(verdict)} of group {verdict.group.title} for {name_ranks(verdict.culprits)}"


def _write_absent(culprits: Sequence[int], stands: Sequence[Stand]) -> str:
    """Ranks without a dump first: nothing else is known of them."""
    dead = [stand.rank for stand in stands if not stand.has_dump]
    if dead:
        verb, it = ("has", "it") if len(dead) == 1 else ("have", "they")
        return f"{name_ranks(dead)} {verb} not come and left no dump: {it} died, or the dump is not here"
    verb = "has" if len(culprits) == 1 else "have"
    return f"{name_ranks(culprits)} {verb} not called it{_write_last(stands)}"


def _write_last(stands: Sequence[Stand]) -> str:
    """What the first of them did last."""
    first = stands[0] if stands else None
    if first is None or first.call is None:
        return " nor any other collective that the dump has"
    who = "" if len(stands) == 1 else f" of {name_ranks([first.rank])}"
    if first.is_waiting:
        return f": it waits in {describe_call(first.call)}{who}"
    return f" and is in no collective; the last one{who} was {describe_call(first.call)}"


def _write_stuck(verdict: Verdict) -> str:
    what = describe_calls(verdict.calls, verdict.waiting)
    if verdict.group.are_all_known:
        members = verdict.group.members
        if len(members) == 1:
            who = f"Rank {members[0]}, alone in group {verdict.group.title},"
            return (
                f"{who} called {what}, and it does not complete: it waits for work that the device still does"
            )
        who = f"All {len(members)} ranks of group {verdict.group.title}"
        return f"{who} called {what}, and it does not complete: the transfer itself hangs"
    who = _raise(name_ranks(verdict.waiting))
    return f"{who} called {what}, and it does not complete: a rank without a dump is missing, or the transfer hangs"


def _write_not_started(verdict: Verdict) -> str:
    devices = "its device has" if len(verdict.culprits) == 1 else "their devices have"
    late = f"{name_ranks(verdict.culprits)} called it, too, but {devices} not begun it"
    return f"{_raise(_write_waiting(verdict))}; {late}: work before it does not end"


def _write_difference(verdict: Verdict) -> str:
    others = [rank for rank in verdict.calls["rank"].unique().sort() if rank not in verdict.culprits]
    own, usual = (verdict.calls.filter(pl.col("rank").is_in(ranks)) for ranks in (verdict.culprits, others))
    who, rest = _raise(name_ranks(verdict.culprits)), name_ranks(others)
    if verdict.kind == "op":
        there = describe_calls(usual, others)
        return f"{who} called {describe_calls(own, verdict.culprits)} where {rest} called {there}{_HOW[verdict.how]}"
    value = "dtypes" if verdict.kind == "dtype" else _differing_sizes(verdict.calls)
    word = "of" if verdict.kind == "dtype" else "with"
    what = f"{own['op'][0]} {word} {own[value][0]}{_at(own.row(0, named=True))}"
    return f"{who} called {what} where {rest} passed {usual[value][0]}{_at_other(own, usual)}"


def _differing_sizes(calls: pl.DataFrame) -> str:
    return "input_sizes" if calls["input_sizes"].n_unique() > 1 else "output_sizes"


def _at_other(own: pl.DataFrame, usual: pl.DataFrame) -> str:
    return "" if own["place"][0] == usual["place"][0] else _at(usual.row(0, named=True))


def describe_calls(calls: pl.DataFrame, ranks: Sequence[int]) -> str:
    """The call of these ranks, with the place that most of them called it from."""
    rows = calls.filter(pl.col("rank").is_in(list(ranks)))
    if rows.is_empty():
        return "a collective"
    most = (
        rows.group_by("op", "place", maintain_order=True)
        .len()
        .sort("len", descending=True, maintain_order=True)
    )
    return describe_call(most.row(0, named=True))


def describe_call(call: dict[str, object]) -> str:
    """`all_reduce at train.py:88`."""
    return f"{call['op']}{_at(call)}"


def _at(call: dict[str, object]) -> str:
    place = call.get("place")
    return f" at {shorten_place(str(place))}" if place else ""


def _raise(text: str) -> str:
    return text[:1].upper() + text[1:]
