"""How long transfers take once all members have come: latency and bandwidth of NVLink and of one network card per device."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import ceil, log2

from benchmarks.ranks.physics.conditions import Conditions
from benchmarks.ranks.physics.layout import Layout

# Of an H100 with NVLink 4 and NVSwitch, and one card of 400 Gb/s, as nccl-tests measures them.
NVLINK_BYTES_PER_NS, CARD_BYTES_PER_NS = 450.0, 45.0
NVLINK_LATENCY_NS, CARD_LATENCY_NS = 1_500.0, 7_000.0
BASE_NS = 8_000.0  # of any kernel of NCCL


@dataclass(frozen=True)
class Network:
    """Links between ranks, some slower than others."""

    layout: Layout
    conditions: Conditions
    _known: dict[tuple[str, tuple[int, ...], int], float] = field(default_factory=dict)

    def transfer_ns(self, operation: str, members: tuple[int, ...], size: int) -> float:
        """From the last arrival to the end; `size` is in bytes, of the whole tensor of a member."""
        key = (operation, members, size)
        if key not in self._known:
            self._known[key] = BASE_NS + self._transfer(operation, members, size)
        return self._known[key]

    def _transfer(self, operation: str, members: tuple[int, ...], size: int) -> float:
        count = len(members)
        if count == 1:
            return 0.0
        speed, latency = self.speed(members), self._latency_ns(members)
        if operation == "send_recv":
            return latency + size / speed
        if operation == "all_to_all":
            return self._exchange_ns(members, size) + (count - 1) * latency
        rounds = 2 if operation == "all_reduce" else 1
        ring = rounds * (count - 1) * (latency + size / count / speed)
        tree = rounds * (ceil(log2(count)) * latency + size / speed)
        return min(ring, tree) if operation == "all_reduce" else ring

    def speed(self, members: tuple[int, ...]) -> float:
        """Of the slowest link of the ring through all members; a ring uses the cards of all its members in a node."""
        by_node = Counter(self.layout.node(rank) for rank in members)
        slowest = min(self._node_speed(node) for node in by_node)
        if len(by_node) == 1:
            return NVLINK_BYTES_PER_NS * slowest
        cards = min(by_node.values()) * CARD_BYTES_PER_NS * self._crossing_speed(members, list(by_node))
        return min(NVLINK_BYTES_PER_NS * slowest, cards)

    def _crossing_speed(self, members: tuple[int, ...], nodes: list[int]) -> float:
        ring = zip(nodes, [*nodes[1:], nodes[0]], strict=True)
        pairs = (self.conditions.pairs.get((min(pair), max(pair)), 1.0) for pair in ring)
        cards = (
            self.conditions.nics.get(rank, 1.0) * self._node_speed(self.layout.node(rank)) for rank in members
        )
        return min(*pairs, *cards)

    def _exchange_ns(self, members: tuple[int, ...], size: int) -> float:
        """Each member sends a share to each other one: what leaves the node goes through its own card."""
        by_node = Counter(self.layout.node(rank) for rank in members)
        inside = max(by_node.values()) / len(members)
        within = size * inside / (NVLINK_BYTES_PER_NS * min(map(self._node_speed, by_node)))
        if len(by_node) == 1:
            return within
        crossing = self._crossing_speed(members, list(by_node))
        return max(within, size * (1 - inside) / (CARD_BYTES_PER_NS * crossing))

    def _latency_ns(self, members: tuple[int, ...]) -> float:
        inside = len({self.layout.node(rank) for rank in members}) == 1
        return NVLINK_LATENCY_NS if inside else CARD_LATENCY_NS

    def _node_speed(self, node: int) -> float:
        return self.conditions.nodes.get(node, 1.0)
