"""Put the files of one job together by what is inside: rank, number of ranks, backend and time. Names are only a hint.

Names group first. Files of one name that say that they are of jobs of other sizes are taken apart; groups that lack ranks of
their job are put together with those that have them, where they were recorded at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from stepscope.lazy import dataclass
from stepscope.profiles.find.inside import Inside, last_event_ns, look_inside
from stepscope.profiles.find.runs import RANKED_GAP_NS, UNRANKED_GAP_NS, Entry, in_profile_folder, ordered

# Names have to do for more files than this: a job of as many ranks names them.
FILES_ASKED = 1_000


@dataclass
class _Part:
    """Files of one job that belong together already, each with another rank."""

    files: dict[int, Entry]
    insides: dict[int, Inside]

    @property
    def world(self) -> int:
        return next(iter(self.insides.values())).world or 0

    @property
    def starts(self) -> list[int]:
        return [each.start_ns for each in self.insides.values() if each.start_ns is not None]

    def take(self, other: _Part) -> None:
        """Add the files of the other."""
        self.files |= other.files
        self.insides |= other.insides


def join_by_content(runs: list[list[Entry]]) -> list[list[Entry]]:
    """The runs with those of one job joined, and those of several jobs taken apart."""
    everything = [item for run in runs for item in run]
    if not 1 < len(everything) <= FILES_ASKED:
        return runs
    insides = look_inside([item for item in everything if not is_settled(item)])
    apart = [piece for run in runs for piece in _by_job(run, insides)]
    wanting: dict[tuple[int, str], list[_Part]] = defaultdict(list)
    others: list[list[Entry]] = []
    for run in apart:
        part = _part(run, insides)
        if part is None or len(part.files) >= part.world:
            others.append(run)
        else:
            wanting[part.world, next(iter(part.insides.values())).backend].append(part)
    jobs = [job for parts in wanting.values() for job in _jobs(parts)]
    changed = [*others, *(_members(job) for job in jobs)]
    return runs if _sets(changed) == _sets(runs) else ordered(changed)


def _sets(runs: list[list[Entry]]) -> set[frozenset[str]]:
    return {frozenset(item.path for item in run) for run in runs}


def is_settled(item: Entry) -> bool:
    """Our own capture and the folders of XProf say what belongs together."""
    return bool(item.capture) or in_profile_folder(item.folder)


def _by_job(run: list[Entry], insides: Mapping[str, Inside]) -> list[list[Entry]]:
    """Files whose names look like ranks of one job, by the jobs that they say they are of."""
    if len(run) < 2 or any(is_settled(item) for item in run):
        return [run]
    worlds = {inside.world for item in run if (inside := insides.get(item.path)) and inside.is_of_many}
    if not worlds:
        return _by_time(run, insides)
    pieces: dict[int | None, list[Entry]] = defaultdict(list)
    largest = max(world or 0 for world in worlds)
    for item in run:
        inside = insides.get(item.path)
        pieces[inside.world if inside and inside.is_of_many else largest].append(item)
    return list(pieces.values())


def _by_time(run: list[Entry], insides: Mapping[str, Inside]) -> list[list[Entry]]:
    """task1 and task2 may as well be two recordings one after the other, unless the name says rank."""
    known = [insides.get(item.path) for item in run]
    if any("rank" in item.template.lower() or item.time_ns is not None for item in run):
        return [run]
    if any(inside is None or inside.start_ns is None for inside in known):
        return [run]
    by_start = sorted(run, key=lambda item: insides[item.path].start_ns or 0)
    pieces: list[list[Entry]] = [[by_start[0]]]
    for item in by_start[1:]:
        if not _is_near(pieces[-1][-1], insides[pieces[-1][-1].path], item, insides[item.path]):
            pieces.append([])
        pieces[-1].append(item)
    return pieces


def _part(run: list[Entry], insides: Mapping[str, Inside]) -> _Part | None:
    """The run as ranks of a job; None where a file has no rank, or two have the same."""
    found = {item: insides.get(item.path) for item in run}
    ranks = [inside.rank for inside in found.values() if inside is not None and inside.is_of_many]
    if len(ranks) < len(run) or len(set(ranks)) < len(run):
        return None
    known = [
        (item, inside) for item, inside in found.items() if inside is not None and inside.rank is not None
    ]
    return _Part(
        {inside.rank: item for item, inside in known if inside.rank is not None},
        {inside.rank: inside for _, inside in known if inside.rank is not None},
    )


def _jobs(parts: list[_Part]) -> list[_Part]:
    """Parts of one size and backend, put together."""
    jobs: list[_Part] = []
    for part in sorted(parts, key=lambda each: min(each.starts, default=0)):
        fitting = [job for job in jobs if not job.files.keys() & part.files.keys() and _meet(job, part)]
        if fitting:
            max(fitting, key=lambda job: _likeness(job, part)).take(part)
        else:
            jobs.append(part)
    return jobs


def _meet(job: _Part, part: _Part) -> bool:
    """Whether they were recorded at the same time, or are exactly the ranks that the other lacks and not far apart."""
    if any(
        _is_near(a, job.insides[r], b, part.insides[s])
        for r, a in job.files.items()
        for s, b in part.files.items()
    ):
        return True
    if len(job.files) + len(part.files) < job.world or not job.starts or not part.starts:
        return False
    return min(part.starts) - max(job.starts) <= RANKED_GAP_NS


def _is_near(one: Entry, first: Inside, other: Entry, second: Inside) -> bool:
    """Whether two recordings overlap, but for what clocks of two machines may differ by. Without times nothing speaks against it."""
    if first.start_ns is None or second.start_ns is None:
        return True
    if abs(first.start_ns - second.start_ns) <= UNRANKED_GAP_NS:
        return True
    earlier, inside = (one, first) if first.start_ns < second.start_ns else (other, second)
    end = last_event_ns(earlier, inside)
    return end is not None and max(first.start_ns, second.start_ns) <= end + UNRANKED_GAP_NS


def _likeness(job: _Part, part: _Part) -> tuple[bool, int, int]:
    """Of two jobs at the same time: the one in the same folder, with the more similar names, begun closer to it."""
    mine, others = next(iter(part.files.values())), list(job.files.values())
    shared = max(_shared(mine.path, other.path) for other in others)
    distance = abs(min(part.starts, default=0) - min(job.starts, default=0))
    return any(other.folder == mine.folder for other in others), shared, -distance


def _shared(one: str, other: str) -> int:
    """The number of characters that both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _members(job: _Part) -> list[Entry]:
    """The files by rank; those that were joined by content are ranked by it."""
    return [replace(item, rank=rank, who=item.who or (rank,)) for rank, item in sorted(job.files.items())]


def absent_elsewhere(absent: Sequence[int], world: int, others: Sequence[Entry]) -> dict[int, Entry]:
    """By rank the files of other runs that say they are a missing rank of a job of this size."""
    insides = look_inside(others[:FILES_ASKED])
    return {
        inside.rank: item
        for item in others
        if (inside := insides.get(item.path)) is not None
        and inside.world == world
        and inside.rank is not None
        and inside.rank in absent
    }
