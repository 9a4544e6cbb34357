"""The job runs: hosts launch ahead of their devices, streams run in order, collectives begin when the last member has come.

Ranks are coroutines that stop only where they need the end of a collective that some member has not reached yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from zlib import crc32

import numpy as np

from benchmarks.ranks.physics.conditions import Conditions, Pause
from benchmarks.ranks.physics.job import WARM_UP, Job
from benchmarks.ranks.physics.network import Network
from benchmarks.ranks.physics.program import Action, Busy, Call, Join, Kernel, Stream, Sync

LAUNCH_NS, RETURN_NS, BETWEEN_STEPS_NS = 4_500.0, 500.0, 20_000.0
LAUNCH_DELAY_NS, BETWEEN_KERNELS_NS, WAKE_NS = 3_500.0, 900.0, 6_000.0
OP_NS, CALL_NS = 14_000.0, 45_000.0
_HOST_NOISE, _TRANSFER_NOISE = 0.2, 0.03
_LONGEST_TAIL_NS = 1_500.0

Key = tuple[str, tuple[int, ...], int, int]


@dataclass(slots=True)
class Meeting:
    """A collective: when each member came, and left."""

    starts: dict[int, float] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)  # ranks that cannot go on


@dataclass(slots=True)
class Done:
    """An action of a rank in a step: times of the host, of the launch, and of the device."""

    action: Action
    step: int
    begin: float
    end: float
    launch: tuple[float, float] = (0.0, 0.0)
    device: tuple[float, float] = (0.0, 0.0)
    meeting: Meeting | None = None


@dataclass(slots=True)
class Run:
    """What happened: by rank its actions, and when the host and the device began and ended each step."""

    done: list[list[Done]]
    host: list[list[tuple[float, float]]]
    finished: list[list[float]]

    def step_ns(self) -> float:
        """The mean recorded step of the job: from one moment when all devices have finished to another."""
        ends: list[float] = [max(of_step) for of_step in zip(*self.finished, strict=True)]
        return (ends[-1] - ends[WARM_UP - 1]) / (len(ends) - WARM_UP)


Waiting = Generator[Meeting, None, None]


def simulate(job: Job, conditions: Conditions) -> Run:
    """Run the job under these conditions; the same each time."""
    world = _World(job, conditions)
    ranks = [_Rank(world, rank) for rank in range(job.layout.world)]
    running = [rank.run() for rank in ranks]
    while world.ready:
        number = world.ready.popleft()
        blocked = next(running[number], None)
        if blocked is not None:
            blocked.waiting.append(number)
    return Run(
        [rank.done for rank in ranks], [rank.host for rank in ranks], [rank.finished for rank in ranks]
    )


class _World:
    """What ranks share."""

    def __init__(self, job: Job, conditions: Conditions) -> None:
        self.job, self.conditions = job, conditions
        self.network = Network(job.layout, conditions)
        self.meetings: dict[Key, Meeting] = {}
        self.ready = deque(range(job.layout.world))

    def arrive(self, rank: int, call: Call, key: Key, step: int, start: float) -> Meeting:
        """A member comes; the last one decides when all leave."""
        meeting = self.meetings.setdefault(key, Meeting())
        meeting.starts[rank] = start
        if len(meeting.starts) == len(call.members):
            self._end(meeting, call, key, step)
        return meeting

    def _end(self, meeting: Meeting, call: Call, key: Key, step: int) -> None:
        chance = Random(crc32(repr((self.job.seed, key)).encode()))
        size = round(call.elements * call.width * self._load(call, step))
        transfer = self.network.transfer_ns(call.operation, call.members, size)
        end = max(meeting.starts.values()) + transfer * chance.lognormvariate(0, _TRANSFER_NOISE)
        for rank in call.members:
            meeting.ends[rank] = end + chance.uniform(0, _LONGEST_TAIL_NS)
        self.ready.extend(meeting.waiting)

    def _load(self, call: Call, step: int) -> float:
        """Members with more tokens make a transfer longer for all."""
        if not call.activations:
            return 1.0
        places = [self.job.layout.place(rank) for rank in call.members]
        load = max(self.conditions.tokens[place.dp, step] for place in places)
        if call.operation == "all_to_all":
            load *= max(self.conditions.experts[places[0].pp])
        return float(load)


class _Rank:
    """A host and its device."""

    def __init__(self, world: _World, rank: int) -> None:
        self.world, self.rank = world, rank
        self.job, self.conditions = world.job, world.conditions
        self.place = self.job.layout.place(rank)
        self.done: list[Done] = []
        self.host: list[tuple[float, float]] = []
        self.finished: list[float] = []
        self.now = float(np.random.default_rng((self.job.seed, rank, 9999)).uniform(0, 200_000))
        self._own = self._lasting()
        self._free: dict[Stream, float | Meeting] = {Stream.COMPUTE: 0.0}
        self._begun: deque[float] = deque()
        self._counts: dict[tuple[str, tuple[int, ...]], int] = {}
        self._factors: dict[tuple[bool, bool, int], float] = {}

    def run(self) -> Waiting:
        """All steps."""
        program = self.job.programs[self.rank]
        for step in range(self.job.simulated):
            self.now += BETWEEN_STEPS_NS
            begin = self.now
            hosts, devices = self._noise(step, len(program))
            pauses = self._pauses(step, len(program))
            for at, action in enumerate(program):
                yield from self._do(action, step, hosts[at], devices[at], pauses.get(at))
            self.host.append((begin, self.now))
            self.finished.append((yield from self._end(Stream.COMPUTE)))

    def _do(self, action: Action, step: int, slow: float, noise: float, pause: Pause | None) -> Waiting:
        if pause is not None and pause.on_host:
            self.now += pause.ns
        if isinstance(action, Kernel):
            extra = pause.ns if pause is not None and not pause.on_host else 0.0
            yield from self._compute(action, step, slow, noise, extra)
        elif isinstance(action, Call):
            yield from self._communicate(action, step, slow)
        elif isinstance(action, Join):
            yield from self._join(action.stream)
        elif isinstance(action, Busy):
            self._busy(action, step, slow)
        elif isinstance(action, Sync):
            yield from self._wait(action, step)

    def _compute(self, kernel: Kernel, step: int, slow: float, noise: float, extra: float) -> Waiting:
        """Python between ops is half of the host's time in forward; autograd's thread has none."""
        needed = self.job.host_share * kernel.part.ns * slow
        python = 0.0 if kernel.backward else needed / 2
        begin = self.now + python
        launch = self._launch(begin + needed - python + OP_NS * slow - LAUNCH_NS)
        free = yield from self._end(Stream.COMPUTE)
        start = max(launch[1] + LAUNCH_DELAY_NS, free + BETWEEN_KERNELS_NS)
        end = start + kernel.part.ns * self._factor(kernel, step) * noise + extra
        self._begun.append(start)
        self._free[Stream.COMPUTE] = end
        self.now = launch[1] + RETURN_NS
        self.done.append(Done(kernel, step, begin, self.now, launch, (start, end)))

    def _communicate(self, call: Call, step: int, slow: float) -> Waiting:
        """The stream of the collective waits for what is launched before, and only that."""
        begin = self.now
        launch = self._launch(begin + CALL_NS * slow - 2 * LAUNCH_NS)
        compute = yield from self._end(Stream.COMPUTE)
        free = yield from self._end(call.stream)
        start = max(launch[1] + LAUNCH_DELAY_NS, compute, free + BETWEEN_KERNELS_NS)
        meeting = self.world.arrive(self.rank, call, self._key(call), step, start)
        self._begun.append(start)
        self._free[call.stream] = meeting
        self.now = launch[1] + LAUNCH_NS
        self.done.append(Done(call, step, begin, self.now, launch, (start, start), meeting))

    def _join(self, stream: Stream) -> Waiting:
        other, own = (yield from self._end(stream)), (yield from self._end(Stream.COMPUTE))
        self._free[Stream.COMPUTE] = max(own, other)

    def _busy(self, action: Busy, step: int, slow: float) -> None:
        begin = self.now
        late = float(self.conditions.late_input_ns[self.rank, step]) if action.input else 0.0
        self.now += action.ns * slow + late
        self.done.append(Done(action, step, begin, self.now))

    def _wait(self, action: Sync, step: int) -> Waiting:
        begin = self.now
        free = yield from self._end(Stream.COMPUTE)
        self.now = max(begin + LAUNCH_NS, free + WAKE_NS)
        self.done.append(Done(action, step, begin, self.now))

    def _launch(self, at: float) -> tuple[float, float]:
        """The call that launches: it returns once the device has room in its queue."""
        room = self._begun.popleft() if len(self._begun) >= self.job.queue else 0.0
        return at, max(at + LAUNCH_NS, room)

    def _end(self, stream: Stream) -> Generator[Meeting, None, float]:
        """When a stream has finished what it was given."""
        free = self._free.get(stream, 0.0)
        if isinstance(free, Meeting):
            while not free.ends:
                yield free
            free = free.ends[self.rank]
            self._free[stream] = free
        return free

    def _key(self, call: Call) -> Key:
        ends = call.members if call.source is not None else ()
        base = (call.group.name, ends)
        self._counts[base] = self._counts.get(base, -1) + 1
        return (*base, len(call.members), self._counts[base])

    def _factor(self, kernel: Kernel, step: int) -> float:
        conditions = self.conditions
        key = (kernel.tokens, kernel.expert, step)
        if key not in self._factors:
            factor = self._own * conditions.device[self.rank, step]
            if kernel.tokens:
                factor *= conditions.stages[self.place.pp] * conditions.tokens[self.place.dp, step]
            if kernel.expert:
                factor *= conditions.experts[self.place.pp, self.place.dp % self.job.layout.ep]
            self._factors[key] = float(factor)
        return self._factors[key]

    def _lasting(self) -> float:
        chance = np.random.default_rng((self.job.seed, self.rank))
        return float(chance.lognormal(0, self.job.lasting))

    def _noise(self, step: int, count: int) -> tuple[list[float], list[float]]:
        """How much longer each action takes on the host, which may be a slow one, and on the device."""
        chance = np.random.default_rng((self.job.seed, self.rank, step))
        host = chance.lognormal(0, _HOST_NOISE, count) * self.conditions.host[self.rank, step]
        return host.tolist(), chance.lognormal(0, self.job.noise, count).tolist()

    def _pauses(self, step: int, count: int) -> dict[int, Pause]:
        """By action; a pause of the device is moved to the next kernel."""
        program = self.job.programs[self.rank]
        placed = {}
        for pause in self.conditions.pauses.get((self.rank, step), ()):
            at = int(pause.share * count)
            kernels = (place for place in range(at, count) if isinstance(program[place], Kernel))
            placed[at if pause.on_host else next(kernels, count - 1)] = pause
        return placed
