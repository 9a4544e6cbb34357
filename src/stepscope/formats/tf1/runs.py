"""Traced runs of a session, and the tracks of their nodes."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from stepscope.formats.tf1.devices import Device, parse_device
from stepscope.formats.tf1.run_metadata import DeviceNodes, Node
from stepscope.native.spans.lanes import lanes


@dataclass
class Placed:
    """A node where it ran. The lane separates nodes that ran at once on threads the file does not name."""

    node: Node
    device: Device
    lane: int = 0


@dataclass
class Run:
    """One traced run: its tag, the global step if it was given, and all that ran."""

    tag: str
    step: int | None
    nodes: list[Placed] = field(default_factory=list)
    threads: dict[tuple[str, int], str] = field(default_factory=dict)

    def add(self, found: DeviceNodes, most: int) -> bool:
        """Take over the nodes of a device, and say whether that was more than `most`."""
        device = parse_device(found.device)
        self.threads |= {(device.text, thread): name for thread, name in found.threads.items() if name}
        self.nodes += [Placed(node, device) for node in islice(found.nodes, most)]
        return next(found.nodes, None) is not None


@dataclass
class Tracks:
    """The tracks so far, each added when it is first asked for."""

    runs: list[Run]
    rows: list[dict[str, Any]] = field(default_factory=list)
    _ids: dict[tuple[str, int], int] = field(default_factory=dict)
    _repeating: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        nodes = [placed for run in self.runs for placed in run.nodes]
        self._repeating = _repeating(nodes)
        _give_lanes(nodes)

    def of(self, placed: Placed) -> int:
        """The track of a node: a thread or lane of the executor, or a stream."""
        device = placed.device
        on_stream = device.part in ("stream", "summary")
        key = (device.text, 0 if on_stream else placed.node.thread or -placed.lane)
        if key not in self._ids:
            row = self._stream(device) if on_stream else self._thread(placed)
            self._ids[key] = self.add(
                row | {"process": device.placement, "pid": device.text, "tid": str(key[1])}
            )
        return self._ids[key]

    def repeats(self, placed: Placed) -> bool:
        """Whether the node is there twice, and this is the summary's copy."""
        return placed.device.text in self._repeating

    def add(self, row: dict[str, Any]) -> int:
        """A new track; its id."""
        self.rows.append(row | {"id": len(self.rows)})
        return len(self.rows) - 1

    def _stream(self, device: Device) -> dict[str, Any]:
        return {
            "thread": device.text[len(device.placement) + 1 :],
            "stream": device.stream,
            "device": device.number,
            "device_kind": device.kind,
            "what": "derived" if device.text in self._repeating else "device",
        }

    def _thread(self, placed: Placed) -> dict[str, Any]:
        thread = placed.node.thread
        key = (placed.device.text, thread)
        named = next((run.threads[key] for run in self.runs if key in run.threads), None)
        name = named or (f"thread {thread}" if thread else f"lane {placed.lane}")
        return {"thread": name, "device_kind": "cpu", "what": "host"}


def _repeating(nodes: list[Placed]) -> frozenset[str]:
    """Summaries such as `/stream:all` all of whose work is on a numbered stream too: it must not count twice."""
    on_streams = {(p.device.placement, *_work(p)) for p in nodes if p.device.part == "stream"}
    left_out = {
        p.device.text
        for p in nodes
        if p.device.part == "summary" and (p.device.placement, *_work(p)) not in on_streams
    }
    return frozenset(p.device.text for p in nodes if p.device.part == "summary") - left_out


def _work(placed: Placed) -> tuple[str, int, int]:
    return placed.node.name, placed.node.start_ns, placed.node.dur_ns


def _give_lanes(nodes: list[Placed]) -> None:
    """Spread nodes without a thread over lanes: on one track, one that runs during another would seem its child."""
    by_device: dict[str, list[Placed]] = {}
    for placed in nodes:
        if placed.device.part in ("executor", "sync") and not placed.node.thread:
            by_device.setdefault(placed.device.text, []).append(placed)
    for alone in by_device.values():
        alone.sort(key=lambda placed: placed.node.start_ns)
        starts = array("q", (placed.node.start_ns for placed in alone))
        ends = array("q", (placed.node.start_ns + max(placed.node.dur_ns, 0) for placed in alone))
        for placed, lane in zip(alone, lanes(starts, ends), strict=True):
            placed.lane = lane
