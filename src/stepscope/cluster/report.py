"""The report of a run whose ranks are read elsewhere: the same as if they had been read here."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options, parse_steps
from stepscope.analysis.steps.regions import agree_on_region
from stepscope.cluster import work
from stepscope.cluster.place import Here, Place, Progress
from stepscope.cluster.processes import Processes
from stepscope.cluster.work import COLLECTIVES, Answer, Task
from stepscope.errors import UnreadableFile
from stepscope.profiles.find.catalog import Catalog, Places, choose, scan
from stepscope.profiles.find.nothing_found import nothing_found
from stepscope.profiles.find.runs import Entry, Run
from stepscope.profiles.load import put_together as profile_of
from stepscope.profiles.profile import Profile
from stepscope.profiles.ranks import LoadedFile
from stepscope.ranks.compare import Compared, compared, plan, without_anchors
from stepscope.ranks.meetings import add_met, reduce_meetings
from stepscope.registers.policy.tables import REPORT_ROWS
from stepscope.reports.build import chosen_sections, put_together
from stepscope.reports.examined import (
    add_examined,
    are_many,
    asked_in_full,
    asked_of_every_rank,
    choose_examined,
)
from stepscope.reports.failures import Failures
from stepscope.reports.report import Report
from stepscope.reports.sections.collectives import told_of
from stepscope.reports.sections.section import Section

if TYPE_CHECKING:
    from distributed import Client


def report(
    path: Places,
    *,
    where: str | int | Client | None = None,
    run: str | None = None,
    rank: int | Collection[int] | None = None,
    step: str | None = None,
    step_name: str | None = None,
    whole: bool = False,
    sections: Collection[str] | None = None,
    limit: int = REPORT_ROWS,
    ops_by: Sequence[str] = (),
    cache: bool = True,
    progress: Progress | None = None,
) -> Report:
    """The report of the profile at a path, its ranks read by `where`.

    That is the address of a Dask scheduler (`tcp://host:8786`) or a `distributed.Client`; a number of local processes, None
    for one on each core; or 0 for this process.
    """
    options = Options(step_name, parse_steps(step) if step is not None else None, limit, tuple(ops_by), whole)
    wanted = None if sections is None else tuple(sections)
    return looked(path, options, where, run, rank, wanted, cache, progress)[0]


def looked(
    path: Places,
    options: Options,
    where: str | int | Client | None = None,
    run: str | None = None,
    rank: int | Collection[int] | None = None,
    sections: tuple[str, ...] | None = None,
    cache: bool = True,
    progress: Progress | None = None,
    also: Callable[[RankContext], Any] | None = None,
) -> tuple[Report, list[Any]]:
    """The report, and what `also` gives for each of its ranks: a function that can be named, of a small result."""
    wanted = chosen_sections(sections)
    catalog = scan(path)
    if not catalog.runs:
        raise nothing_found(catalog)
    chosen = choose(catalog, run)
    ranks = None if rank is None else {rank} if isinstance(rank, int) else set(rank)
    count = len(chosen.entries if ranks is None else ranks)
    many = are_many(count)
    first = tuple(section.name for section in (asked_of_every_rank(wanted) if many else wanted))
    tasks = [
        Task(
            number,
            _address(entry),
            number if entry.rank is None else entry.rank,
            options,
            first,
            cache=cache,
            also=also,
            alone=count == 1,
            in_brief=many,
        )
        for number, entry in enumerate(chosen.entries)
    ]
    with closing(place_of(where)) as place:
        job = _Job(place, chosen, catalog, options, wanted, ranks)
        return job.report(tasks, _in_bytes(progress, chosen) if progress is not None else _quiet)


def place_of(where: str | int | Client | None) -> Place:
    """Where to work."""
    if where is None or (isinstance(where, int) and where > 0):
        return Processes(where)
    if isinstance(where, int):
        return Here()
    from stepscope.cluster.on_dask import OnDask

    return OnDask(where)


def _in_bytes(progress: Progress, run: Run) -> Progress:
    """Progress bars count bytes; which of the ranks are done does not matter."""
    size = sum(entry.size for entry in run.entries)
    return lambda done, total: progress(size * done // max(1, total), size)


def _quiet(done: int, total: int) -> None:
    pass


def _address(entry: Entry) -> str:
    """What any machine can open."""
    if entry.filesystem is None:
        return os.path.abspath(entry.path)  # noqa: PTH100
    return str(entry.filesystem.unstrip_protocol(entry.path))


class _Job:
    """One run on one place."""

    def __init__(
        self,
        place: Place,
        run: Run,
        catalog: Catalog,
        options: Options,
        sections: Sequence[Section],
        ranks: set[int] | None,
    ) -> None:
        self._place = place
        self._run = run
        self._catalog = catalog
        self._options = options
        self._sections = sections
        self._ranks = ranks

    def report(self, tasks: Sequence[Task], progress: Progress) -> tuple[Report, list[Any]]:
        """Read all, number them as their files say, compare, put together."""
        kept = self._place.keep(work.analyse, tasks, progress)
        answers = self._place.answers(kept)
        profile = self._profile(answers)
        kept, answers = self._renumbered(profile, kept, answers)
        kept, answers = self._of_one_region(profile, kept, answers)
        order = sorted(
            (a.rank, at) for at, a in enumerate(answers) if a.error is None and a.rank in profile.ranks
        )
        kept, answers = [kept[at] for _, at in order], [answers[at] for _, at in order]
        failures = Failures()
        found = _collected(answers, failures)
        ready: dict[str, Any] = {}
        if found.get(COLLECTIVES):
            between = self._compared(kept, answers) if len(answers) > 1 else None
            ready[COLLECTIVES] = told_of(found[COLLECTIVES], between, self._options)
        ranks = [answer.rank for answer in answers]
        examined = self._examined(answers, found, failures, ready.get(COLLECTIVES, {}))
        made = put_together(profile, self._options, ranks, self._sections, found, failures, ready)
        made.profile.examined = examined
        made.profile.events = sum(answer.events for answer in answers)
        return made, [answer.more for answer in answers]

    def _examined(
        self,
        answers: Sequence[Answer],
        found: dict[str, list[Any]],
        failures: Failures,
        told: Mapping[str, Any],
    ) -> list[int]:
        """Of many ranks some are read again, and asked for all that was left out."""
        tasks = {answer.rank: answer.task for answer in answers if answer.task.in_brief}
        if not tasks:
            return []
        like = choose_examined(list(tasks), found.get("steps", ()), told)
        names = tuple(section.name for section in asked_in_full(self._sections))
        chosen = sorted(set(like.values()))
        again = [
            replace(tasks[rank], rank=rank, forced=True, sections=names, in_brief=False, also=None)
            for rank in chosen
        ]
        full = self._place.answers(self._place.keep(work.analyse, again, _quiet))
        add_examined(found, _collected([each for each in full if each.error is None], failures), like)
        return chosen

    def _profile(self, answers: Sequence[Answer]) -> Profile:
        pairs = list(zip(self._run.entries, answers, strict=True))
        files = [LoadedFile(entry, answer.light) for entry, answer in pairs if answer.light is not None]
        failed = [
            (entry, UnreadableFile(answer.error.what, fix=answer.error.fix))
            for entry, answer in pairs
            if answer.error is not None
        ]
        if not files:
            raise failed[0][1]
        return profile_of(self._run, self._catalog, files, failed, ranks=self._ranks)

    def _renumbered(
        self, profile: Profile, kept: list[Any], answers: list[Answer]
    ) -> tuple[list[Any], list[Answer]]:
        """Those again whose rank turned out to be another one, which only the files of all ranks could show."""
        numbers = {id(trace): rank for trace, rank in zip(profile.traces, profile.ranks, strict=True)}
        wrong = [
            (at, numbers[id(answer.light)])
            for at, answer in enumerate(answers)
            if numbers.get(id(answer.light), answer.rank) != answer.rank
        ]
        return self._again(
            kept,
            answers,
            {at: replace(answers[at].task, rank=rank, forced=True) for at, rank in wrong},
        )

    def _of_one_region(
        self, profile: Profile, kept: list[Any], answers: list[Answer]
    ) -> tuple[list[Any], list[Answer]]:
        """Those again that chose another region than all ranks together."""
        if len(profile.ranks) < 2 or self._options.whole or self._options.step_name is not None:
            return kept, answers
        region = agree_on_region([each.regions for each in answers if each.rank in profile.ranks])
        tasks = {
            at: replace(
                answer.task, rank=answer.rank, forced=True, options=replace(self._options, region=region)
            )
            for at, answer in enumerate(answers)
            if region in answer.regions and next(iter(answer.regions)) != region
        }
        return self._again(kept, answers, tasks)

    def _again(
        self, kept: list[Any], answers: list[Answer], tasks: dict[int, Task]
    ) -> tuple[list[Any], list[Answer]]:
        """The answers with those to these tasks in their places."""
        if not tasks:
            return kept, answers
        again = self._place.keep(work.analyse, list(tasks.values()), _quiet)
        for at, one, answer in zip(tasks, again, self._place.answers(again), strict=True):
            kept[at], answers[at] = one, answer
        return kept, answers

    def _compared(self, kept: Sequence[Any], answers: list[Answer]) -> Compared | None:
        looks = [answer.look for answer in answers if answer.look is not None]
        answers[:] = [replace(answer, look=None) for answer in answers]
        if not any(len(found.counts) for found in looks):
            return None
        agreed = plan(looks)
        looks = [without_anchors(found) for found in looks]
        at = {answer.rank: number for number, answer in enumerate(answers)}
        members = [[at[rank] for rank in group.ranks] for group in agreed.groups]
        lanes = [group.lanes for group in agreed.groups]
        tables = self._place.grouped(work.meet_at, work.join, kept, members, lanes, agreed)
        met = add_met(self._place.ask(reduce_meetings, tables))
        beside: list[list[Any]] = [[] for _ in kept]
        for table, numbers in zip(tables, members, strict=True):
            for number in numbers:
                beside[number].append(table)
        waited = self._place.ask(work.wait_at, kept, agreed, met.worst, beside=beside)
        return compared(looks, agreed, met, [found for found in waited if found is not None])


def _collected(answers: Sequence[Answer], failures: Failures) -> dict[str, list[Any]]:
    """What each section found on the ranks, in their order; what failed is added to `failures`."""
    found: dict[str, list[Any]] = {}
    for answer in answers:
        for name, part in (answer.found or {}).items():
            found.setdefault(name, []).append(part)
        for line, section in answer.faults:
            failures.add(line, section, answer.rank)
    return found
