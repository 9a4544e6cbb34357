"""The roles of ranks: which stage of a pipeline each one is, and what each process group is for.

Groups are known by what is called in them and by who is in them: sends and receives join the stages of a pipeline, an all-to-all
exchanges tokens between experts, and of the reductions those of neighbouring ranks, many in a step, split tensors, the others
join replicas. Ranks of one stage do the same work: they are peers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import msgspec
import polars as pl

from stepscope.lazy import dataclass

PIPELINE, TENSOR, DATA, EXPERT = "pipeline", "tensor", "data", "expert"
_PAIRED = ("send", "recv", "send_recv")
_OF_GROUPS = ("group", "group_ranks", "group_size", "name", "bytes", "rank", "step")


@dataclass(frozen=True)
class Group:
    """Ranks that communicate, how often in a step, and what for."""

    kind: str
    ranks: tuple[int, ...]
    calls_per_step: float
    bytes: int | None


@dataclass(frozen=True)
class Roles:
    """`stage` of each rank, 0 for all where there is no pipeline; `groups` of at least two ranks."""

    stage: Mapping[int, int] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()

    @property
    def stages(self) -> int:
        """How many."""
        return len(set(self.stage.values()))

    def sizes(self) -> dict[str, int]:
        """The usual number of ranks in a group, by what it is for."""
        found: dict[str, Counter[int]] = {}
        for group in self.groups:
            found.setdefault(group.kind, Counter())[len(group.ranks)] += 1
        sizes = {kind: counts.most_common(1)[0][0] for kind, counts in found.items()}
        return {**sizes, PIPELINE: self.stages} if self.stages > 1 else sizes


def roles_of(ranks: Sequence[int], calls: pl.DataFrame) -> Roles:
    """From what the ranks called (CALLS of all courses), and with which others."""
    if calls.is_empty():
        return Roles(dict.fromkeys(ranks, 0))
    return Roles(_stages(ranks, calls), tuple(_groups(calls, ranks)))


def members(group_ranks: str | None, group_size: int | None, ranks: Sequence[int]) -> tuple[int, ...]:
    """The ranks of a group, as far as the profile gives them: all of the job, where its size is that of the job."""
    if group_ranks:
        try:
            return tuple(sorted(msgspec.json.decode(group_ranks, type=list[int])))
        except msgspec.MsgspecError:
            pass  # long lists are cut off
    return tuple(ranks) if group_size in (None, len(ranks)) else ()


def _groups(calls: pl.DataFrame, ranks: Sequence[int]) -> Iterable[Group]:
    collective = calls.select(_OF_GROUPS).filter(~pl.col("name").is_in(_PAIRED))
    rows = collective.group_by("group", "group_ranks", "group_size").agg(
        pl.col("name").unique(),
        pl.col("bytes").median(),
        per_step=pl.len() / (pl.col("rank").n_unique() * pl.col("step").n_unique()),
    )
    found = []
    for row in rows.iter_rows(named=True):
        who = members(row["group_ranks"], row["group_size"], ranks)
        if len(who) > 1:
            found.append((who, row["name"], row["per_step"], row["bytes"]))
    reduced = [(who, often) for who, names, often, _ in found if "all_to_all" not in names]
    splits = _tensor_groups(reduced, len(ranks), _passes(calls))
    for who, names, often, size in sorted(found, key=lambda each: each[0]):
        kind = EXPERT if "all_to_all" in names else TENSOR if who in splits else DATA
        yield Group(kind, who, float(often), None if size is None else int(size))


def _passes(calls: pl.DataFrame) -> float:
    """How often a step the busiest rank of a pipeline sends or receives; 0 without one."""
    paired = calls.filter(pl.col("name").is_in(_PAIRED))
    counts = paired.group_by("rank").agg(often=pl.len() / pl.col("step").n_unique())
    return float(counts["often"].max() or 0.0)  # type: ignore[arg-type]


def _tensor_groups(
    groups: Sequence[tuple[tuple[int, ...], float]], world: int, passes: float
) -> set[tuple[int, ...]]:
    """Of groups over parts of the job, neighbours that call more often than the others do, and in a pipeline for every pass of a micro-batch."""
    parts = [(who, often) for who, often in groups if len(who) < world]
    near = {who for who, _ in parts if who[-1] - who[0] == len(who) - 1}
    far = [often for who, often in parts if who not in near]
    most = max(far, default=1.0)
    return {who for who, often in parts if who in near and often > most and 2 * often >= passes}


def _stages(ranks: Sequence[int], calls: pl.DataFrame) -> dict[int, int]:
    """By rank how many stages come before its own: activations are sent before gradients come back."""
    paired = with_partners(calls.filter(pl.col("name").is_in(_PAIRED)))
    first = paired.unique(["rank", "partner"], keep="first", maintain_order=True)
    downstream: dict[int, set[int]] = {rank: set() for rank in ranks}
    for rank, partner, name in first.select("rank", "partner", "name").iter_rows():
        if name == "send" and partner in downstream:
            downstream[rank].add(partner)
        elif name == "recv" and partner in downstream:
            downstream[partner].add(rank)
    return _depths(downstream)


def with_partners(paired: pl.DataFrame) -> pl.DataFrame:
    """With `partner`: the other end, as the profile gives it, or the other member of a group of two."""
    texts = paired["group_ranks"].drop_nulls().unique().to_list()
    pairs = {text: members(text, None, ()) for text in texts}
    both = {text: who for text, who in pairs.items() if len(who) == 2}
    low = pl.col("group_ranks").replace_strict(
        list(both), [w[0] for w in both.values()], default=None, return_dtype=pl.Int32
    )
    high = pl.col("group_ranks").replace_strict(
        list(both), [w[1] for w in both.values()], default=None, return_dtype=pl.Int32
    )
    other = pl.when(low == pl.col("rank")).then(high).otherwise(low)
    return paired.with_columns(partner=pl.coalesce("peer", other)).filter(pl.col("partner").is_not_null())


def _depths(downstream: Mapping[int, set[int]]) -> dict[int, int]:
    """Longest ways from a first stage; ranks in a circle (chunks that come round again) count by their numbers."""
    before: dict[int, set[int]] = {rank: set() for rank in downstream}
    for rank, after in downstream.items():
        for each in after:
            before[each].add(rank)
    depth: dict[int, int] = {}
    ready = [rank for rank, some in before.items() if not some]
    left = {rank: len(some) for rank, some in before.items()}
    while ready:
        rank = ready.pop()
        depth[rank] = max((depth[each] + 1 for each in before[rank]), default=0)
        for each in downstream[rank]:
            left[each] -= 1
            if not left[each]:
                ready.append(each)
    return {rank: depth.get(rank, place) for rank, place in _in_circles(downstream, depth).items()}


def _in_circles(downstream: Mapping[int, set[int]], depth: Mapping[int, int]) -> dict[int, int]:
    """By rank its place among those that it reaches."""
    places = dict.fromkeys(downstream, 0)
    for rank in downstream:
        if rank in depth:
            continue
        seen, todo = {rank}, [rank]
        while todo:
            fresh = downstream[todo.pop()] - seen
            seen |= fresh
            todo += fresh
        places[rank] = sorted(seen).index(rank)
    return places
