"""From a profile to its report: every section asks every rank, and a section that fails is reported, not fatal."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stepscope.analysis.context import RankContext
from stepscope.analysis.host.causes import host_causes
from stepscope.analysis.options import Options, parse_steps
from stepscope.analysis.steps.find import times_in_regions
from stepscope.analysis.steps.regions import agree_on_region
from stepscope.errors import StepscopeError
from stepscope.profiles.cache import background
from stepscope.profiles.find.catalog import Places
from stepscope.profiles.load import load
from stepscope.profiles.profile import Profile
from stepscope.ranks.hangs.calls import is_dump
from stepscope.registers.policy.tables import REPORT_ROWS
from stepscope.reports.about import about
from stepscope.reports.examined import (
    add_examined,
    are_many,
    asked_in_full,
    asked_of_every_rank,
    choose_examined,
)
from stepscope.reports.failures import Failures
from stepscope.reports.model.job import Job
from stepscope.reports.model.report import Steps
from stepscope.reports.problems import problems_of
from stepscope.reports.report import Report
from stepscope.reports.sections import SECTIONS, collectives, findings, hang, steps
from stepscope.reports.sections.section import Section
from stepscope.reports.wording.sentence import write_sentence

if TYPE_CHECKING:
    from stepscope.ranks.job.model import JobModel

AT_ONCE = 4
# Told in every report: what the others are measured by.
ALWAYS = ("problems", "hang", "steps")
# What one screen shows, and those of it that give it no more than a name or a share.
BRIEF = (
    "problems", "hang", "findings", "breakdown", "serving", "steps", "kernels", "roofline", "device", "memory", "coverage"
)  # fmt: skip
SAMPLED = ("kernels", "roofline", "device", "coverage")
SECTION_NAMES = tuple(section.name for section in SECTIONS)


def report(
    profile: Profile | Places,
    *,
    step: str | None = None,
    step_name: str | None = None,
    whole: bool = False,
    rank: int | Collection[int] | None = None,
    sections: Collection[str] | None = None,
    limit: int = REPORT_ROWS,
    ops_by: Sequence[str] = (),
    brief: bool = False,
) -> Report:
    """The report on a profile, or on the profile at a path or a list of paths.

    `step` chooses steps (`"7"`, or `"3:8"` with both ends), `step_name` the annotation that marks them, `rank` some of
    the ranks and `sections` some of the sections; long lists have at most `limit` rows, 0 for all. `ops_by` splits
    ops further: by scope, shapes, placement or stack. `brief`: only what the one-screen report needs.
    """
    options = Options(
        step_name, parse_steps(step) if step is not None else None, limit, tuple(ops_by), whole, brief=brief
    )
    with background.postponed():
        if not isinstance(profile, Profile):
            profile = load(profile, rank=rank)
        return build(profile, options, rank, sections)


def build(
    profile: Profile,
    options: Options,
    rank: int | Collection[int] | None = None,
    sections: Collection[str] | None = None,
    also: Callable[[RankContext], object] | None = None,
) -> Report:
    """The report, rank by rank: what one rank needed is let go before the next one is looked at, and after `also` saw it."""
    ranks = _chosen_ranks(profile, rank)
    options = _of_one_region(profile, ranks, replace(options, brief=options.brief and len(ranks) == 1))
    sections = BRIEF if options.brief and sections is None else sections
    wanted = _fitting(profile, chosen_sections(sections, several=len(ranks) > 1))
    ask = _Asking(profile, options, len(ranks) == 1)
    if not are_many(len(ranks)):
        found = ask.of_ranks(ranks, wanted, also)
        return put_together(profile, options, ranks, wanted, found, ask.failures)
    found = ask.of_ranks(ranks, asked_of_every_rank(wanted), also, in_brief=True)
    ready = _compared(found, options, ask.failures)
    like = choose_examined(ranks, found.get(steps.SECTION.name, ()), ready.get(collectives.SECTION.name, {}))
    examined = sorted(set(like.values()))
    add_examined(found, ask.of_ranks(examined, asked_in_full(wanted)), like)
    made = put_together(profile, options, ranks, wanted, found, ask.failures, ready)
    made.profile.examined = examined
    return made


class _Asking:
    """Sections are asked about ranks; what fails is kept."""

    def __init__(self, profile: Profile, options: Options, alone: bool) -> None:
        self._profile, self._options, self._alone = profile, options, alone
        self.failures = Failures()

    def of_ranks(
        self,
        ranks: Sequence[int],
        wanted: Sequence[Section],
        also: Callable[[RankContext], object] | None = None,
        in_brief: bool = False,
    ) -> dict[str, list[Any]]:
        """What each of these sections finds on each of these ranks."""
        found: dict[str, list[Any]] = {section.name: [] for section in wanted}
        with ThreadPoolExecutor(_threads(), thread_name_prefix="stepscope-report") as pool:
            for number in ranks:
                context = RankContext(
                    number, self._profile.trace(number), self._options, self._alone, in_brief
                )
                pool.submit(
                    host_causes, context.whole_trace
                )  # the account wants them; meanwhile steps are found
                # Side by side: Polars and the native loops leave the interpreter to others while they work.
                asked = [(section, pool.submit(_ask, section, context)) for section in _slowest_first(wanted)]
                for section, answer in asked:
                    found[section.name] += self.failures.caught(section, number, answer.result)
                if also is not None:
                    also(context)
        return found


def _compared(
    found: Mapping[str, list[Any]], options: Options, failures: Failures
) -> dict[str, Mapping[str, Any]]:
    """The section of the collectives before all others, where it is asked for: it says which ranks to examine."""
    section = collectives.SECTION
    if section.name not in found:
        return {}
    told = failures.caught(section, None, section.joined, found.get(section.name, []), options)
    return {section.name: told[0] if told else {}}


def _ask(section: Section, context: RankContext) -> Any:
    if section is steps.SECTION and context.alone:
        # Storing takes as long as what is left of a short report: begun later, the command would wait for it in the end.
        background.begin_postponed()
    is_sampled = context.options.brief and section.name in SAMPLED
    return section.of_rank(context.sampled if is_sampled else context)


def _of_one_region(profile: Profile, ranks: Sequence[int], options: Options) -> Options:
    """Steps of several ranks are compared: where one trains for longer than it collects and another does not, both show the same."""
    if len(ranks) < 2:
        return options
    times = [times_in_regions(profile.trace(number)) for number in ranks]
    return replace(options, region=agree_on_region(times))


def put_together(
    profile: Profile,
    options: Options,
    ranks: Sequence[int],
    wanted: Sequence[Section],
    found: Mapping[str, list[Any]],
    failures: Failures,
    ready: Mapping[str, Mapping[str, Any]] | None = None,
) -> Report:
    """The report of what each section found on each rank; `ready` are sections that were put together elsewhere."""
    fields: dict[str, Any] = {}
    wanted = _fitting(profile, wanted)
    for name in ready or {}:
        fields.update((ready or {})[name])
    for section in (section for section in wanted if section.name not in (ready or {})):
        for joined in failures.caught(section, None, section.joined, found.get(section.name, []), options):
            fields.update(joined)
    _check_steps(options, fields.get("steps"))
    model = fields.pop("job_model", None)
    _judge_findings(fields, found.get("findings", ()), model, failures)
    traces = {number: profile.trace(number) for number in ranks}
    failed = [*failures.problems(len(profile.ranks)), *fields.pop("rank_problems", ())]
    told = problems_of(profile, ranks, fields.pop("problems", ()), failed)
    made = Report(profile=about(profile, traces), problems=told, **fields)
    has_account = "findings" in fields and "breakdown" in fields
    made.sentence = _sentence(made) if has_account else made.hang.sentence
    return made


def _sentence(made: Report) -> str:
    """The verdict; a fault in it costs no more than that."""
    failures = Failures()
    said = failures.caught(findings.SECTION, None, write_sentence, made)
    made.problems = [*failures.problems(len(made.profile.ranks)), *made.problems]
    return said[0] if said else ""


def _judge_findings(
    fields: dict[str, Any], ranks: Sequence[findings.OfRank], model: JobModel | None, failures: Failures
) -> None:
    """What the job makes of the findings of its ranks; they stay as they are where that fails."""
    if "findings" not in fields:
        return
    failures.add_rules(ranks)
    if "collectives" in fields and "steps" in fields:
        failures.caught(findings.SECTION, None, _judge_job, fields, ranks, model)
    failures.caught(findings.SECTION, None, _without_profiler, fields, ranks)


def _judge_job(fields: dict[str, Any], ranks: Sequence[findings.OfRank], model: JobModel | None) -> None:
    """The findings of the ranks become those of the job."""
    from stepscope.reports.ranks.job_findings import with_job
    from stepscope.reports.ranks.job_speedups import with_job_speedups
    from stepscope.reports.ranks.straggler_finding import with_straggler, with_waits
    from stepscope.reports.slowest_rank import bounded_by_slowest

    told, step_ns = fields["collectives"], _step_ns(fields["steps"], fields.get("job"))
    if model is None:
        found = bounded_by_slowest(fields["findings"], ranks, told)
    else:
        saved = {each.rank: each.as_recorded() for each in ranks}
        found = with_job_speedups(fields["findings"], saved, model)
    with_waits(found, told, step_ns)
    found = with_straggler(found, told.straggler, step_ns)
    fields["findings"] = with_job(found, fields.get("job"), step_ns)


def _without_profiler(fields: dict[str, Any], ranks: Sequence[findings.OfRank]) -> None:
    """What is saved, and how long the step is that it is a part of, as without the profiler."""
    from stepscope.reports.unprofiled_time import in_unprofiled_time

    if len(ranks) > 1:
        told = fields["collectives"].straggler if "collectives" in fields else None
        fields["findings"] = in_unprofiled_time(fields["findings"], ranks, told, fields.get("job"))
    if "steps" in fields:
        steps.estimate(fields["steps"], [each.step for each in ranks])


def _step_ns(found: Steps, job: Job | None) -> int | None:
    """The mean step; where all ranks are replayed, as recorded: a first one also has what the device had to finish before it."""
    return job.recorded_ns if job is not None and job.is_replayed else found.mean_ns


def _fitting(profile: Profile, sections: Sequence[Section]) -> Sequence[Section]:
    """Of flight-recorder dumps only those that have something to say: they have collectives, but no steps."""
    if all(map(is_dump, profile.traces)):
        return [section for section in sections if section.name == hang.NAME]
    return sections


def _check_steps(options: Options, steps: Steps | None) -> None:
    """A range of steps that chooses none of them is a mistake, not an empty report."""
    wanted = options.step_name if options.must_match else None
    if wanted is not None and steps is not None and steps.source in ("none", "whole"):
        raise StepscopeError(
            f"No annotation on the host matches --step-name {options.step_name!r}.",
            fix="Without --step-name the report shows the annotations of the recording as phases.",
        )
    if (
        options.steps is not None
        and steps is not None
        and steps.source not in ("none", "whole")
        and not steps.count
    ):
        first, last = options.steps
        raise StepscopeError(
            f"None of the steps {'' if first is None else first}:{'' if last is None else last} was recorded.",
            fix="Without --step the report lists those that were.",
        )


def _threads() -> int:
    """One more than there are cores: the findings wait for what another thread finds out about the host."""
    return min(AT_ONCE, 1 + (os.cpu_count() or 1))


def _slowest_first(sections: Sequence[Section]) -> list[Section]:
    """Findings ask for all that the others ask for, and more, so they take longest. Next those that do not want the account,
    which is made meanwhile; steps begin with the replay, which findings want after the account."""
    first = ("findings", "problems", "serving", "memory", "steps")
    return sorted(
        sections, key=lambda section: first.index(section.name) if section.name in first else len(first)
    )


def chosen_sections(names: Collection[str] | None, several: bool = True) -> Sequence[Section]:
    """The sections of these names, those that are always there, and for `several` ranks what those ask for; all for None."""
    if names is None:
        return SECTIONS
    unknown = sorted(set(names).difference(SECTION_NAMES))
    if unknown:
        raise StepscopeError(
            f"There is no section {unknown[0]}.", fix=f"The sections are {', '.join(SECTION_NAMES)}."
        )
    # Who the other ranks wait for is a finding that comes of the collectives; that ranks differ in their calls is a problem.
    also = ("collectives",) if several and {"findings", "problems"} & set(names) else ()
    return [section for section in SECTIONS if section.name in (*names, *ALWAYS, *also)]


def _chosen_ranks(profile: Profile, rank: int | Collection[int] | None) -> list[int]:
    # Of a hang, one rank alone says nothing: all others would seem to be missing.
    if rank is None or all(map(is_dump, profile.traces)):
        return profile.ranks
    wanted = sorted({rank} if isinstance(rank, int) else set(rank))
    for number in wanted:
        profile.trace(number)  # says which ranks there are if this is none of them
    return wanted
