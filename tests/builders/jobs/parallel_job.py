"""Small jobs of tensor × pipeline × data parallel ranks, run by a schedule of one forward and one backward pass in turn, as Kineto files.

Times in µs. Devices compute, meet in collectives, and send to the next stage; hosts launch just ahead of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from stepscope.analysis.collectives.calls import CALLS, operation
from stepscope.ranks.job.course import Course, course_of
from stepscope.ranks.job.graph import JobGraph
from tests.builders.documents import kineto_document, span

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
KERNELS = {
    "allreduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "send": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "recv": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "all_to_allv": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
}
Factor = Callable[[int, int], float]


def _one(_rank: int, _step: int) -> float:
    return 1.0


@dataclass(frozen=True)
class Job:
    """Factors are of a rank in a step: on its kernels, on what its host does before each step, on its transfers."""

    tensor: int = 2
    stages: int = 4
    replicas: int = 2
    micro_batches: int = 8
    steps: int = 6
    forward: float = 1000.0
    input: float = 50.0
    device: Factor = _one
    host: Factor = _one
    loader: Factor = _one
    link: Factor = _one
    batch: Factor = _one  # on kernels of layers, and on what they send
    experts: Factor | None = None
    jitter: float = 0.003
    seed: int = 1

    @property
    def world(self) -> int:
        """All ranks."""
        return self.tensor * self.stages * self.replicas

    def place(self, rank: int) -> tuple[int, int, int]:
        """Stage, replica and place in the tensor group."""
        return rank // (self.tensor * self.replicas), rank // self.tensor % self.replicas, rank % self.tensor

    def rank(self, stage: int, replica: int, place: int) -> int:
        """And back."""
        return (stage * self.replicas + replica) * self.tensor + place


@dataclass
class _Node:
    rank: int
    step: int
    what: str
    us: float
    meeting: str | None = None
    args: dict[str, Any] = field(default_factory=dict)
    before: list[int] = field(default_factory=list)


def write(job: Job, folder: Path) -> Path:
    """A file for each rank."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes, start, end = run(job)
    for rank in range(job.world):
        mine = [(n, s, e) for n, s, e in zip(nodes, start, end, strict=True) if n.rank == rank]
        (folder / f"rank{rank}.pt.trace.json").write_text(json.dumps(_document(job, rank, mine)))
    return folder


def courses(job: Job) -> list[Course]:
    """What `course_of` makes of the ranks, without files."""
    nodes, start, end = run(job)
    by_rank: dict[int, list[tuple[_Node, int, int]]] = {}
    for node, s, e in zip(nodes, start, end, strict=True):
        by_rank.setdefault(node.rank, []).append((node, round(1000 * s), round(1000 * e)))
    return [_course(job, rank, mine) for rank, mine in by_rank.items()]


_PARTS = {"gemm": "compute", "loader": "input", "host": "python"}


def _course(job: Job, rank: int, mine: list[tuple[_Node, int, int]]) -> Course:
    waited = [each for each in mine if each[0].what != "send"]
    slices = [(s, e, _PARTS.get(node.what, "collective"), node.step) for node, s, e in waited]
    begins = [min(s for node, s, _ in waited if node.step == step) for step in range(job.steps)]
    ends = [*begins[1:], max(e for _, _, e in waited)]
    frame = pl.DataFrame(slices, schema=["start_ns", "end_ns", "part", "step"], orient="row")
    windows = pl.DataFrame({"step": range(job.steps), "start_ns": begins, "end_ns": ends}).cast(
        {"step": pl.Int32}
    )
    calls = [_call(at, *each) for at, each in enumerate(mine) if each[0].meeting is not None]
    did = frame.filter(pl.col("part").is_in(["input", "python"])).select(
        pl.col("step").cast(pl.Int32), "part", ns=pl.col("end_ns") - pl.col("start_ns")
    )
    return course_of(pl.DataFrame(calls, schema=CALLS), frame, windows, rank, None, did)


def _call(event: int, node: _Node, start: int, end: int) -> dict[str, Any]:
    args = node.args
    return {
        "event": event, "name": operation(node.what), "group": args["Process Group Name"], "group_size": args["Group size"],
        "dtype": "bfloat16", "bytes": 2 * args["In msg nelems"], "dur_ns": end - start, "start_ns": start, "step": node.step,
        "group_ranks": args["Process Group Ranks"], "sequence": args.get("Seq"), "device": 0, "on_host": False,
        "stream": sum(map(ord, args["lane"])), "peer": args.get("Dst Rank", args.get("Src Rank")),
    }  # fmt: skip


def step_us(job: Job) -> float:
    """The mean step."""
    _, _, end = run(job)
    return max(end) / job.steps


def run(job: Job) -> tuple[list[_Node], list[float], list[float]]:
    """All work with its times."""
    nodes: list[_Node] = []
    for rank in range(job.world):
        _Rank(job, rank, nodes).program()
    names = sorted({node.meeting for node in nodes if node.meeting is not None})
    number = {name: at for at, name in enumerate(names)}
    frame = pl.DataFrame(
        {
            "step": [node.step for node in nodes],
            "ns": [round(1000 * node.us) for node in nodes],
            "meeting": [None if node.meeting is None else number[node.meeting] for node in nodes],
        }
    )
    edges = [(before, at) for at, node in enumerate(nodes) for before in node.before]
    graph = JobGraph(frame, pl.DataFrame(edges, schema=["before", "after"], orient="row"))
    assert graph.is_complete
    start, end = graph.play()
    return nodes, [each / 1000 for each in start], [each / 1000 for each in end]


class _Rank:
    def __init__(self, job: Job, rank: int, nodes: list[_Node]) -> None:
        self.job, self.rank, self.nodes = job, rank, nodes
        self.stage, self.replica, self.at = job.place(rank)
        self.chance = Random(f"{job.seed} {rank}")
        self.last: int | None = None
        self.streams: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.step = 0

    def program(self) -> None:
        for step in range(self.job.steps):
            self.step = step
            self.add("loader", self.job.input * self.job.loader(self.rank, step))
            self.add("host", self.job.input * self.job.host(self.rank, step))
            for kind in _one_forward_one_backward(self.stage, self.job.stages, self.job.micro_batches):
                self.forward() if kind == "F" else self.backward()
            ranks = [self.job.rank(self.stage, each, self.at) for each in range(self.job.replicas)]
            self.collective("allreduce", "dp", ranks, 400.0, 50_000_000)
            self.compute(300.0)

    def compute(self, us: float) -> None:
        slow = self.job.device(self.rank, self.step) * self.chance.gauss(1, self.job.jitter)
        self.add("gemm", us * slow)

    def forward(self) -> None:
        if self.stage:
            self.pair("recv", self.stage - 1, "forward")
        self.layer(self.job.forward)
        if self.stage + 1 < self.job.stages:
            self.pair("send", self.stage + 1, "forward")

    def backward(self) -> None:
        if self.stage + 1 < self.job.stages:
            self.pair("recv", self.stage + 1, "backward")
        self.layer(2 * self.job.forward)
        if self.stage:
            self.pair("send", self.stage - 1, "backward")

    def layer(self, us: float) -> None:
        tokens = self.job.batch(self.rank, self.step)
        us *= tokens
        self.compute(us / 2)
        ranks = [self.job.rank(self.stage, self.replica, each) for each in range(self.job.tensor)]
        self.collective("allreduce", "tp", ranks, 40.0 * tokens, round(4_000_000 * tokens))
        if self.job.experts is None:
            self.compute(us / 2)
            return
        peers = [self.job.rank(self.stage, each, self.at) for each in range(self.job.replicas)]
        routed = self.job.experts(self.rank, self.step)
        self.collective("all_to_allv", "ep", peers, 30.0, round(2_000_000 * routed))
        self.compute(us / 2 * routed)
        self.collective("all_to_allv", "ep", peers, 30.0, round(2_000_000 * routed))

    def collective(self, name: str, group: str, ranks: list[int], us: float, size: int) -> None:
        if len(ranks) < 2:
            return
        key = f"{group} {ranks}"
        number = self.counts[key] = self.counts.get(key, -1) + 1
        slow = max(self.job.link(rank, self.step) for rank in ranks) if group != "tp" else 1.0
        args = {
            "Group size": len(ranks),
            "Process Group Ranks": str(ranks),
            "Process Group Name": key,
            "Seq": number,
        }
        self.add(name, us * slow, f"{key} {number}", {**args, **_sized(name, size)}, group)

    def pair(self, name: str, stage: int, way: str) -> None:
        peer, tokens = self.job.rank(stage, self.replica, self.at), self.job.batch(self.rank, self.step)
        key = f"{way} {min(self.rank, peer)} {max(self.rank, peer)}"
        number = self.counts[key] = self.counts.get(key, -1) + 1
        group = [self.job.rank(each, self.replica, self.at) for each in range(self.job.stages)]
        args = {
            "Group size": len(group), "Process Group Ranks": str(group), "Process Group Name": f"pp {group[0]}",
            "Dst Rank" if name == "send" else "Src Rank": peer, **_sized(name, round(1_000_000 * tokens)),
        }  # fmt: skip
        us = 20.0 * tokens * max(self.job.link(self.rank, self.step), self.job.link(peer, self.step))
        self.add(name, us, f"{key} {number}", args, f"{name} {way}", waits=name == "recv")

    def add(
        self, what: str, us: float, meeting: str | None = None, args: dict[str, Any] | None = None,
        stream: str = "compute", waits: bool = True,
    ) -> None:  # fmt: skip
        places = {self.last, self.streams.get(stream)}
        before = sorted(place for place in places if place is not None)
        args = {**(args or {}), "lane": stream}
        self.nodes.append(_Node(self.rank, self.step, what, us, meeting, args, before))
        self.streams[stream] = len(self.nodes) - 1
        if waits:
            self.last = len(self.nodes) - 1


def _sized(name: str, size: int) -> dict[str, Any]:
    return {"Collective name": name, "In msg nelems": size, "Out msg nelems": size, "dtype": "BFloat16"}


def _one_forward_one_backward(stage: int, stages: int, count: int) -> Iterator[str]:
    ahead = min(count, stages - stage - 1)
    yield from "F" * ahead
    for _ in range(count - ahead):
        yield from "FB"
    yield from "B" * ahead


def _document(job: Job, rank: int, mine: list[tuple[_Node, float, float]]) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    lanes: dict[str, int] = {"compute": 7}
    for step in range(job.steps):
        inside = [(s, e) for node, s, e in mine if node.step == step and node.args["lane"] == "compute"]
        begin, finish = min(s for s, _ in inside), max(e for _, e in inside)
        events.append(span("user_annotation", f"ProfilerStep#{step}", 5e6 + begin, finish - begin - 0.5))
    for number, (node, start, end) in enumerate(mine):
        at = 5e6 + start
        if node.what in ("loader", "host"):
            name, kind = (
                (LOADER, "user_annotation")
                if node.what == "loader"
                else ("train.py(7): log", "python_function")
            )
            events.append(span(kind, name, at + 1, end - start - 8))
            continue
        stream = lanes.setdefault(node.args["lane"], 7 + 4 * len(lanes))
        args = {name: value for name, value in node.args.items() if name != "lane"}
        place = {
            "device": 0,
            "stream": stream,
            "correlation": 100 + number,
            "grid": [64, 1, 1],
            "block": [128, 1, 1],
        }
        events.append(span("cuda_runtime", "cudaLaunchKernel", at - 5, 2, correlation=100 + number))
        name = KERNELS.get(node.what, node.what)
        events.append(span("kernel", name, at, max(end - start, 0.5), pid=0, tid=stream, **place, **args))
    return kineto_document(
        *events,
        distributedInfo={"backend": "nccl", "rank": rank, "world_size": job.world},
        deviceProperties=[{"id": 0, "name": "NVIDIA H200"}],
    )
