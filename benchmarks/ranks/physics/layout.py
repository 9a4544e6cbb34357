"""How ranks are divided: tensor, data, pipeline and expert parallel, in the order of Megatron; and their process groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Group:
    """A process group, named as PyTorch counts them."""

    name: str
    description: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """Where a rank is in the layout."""

    tp: int
    dp: int
    pp: int


@dataclass(frozen=True)
class Layout:
    """TP × DP × PP ranks on nodes; tensor parallel ranks are neighbours, stages are farthest apart."""

    tp: int
    pp: int
    dp: int
    ep: int = 1
    per_node: int = 8

    @property
    def world(self) -> int:
        """All ranks."""
        return self.tp * self.pp * self.dp

    @property
    def nodes(self) -> int:
        """All nodes."""
        return -(-self.world // self.per_node)

    def node(self, rank: int) -> int:
        """The node of a rank."""
        return rank // self.per_node

    def of_node(self, node: int) -> tuple[int, ...]:
        """The ranks of a node."""
        return tuple(range(node * self.per_node, min((node + 1) * self.per_node, self.world)))

    def rank(self, tp: int, dp: int, pp: int) -> int:
        """The rank at this place."""
        return tp + self.tp * (dp + self.dp * pp)

    def place(self, rank: int) -> Place:
        """The place of a rank."""
        return Place(rank % self.tp, rank // self.tp % self.dp, rank // (self.tp * self.dp))

    def of_stage(self, stage: int) -> tuple[int, ...]:
        """The ranks of a pipeline stage."""
        size = self.tp * self.dp
        return tuple(range(stage * size, (stage + 1) * size))

    def expert(self, rank: int) -> int:
        """Which share of the experts a rank has."""
        return self.place(rank).dp % self.ep

    @cached_property
    def groups(self) -> dict[str, dict[int, Group]]:
        """By role, then by rank."""
        named: dict[str, dict[int, Group]] = {"world": {}}
        for number, (role, description, members) in enumerate(self._members()):
            group = Group(str(number), description, members)
            named.setdefault(role, {}).update(dict.fromkeys(members, group))
        return named

    def groups_of(self, rank: int) -> list[Group]:
        """The groups that a rank belongs to, the default group first."""
        return [by_rank[rank] for by_rank in self.groups.values() if rank in by_rank]

    def _members(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        tps, dps, pps = range(self.tp), range(self.dp), range(self.pp)
        yield "world", "default_pg", tuple(range(self.world))
        for pp in pps:
            for tp in tps:
                yield "dp", "DATA_PARALLEL_GROUP", tuple(self.rank(tp, dp, pp) for dp in dps)
        for dp in dps:
            yield "mp", "MODEL_PARALLEL_GROUP", tuple(self.rank(tp, dp, pp) for pp in pps for tp in tps)
        for pp in pps:
            for dp in dps:
                yield "tp", "TENSOR_MODEL_PARALLEL_GROUP", tuple(self.rank(tp, dp, pp) for tp in tps)
        for dp in dps:
            for tp in tps:
                yield "pp", "PIPELINE_MODEL_PARALLEL_GROUP", tuple(self.rank(tp, dp, pp) for pp in pps)
        if self.ep > 1:
            yield from self._expert_members()

    def _expert_members(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        for pp in range(self.pp):
            for tp in range(self.tp):
                replicas = [self.rank(tp, dp, pp) for dp in range(self.dp)]
                for first in range(0, self.dp, self.ep):
                    yield "ep", "EXPERT_MODEL_PARALLEL_GROUP", tuple(replicas[first : first + self.ep])
                for expert in range(self.ep):
                    yield "edp", "EXPERT_DATA_PARALLEL_GROUP", tuple(replicas[expert :: self.ep])
