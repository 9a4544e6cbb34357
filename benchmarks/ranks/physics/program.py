"""What the host of a rank does in a step, in order: kernels, collectives, waits. The schedule of the pipeline is 1F1B."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from benchmarks.ranks.physics.layout import Group, Layout, Place
from benchmarks.ranks.physics.work import COPY_IN, Part, Work

_INPUT_NS = 250_000.0
_ZERO_GRAD_NS = 80_000.0
_COPY_NS = 12_000.0


class Stream(IntEnum):
    """CUDA streams, as numbered in a profile."""

    COMPUTE = 7
    TENSOR = 20
    DATA = 24
    FORWARD_IN = 28
    FORWARD_OUT = 32
    BACKWARD_IN = 36
    BACKWARD_OUT = 40
    EXPERT = 44
    MODEL = 48
    EXPERT_DATA = 52


@dataclass(frozen=True, slots=True)
class Kernel:
    """Launched to the compute stream."""

    part: Part
    backward: bool = False
    expert: bool = False  # whether its time depends on the tokens that the rank's experts get
    tokens: bool = True  # whether it depends on the tokens of the replica


@dataclass(frozen=True, slots=True)
class Call:
    """A rank's part in a collective, or one end of a transfer; `elements` of `width` bytes."""

    operation: str
    group: Group
    members: tuple[int, ...]
    stream: Stream
    elements: int
    width: int = 2
    backward: bool = False
    activations: bool = True  # whether its size depends on tokens
    source: int | None = None  # of a transfer, with its destination: positions in the group
    target: int | None = None
    combine: bool = False  # of tokens that come back from experts


@dataclass(frozen=True, slots=True)
class Join:
    """The compute stream waits for another one."""

    stream: Stream


@dataclass(frozen=True, slots=True)
class Busy:
    """The host does something else; a part of the job's input if `input`."""

    name: str
    ns: float
    input: bool = False


@dataclass(frozen=True, slots=True)
class Sync:
    """The host waits for the device."""


Action = Kernel | Call | Join | Busy | Sync


@dataclass(frozen=True)
class Plan:
    """What all ranks agree on: `sync` has the host wait once a step, `sharded` divides the optimizer over replicas."""

    layout: Layout
    work: Work
    micro_batches: int
    sync: bool
    sharded: bool


def step_of(plan: Plan, rank: int) -> list[Action]:
    """The actions of this rank in each step."""
    return list(_Rank(plan, rank).step())


def one_forward_one_backward(stage: int, stages: int, count: int) -> Iterator[tuple[str, int]]:
    """What a stage does with which micro-batch."""
    warm = min(stages - stage - 1, count)
    yield from (("forward", number) for number in range(warm))
    for number in range(count - warm):
        yield "forward", warm + number
        yield "backward", number
    yield from (("backward", number) for number in range(count - warm, count))


class _Rank:
    """One rank of the job."""

    def __init__(self, plan: Plan, rank: int) -> None:
        self.plan, self.rank = plan, rank
        self.layout, self.work, self.count = plan.layout, plan.work, plan.micro_batches
        self.place: Place = self.layout.place(rank)
        self.first, self.last = self.place.pp == 0, self.place.pp == self.layout.pp - 1

    def step(self) -> Iterator[Action]:
        """All of it."""
        yield Busy("Optimizer.zero_grad#FusedAdam.zero_grad", _ZERO_GRAD_NS)
        if self.first or self.last:
            yield Busy("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", _INPUT_NS, True)
            yield Kernel(Part(*COPY_IN, _COPY_NS), tokens=False)
        yield from self._pipeline()
        yield from self._update()

    def _pipeline(self) -> Iterator[Action]:
        """Megatron's order: after a forward it sends, then receives a gradient, and the other way round."""
        for what, number in one_forward_one_backward(self.place.pp, self.layout.pp, self.count):
            if what == "forward":
                yield from self._receive(Stream.FORWARD_IN)
                yield from self._forward()
                yield from self._send(Stream.FORWARD_OUT)
            else:
                yield from self._receive(Stream.BACKWARD_IN)
                yield from self._backward(reduce=number == self.count - 1)
                yield from self._send(Stream.BACKWARD_OUT)

    def _forward(self) -> Iterator[Action]:
        if self.first:
            yield Kernel(self.work.head(backward=False))
        for _ in range(self.work.layers):
            yield from (Kernel(part) for part in self.work.attention(backward=False))
            yield from self._tensor_reduce(backward=False)
            yield from self._feed_forward(backward=False)
        if self.last:
            yield Kernel(self.work.head(backward=False))

    def _backward(self, *, reduce: bool) -> Iterator[Action]:
        if self.last:
            yield Kernel(self.work.head(backward=True), backward=True)
        for _ in range(self.work.layers):
            yield from self._feed_forward(backward=True)
            if reduce:
                yield from self._reduce_feed_forward()
            yield from (Kernel(part, True) for part in self.work.attention(backward=True))
            yield from self._tensor_reduce(backward=True)
            if reduce:
                yield from self._data_reduce("dp", Stream.DATA, self.work.layer_parameters // 3)
        if self.first:
            yield Kernel(self.work.head(backward=True), backward=True)

    def _feed_forward(self, *, backward: bool) -> Iterator[Action]:
        experts = self.layout.ep > 1
        if experts:
            yield from self._exchange(backward, combine=False)
        for part in self.work.feed_forward(backward=backward):
            yield Kernel(part, backward, expert=experts)
        if experts:
            yield from self._exchange(backward, combine=True)
        else:
            yield from self._tensor_reduce(backward=backward)

    def _tensor_reduce(self, *, backward: bool) -> Iterator[Action]:
        if self.layout.tp > 1:
            yield self._call("all_reduce", "tp", Stream.TENSOR, self.work.activations, backward=backward)
            yield Join(Stream.TENSOR)

    def _exchange(self, backward: bool, *, combine: bool) -> Iterator[Action]:
        elements = self.work.activations // self.layout.tp
        call = self._call("all_to_all", "ep", Stream.EXPERT, elements, backward=backward)
        yield replace(call, combine=combine)
        yield Join(Stream.EXPERT)

    def _reduce_feed_forward(self) -> Iterator[Action]:
        """Gradients of experts are shared by fewer ranks."""
        elements = self.work.layer_parameters * 2 // 3
        if self.layout.ep > 1:
            yield from self._data_reduce("edp", Stream.EXPERT_DATA, elements)
        else:
            yield from self._data_reduce("dp", Stream.DATA, elements)

    def _data_reduce(self, role: str, stream: Stream, elements: int) -> Iterator[Action]:
        """A bucket of gradients, beside what is left of backward."""
        if len(self.layout.groups[role][self.rank].ranks) > 1:
            operation = "reduce_scatter" if self.plan.sharded else "all_reduce"
            yield self._call(operation, role, stream, elements, backward=True, activations=False)

    def _update(self) -> Iterator[Action]:
        """The norm of all gradients is clipped, so that ranks of a replica meet before the optimizer."""
        if self.layout.dp > 1:
            yield Join(Stream.DATA)
        if self.layout.ep > 1 and self.layout.dp > self.layout.ep:
            yield Join(Stream.EXPERT_DATA)
        if self.layout.tp * self.layout.pp > 1:
            yield self._call("all_reduce", "mp", Stream.MODEL, 1, width=4, activations=False)
            yield Join(Stream.MODEL)
        if self.plan.sync:
            yield Sync()
        shares = self.layout.dp if self.plan.sharded else 1
        yield Kernel(self.work.optimizer(shares), tokens=False)
        if self.plan.sharded:
            elements = self.work.layers * self.work.layer_parameters
            yield self._call("all_gather", "dp", Stream.DATA, elements, activations=False)
            yield Join(Stream.DATA)

    def _call(
        self,
        operation: str,
        role: str,
        stream: Stream,
        elements: int,
        *,
        width: int = 2,
        backward: bool = False,
        activations: bool = True,
    ) -> Call:
        group = self.layout.groups[role][self.rank]
        return Call(operation, group, group.ranks, stream, elements, width, backward, activations)

    def _receive(self, stream: Stream) -> Iterator[Action]:
        forward = stream == Stream.FORWARD_IN
        if not (self.first if forward else self.last):
            stage = self.place.pp
            yield self._transfer(stream, stage - 1 if forward else stage + 1, stage)
            yield Join(stream)

    def _send(self, stream: Stream) -> Iterator[Action]:
        forward = stream == Stream.FORWARD_OUT
        if not (self.last if forward else self.first):
            stage = self.place.pp
            yield self._transfer(stream, stage, stage + 1 if forward else stage - 1)

    def _transfer(self, stream: Stream, source: int, target: int) -> Call:
        """Scattered over the tensor parallel ranks, as Megatron does with sequence parallelism."""
        group = self.layout.groups["pp"][self.rank]
        ends = (group.ranks[source], group.ranks[target])
        elements = self.work.activations // self.layout.tp
        return Call("send_recv", group, ends, stream, elements, source=source, target=target)
