"""The work on one rank: from a path to a small result. Runs in any process on any machine that sees the file.

What other ranks have to know of the rank's collectives is asked for in stages (see `across.ranks`); the calls themselves stay
where they were read: in memory on Dask, in a file beside local processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.analysis.steps.find import times_in_regions
from stepscope.errors import StepscopeError
from stepscope.profiles.load import load
from stepscope.ranks.arrivals import finished, joined_meetings
from stepscope.ranks.compare import Calls, Look, Plan, Waited, look, meet, wait
from stepscope.ranks.job.gathered import packed
from stepscope.ranks.meetings import in_lanes
from stepscope.reports.failures import Failures
from stepscope.reports.sections import SECTIONS
from stepscope.reports.sections.collectives import RankPart
from stepscope.trace.trace import Trace

COLLECTIVES = "collectives"


@dataclass(frozen=True)
class Task:
    """One file to be read. `rank` is used where the file does not give its own, or always if `forced`."""

    place: int
    path: str
    rank: int
    options: Options
    sections: tuple[str, ...] = ()  # their names
    forced: bool = False
    cache: bool = True
    spill: str | None = None  # a folder for what must not travel
    also: Callable[[RankContext], Any] | None = None  # what else is wanted of the rank
    alone: bool = False  # no other rank is asked for
    in_brief: bool = False  # one of many


@dataclass(frozen=True)
class Answer:
    """What the report wants of one rank, or why there is nothing. `light` stands for the trace, with a handful of events."""

    task: Task
    rank: int = 0
    error: StepscopeError | None = None
    light: Trace | None = None
    events: int = 0
    found: dict[str, Any] | None = None
    faults: tuple[tuple[str, str], ...] = ()
    look: Look | None = None  # what the others have to know of its collectives at first
    calls: Calls | None = None
    spilled: str | None = None
    more: Any = None  # what `also` of the task gave
    regions: dict[str, int] = field(default_factory=dict)  # the time in each


def analyse(task: Task) -> Answer:
    """Read the file and ask every section. A file that cannot be read is an answer, too."""
    try:
        trace = load(task.path, cache=task.cache).traces[0]
    except StepscopeError as error:
        return Answer(task, error=error)
    except MemoryError:
        what = f"{task.path} does not fit into memory."
        return Answer(
            task, error=StepscopeError(what, fix="Use machines with more memory, or record fewer steps.")
        )
    except Exception as error:  # a file of another's making must not cost the others
        what = f"{task.path} cannot be read: {type(error).__name__}: {error}"
        return Answer(task, error=StepscopeError(what))
    said = trace.info.rank
    rank = task.rank if task.forced or said is None else said
    context = RankContext(rank, trace, task.options, task.alone, task.in_brief)
    failures = Failures()
    found = {}
    for section in (section for section in SECTIONS if section.name in task.sections):
        for answer in failures.caught(section, rank, section.of_rank, context):
            found[section.name] = answer
    answer = Answer(
        task, rank, light=light(trace), events=len(trace.events), found=found, faults=tuple(failures.lines()),
        regions=times_in_regions(trace),
    )  # fmt: skip
    return _with_calls(replace(answer, more=task.also(context) if task.also is not None else None))


def _with_calls(answer: Answer) -> Answer:
    """The answer with the calls apart from what travels."""
    part = (answer.found or {}).get(COLLECTIVES)
    if not isinstance(part, RankPart) or part.compared is None:
        return answer
    calls, seen = replace(part.compared, course=None), look(part.compared)
    if part.compared.course is not None:
        seen = replace(seen, course=packed(part.compared.course))
    found = {**(answer.found or {}), COLLECTIVES: replace(part, compared=None)}
    if answer.task.spill is None:
        return replace(answer, found=found, look=seen, calls=calls)
    file = Path(answer.task.spill) / f"{answer.task.place}.arrow"
    calls.rows.write_ipc(file, compression="uncompressed")
    empty = replace(calls, rows=calls.rows.clear())
    return replace(answer, found=found, look=seen, calls=empty, spilled=str(file))


def light(trace: Trace) -> Trace:
    """A trace with the facts of the whole, and one event for each track and each end of the recording."""
    events = trace.events
    start, end = events["start_ns"], events["start_ns"] + events["dur_ns"]
    lasts = events["dur_ns"] > 0
    rows = [*events.with_row_index("row").unique("track", keep="first", maintain_order=True)["row"]]
    for of in (start.is_not_null(), lasts):
        rows += [_first_row(start, of, start.filter(of).min()), _first_row(end, of, end.filter(of).max())]
    kept = events[[row for row in rows if row is not None]]
    tables = {name: trace.tables[name] for name in ("tracks", "traces", "problems")}
    return Trace({**tables, "events": kept})


def _first_row(values: pl.Series, among: pl.Series, value: Any) -> int | None:
    return (among & (values == value)).arg_max() if value is not None else None


def travelling(answer: Answer) -> Answer:
    """What leaves the process: everything but the calls."""
    return replace(answer, calls=None)


def stay(answer: Answer) -> Answer:
    """What is handed to later stages, where it is handed at all."""
    return replace(answer, light=None, found=None, look=None, more=None)


def meet_at(answer: Answer, plan: Plan) -> pl.DataFrame:
    """Stage 3: the meetings that the rank alone knows of."""
    calls = _calls(answer)
    return joined_meetings([]) if calls is None else meet(calls, plan)


def join(frames: Sequence[pl.DataFrame], lanes: Sequence[int]) -> pl.DataFrame:
    """One node of the tree that puts the meetings of a process group together; `lanes` are the group's."""
    return joined_meetings([in_lanes(frame, lanes) for frame in frames])


def wait_at(answer: Answer, met: Sequence[pl.DataFrame], plan: Plan, longest: pl.DataFrame) -> Waited | None:
    """Stage 4; `met` are the meetings of the rank's groups."""
    calls = _calls(answer)
    if calls is None:
        return None
    return wait(calls, plan, finished(pl.concat([joined_meetings([]), *met])), longest)


def _calls(answer: Answer) -> Calls | None:
    if answer.calls is None or answer.spilled is None:
        return answer.calls
    return replace(answer.calls, rows=pl.read_ipc(answer.spilled))
