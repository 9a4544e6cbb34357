"""Which ranks are in each process group. Dumps of NCCL know their members; those of gloo mostly do not."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.hangs.calls import DEFAULT_GROUP, RankCalls


@dataclass(frozen=True)
class Group:
    """One process group: its calls on all ranks. `are_all_known`: whether no other rank can be a member."""

    name: str
    title: str
    members: tuple[int, ...]
    are_all_known: bool
    calls: pl.DataFrame


def list_groups(dumps: Sequence[RankCalls]) -> list[Group]:
    """Groups of one name with other members are others: a mesh splits the ranks under one name."""
    calls = pl.concat([dump.calls for dump in dumps])
    members_of = {(dump.rank, name): tuple(ranks) for dump in dumps for name, ranks in dump.members.items()}
    world = _world(dumps)
    found = []
    for (name,), part in calls.group_by("group", maintain_order=True):
        by_members: dict[tuple[int, ...], list[int]] = {}
        for rank in part["rank"].unique().sort():
            by_members.setdefault(members_of.get((rank, str(name)), ()), []).append(rank)
        unclear = by_members.pop((), [])
        for members, ranks in by_members.items():
            # Ranks that do not know the members are in the only group of that name.
            own = [*ranks, *unclear] if len(by_members) == 1 else ranks
            found.append(_make_group(str(name), part, own, members))
        if not by_members:
            found.append(_guess_group(str(name), part, unclear, world))
    return found


def _make_group(name: str, calls: pl.DataFrame, ranks: Sequence[int], members: tuple[int, ...]) -> Group:
    own = calls.filter(pl.col("rank").is_in(list(ranks)))
    return Group(name, str(own["title"][0]), tuple(sorted({*members, *ranks})), True, own)


def _guess_group(name: str, calls: pl.DataFrame, ranks: Sequence[int], world: int | None) -> Group:
    """The default group has every rank; of others, the members are those that called."""
    title = str(calls["title"][0])
    is_default = title.startswith(DEFAULT_GROUP)
    highest = max(ranks) + 1
    members = range(max(world or 0, highest)) if is_default else ranks
    return Group(name, title, tuple(members), is_default and world is not None and world >= highest, calls)


def _world(dumps: Sequence[RankCalls]) -> int | None:
    """How many ranks there are at least, by what any dump says."""
    said = [dump.world_size for dump in dumps if dump.world_size]
    listed = [max(ranks) + 1 for dump in dumps for ranks in dump.members.values() if ranks]
    return max([*said, *listed], default=None)
