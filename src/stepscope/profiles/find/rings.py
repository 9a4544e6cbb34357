"""Rings beside complete files: who wrote them, which windows were written after all, and what the others belong to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from stepscope.errors import UnreadableFile
from stepscope.formats.ring import areas
from stepscope.formats.ring.facts import Facts, read_facts
from stepscope.profiles.find.runs import RANKED_GAP_NS, RING, Entry, Run, when
from stepscope.profiles.find.walk import Skipped
from stepscope.ring_layout import FACTS
from stepscope.trace.problems import Problem, problem


def settle_rings(entries: list[Entry]) -> tuple[list[Entry], list[Skipped]]:
    """The entries, with rings that know where they belong, and without those whose window is there as a complete file."""
    rings = [item for item in entries if item.format_hint == RING]
    if not rings:
        return entries, []
    written: dict[str, Entry] = {}
    for item in entries:
        if item.recording:
            written.setdefault(item.recording, item)
            written[item.recording.partition("/")[0]] = item
    told: dict[str, Entry] = {}
    skipped: list[Skipped] = []
    for item in rings:
        facts = _facts(item)
        twin = None if facts is None else written.get(_window(facts))
        if twin is not None:
            skipped.append(Skipped(item.path, f"kept until the window was written: {twin.name}"))
        else:
            told[item.path] = item if facts is None else _noted(item, facts, entries)
    return [
        told.get(each.path, each) for each in entries if each.format_hint != RING or each.path in told
    ], skipped


def _facts(item: Entry) -> Facts | None:
    """None for a ring without facts; the reason is reported when it is read."""
    try:
        with memoryview(item.source().head(FACTS.end)) as head:
            return read_facts(areas.opened(head, item.path)).known
    except UnreadableFile:
        return None
    except Exception:  # a remote filesystem has errors of its own
        return None


def _window(facts: Facts) -> str:
    """Of a ring without an open window, any that was written has more facts."""
    return facts.recording if facts.window is None else f"{facts.recording}/{facts.window}"


def _noted(item: Entry, facts: Facts, entries: Sequence[Entry]) -> Entry:
    rank = facts.rank if facts.rank is not None else item.rank
    found = replace(
        item,
        rank=rank,
        who=(rank,) if rank is not None else item.who,
        worker=facts.worker or item.worker,
        time_ns=facts.start_unix_ns or item.time_ns,
        recording=_window(facts),
        template=f"{item.folder}/{facts.job} {facts.window}",
        capture="" if facts.job else f"{RING}/{facts.recording}",
    )
    return replace(found, together=_same_capture(found, facts, entries)) if facts.job else found


def _same_capture(item: Entry, facts: Facts, entries: Sequence[Entry]) -> Entry | None:
    """A complete file of another rank, of the same window of the same job."""
    wanted = f"{facts.job}/{facts.window}"
    near = [
        each
        for each in entries
        if each.job == wanted and each.who != item.who and abs(when(each) - when(item)) <= RANKED_GAP_NS
    ]
    return min(near, key=lambda each: abs(when(each) - when(item)), default=None)


def cut_off_elsewhere(run: Run, others: Sequence[Run]) -> Iterator[Problem]:
    """Complete files were loaded, and later windows of the same processes were cut off."""
    ours = {item.recording.partition("/")[0] for item in run.entries if item.format_hint != RING} - {""}
    found = [
        (other, item)
        for other in others
        for item in other.entries
        if item.format_hint == RING and item.recording.partition("/")[0] in ours
    ]
    if found:
        other, item = found[0]
        others_too = " and others" if len(found) > 1 else ""
        yield problem(
            "capture-killed",
            f"{run.name} is complete. {item.name}{others_too} has what was kept of {{count}} later windows.",
            case="later-window",
            count=len(found),
            path=other.address or other.name,
        )


def recording_workers(runs: Sequence[Run]) -> set[str]:
    """Workers of which there is a ring: what else they left adds nothing."""
    return {item.worker for run in runs for item in run.entries if item.format_hint == RING and item.worker}


def behind_their_own(runs: list[list[Entry]]) -> list[list[Entry]]:
    """A window that was cut off comes after the complete ones of its process, though it is newer."""
    places: dict[str, int] = {}
    for place, run in enumerate(runs):
        for item in run:
            if item.recording and item.format_hint != RING:
                places.setdefault(item.recording.partition("/")[0], place)
    moved: defaultdict[int, list[list[Entry]]] = defaultdict(list)
    for place, run in enumerate(runs):
        own = [places[key] for item in run if (key := item.recording.partition("/")[0]) in places]
        is_cut = all(item.format_hint == RING for item in run) and bool(own)
        moved[max([place, *own]) if is_cut else place].append(run)
    return [run for place in sorted(moved) for run in _complete_first(moved[place])]


def _complete_first(runs: list[list[Entry]]) -> list[list[Entry]]:
    return sorted(runs, key=lambda run: all(item.format_hint == RING for item in run))
