"""The job runs: each rank's host goes through its steps, its device through what was launched, and collectives wait for the last.

Nothing is told who waits for whom; that follows. A collective ends for all of its ranks when the last has come and the transfer is
done, each with some noise. Ranks are coroutines that stop where they need an end that is not known yet.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from zlib import crc32

from benchmarks.ranks.discrete.case import Case
from benchmarks.ranks.discrete.plan import Action, Call, Delay, Join, Launch, Planned, Post, Wait
from benchmarks.ranks.discrete.source import Source

_LAUNCH_US, _BETWEEN_KERNELS_US, _WAKE_US = 4.0, 0.8, 2.0
_POST_US = 16.0
_LOADER_SHARE = 0.05
_HICCUP_SHARE = 0.05
_FAR = 20.0


@dataclass
class Meeting:
    """A collective, once all are there."""

    call: Call
    starts: dict[int, float] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)


@dataclass
class Step:
    """What a rank did: `moments` map times of the source to true ones, in order."""

    number: int
    start: float
    work: float  # how much more there is to compute
    slow: float  # how much longer than recorded the device takes, for the same
    moments: list[tuple[float, float]] = field(default_factory=list)
    kernels: list[tuple[int, int, float, float]] = field(default_factory=list)  # event, which, start, dur
    calls: list[tuple[Meeting, int, float, int]] = field(default_factory=list)  # number, posted at, thread
    delays: list[tuple[float, float, int]] = field(default_factory=list)  # start, dur, thread
    loader: float = 0.0
    waited: tuple[float, float] | None = None  # at its end, for the device
    end: float = 0.0
    device_end: float = 0.0


@dataclass(frozen=True)
class Simulation:
    """`amount`: how much longer what makes the rank late takes, as a share of a step."""

    case: Case
    source: Source
    plan: list[Planned]
    amount: float = 0.0

    def run(self) -> list[list[Step]]:
        """By rank its steps."""
        meetings: dict[tuple[str, tuple[int, ...], int], Meeting] = {}
        done: list[list[Step]] = [[] for _ in range(self.case.ranks)]
        live = [_Rank(self, rank, meetings).run(done[rank]) for rank in range(self.case.ranks)]
        while live:
            going = [each for each in live if next(each, True) is None]
            live = going
        return done

    def chance(self, *what: object) -> Random:
        """The same for the same thing, however often and in which order it is asked for."""
        return Random(crc32(repr((self.case.seed, *what)).encode()))

    def late(self, rank: int, step: int) -> bool:
        """Whether it is late then."""
        return rank == self.case.rank and step in self.case.late_steps

    def factor(self, rank: int, step: int, cause: str) -> float:
        """How much longer than recorded the host or the device takes."""
        case = self.case
        usual = self.chance(rank).gauss(1, case.lasting) * self.chance("all", step).gauss(1, case.common)
        own = max(0.7, usual * self.chance(rank, step, cause).gauss(1, case.jitter))
        return own * (1 + self.amount if case.cause == cause and self.late(rank, step) else 1)

    def work(self, rank: int, step: int) -> float:
        """How much more there is to compute."""
        uneven = self.chance("work", step).uniform(0.7, 1.3)
        return 1 + self.amount * uneven if self.case.cause == "work" and self.late(rank, step) else 1.0

    def held_up(self, rank: int, step: int, cause: str) -> float:
        """How long the host does something else."""
        late = self.case.cause == cause and self.late(rank, step)
        return self.amount * self.source.length if late else 0.0

    def hiccup(self, rank: int, step: int) -> float:
        """What nobody is to blame for."""
        chance = self.chance("hiccup", rank, step)
        stops = chance.random() < self.case.hiccups
        return chance.expovariate(1 / (_HICCUP_SHARE * self.source.length)) if stops else 0.0

    def noise(self, key: object, rank: int) -> float:
        """Of the end of a transfer."""
        chance, size = self.chance("end", key, rank), self.case.noise_ns / 1000
        if self.case.noise == "normal":
            return max(0.0, chance.gauss(3 * size, size))
        if self.case.noise == "one-sided":
            return abs(chance.gauss(0, size))
        if self.case.noise == "exponential":
            return chance.expovariate(1 / size)
        return size * (chance.paretovariate(1.6) - 1 if chance.random() < 0.9 else _FAR * chance.random())


Wanted = Generator[None, None, None]


class _Rank:
    """Host, device and communication streams of one rank."""

    def __init__(
        self, simulation: Simulation, rank: int, meetings: dict[tuple[str, tuple[int, ...], int], Meeting]
    ) -> None:
        self._simulation, self._rank, self._meetings = simulation, rank, meetings
        self._host = simulation.chance("begin", rank).uniform(0, 50)
        self._device = self._host
        self._pending: dict[str, Meeting] = {}
        self._counts: dict[str, int] = {}

    def run(self, done: list[Step]) -> Wanted:
        """All steps, one after the other."""
        for number in range(self._simulation.case.steps):
            slow = self._simulation.factor(self._rank, number, "compute")
            step = Step(number, self._host, self._simulation.work(self._rank, number), slow)
            yield from self._through(step)
            step.end, step.device_end = self._host, self._device
            done.append(step)
        yield from self._join()
        done[-1].device_end = self._device

    def _through(self, step: Step) -> Wanted:
        simulation, rank = self._simulation, self._rank
        slow, before = simulation.factor(rank, step.number, "dispatch"), 0.0
        varies = simulation.chance("loader", rank, step.number).gauss(1, 3 * simulation.case.jitter)
        step.loader = _LOADER_SHARE * simulation.source.length * max(0.3, varies)
        step.loader += simulation.held_up(rank, step.number, "input")
        self._moment(step, 0.0)
        self._host += step.loader
        self._moment(step, 0.0)
        for at, action in simulation.plan:
            self._host += (at - before) * slow
            before = at
            self._moment(step, at)
            if isinstance(action, Wait):
                self._host, before = max(self._host, self._device) + _WAKE_US, action.until
            else:
                yield from self._act(step, action)
            self._moment(step, before)
        self._host += (simulation.source.length - before) * slow
        self._moment(step, simulation.source.length)
        if simulation.case.sync:
            began, self._host = self._host, max(self._host, self._device) + _WAKE_US
            step.waited = (began, self._host - began)

    def _moment(self, step: Step, at: float) -> None:
        step.moments.append((at, self._host))

    def _act(self, step: Step, action: Action) -> Wanted:
        if isinstance(action, Launch):
            self._launch(step, action)
        elif isinstance(action, Delay):
            self._delay(step, action)
        elif isinstance(action, Join):
            yield from self._join()
        elif isinstance(action, Post):
            yield from self._post(step, action)

    def _launch(self, step: Step, action: Launch) -> None:
        slow = step.slow * step.work
        for which, kernel in enumerate(self._simulation.source.events[action.event].kernels):
            start = max(self._host + _LAUNCH_US, self._device + _BETWEEN_KERNELS_US)
            step.kernels.append((action.event, which, start, kernel.dur * slow))
            self._device = start + kernel.dur * slow

    def _delay(self, step: Step, action: Delay) -> None:
        planned = self._simulation.held_up(self._rank, step.number, "python")
        if planned:
            step.delays.append((self._host, planned, action.thread))
        self._host += planned + self._simulation.hiccup(self._rank, step.number)

    def _join(self) -> Wanted:
        for meeting in self._pending.values():
            yield from self._ended(meeting)
            self._device = max(self._device, meeting.ends[self._rank])

    def _post(self, step: Step, action: Post) -> Wanted:
        call = action.calls[self._rank]
        before = self._pending.get(call.group)
        if before is not None:
            yield from self._ended(before)
        free = before.ends[self._rank] if before is not None else 0.0
        number = self._counts[call.group] = self._counts.get(call.group, 0) + 1
        key = (call.group, call.members, number)
        meeting = self._meetings.setdefault(key, Meeting(call))
        meeting.starts[self._rank] = max(self._host + _POST_US, self._device, free) + 1.0
        self._pending[call.group] = meeting
        step.calls.append((meeting, number, self._host, action.thread))
        self._host += _POST_US
        if len(meeting.starts) == len(call.members):
            self._ends(meeting, key)
        if call.blocking:
            yield from self._ended(meeting)
            self._device = max(self._device, meeting.ends[self._rank])

    def _ends(self, meeting: Meeting, key: object) -> None:
        """The last has come."""
        took = meeting.call.transfer * self._simulation.chance("transfer", key).uniform(0.95, 1.15)
        last = max(meeting.starts.values())
        meeting.ends = {
            rank: last + took + self._simulation.noise(key, rank) for rank in meeting.call.members
        }

    @staticmethod
    def _ended(meeting: Meeting) -> Wanted:
        while not meeting.ends:
            yield


def mean_step(ranks: list[list[Step]]) -> float:
    """Of the job, from the first beginning to the last end."""
    end = max(max(steps[-1].end, steps[-1].device_end) for steps in ranks)
    return (end - min(steps[0].start for steps in ranks)) / len(ranks[0])
