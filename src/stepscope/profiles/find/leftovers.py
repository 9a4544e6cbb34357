"""Signs of trouble around a profile: unfinished recordings, ranks in other folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from stepscope.profiles.find.rings import cut_off_elsewhere, recording_workers
from stepscope.profiles.find.runs import Run, in_profile_folder
from stepscope.profiles.find.skipped import by_name
from stepscope.profiles.find.walk import Skipped
from stepscope.trace.problems import Problem, problem

# Workers that begin a window together name its folder by the second, each by its own clock.
SAME_CAPTURE_NS = 30 * 1_000_000_000
_NAMES_SHOWN = 3
_LEFT = re.compile(r"\.(tmp|part|partial)(\.gz)?$", re.IGNORECASE)
_RECORDING = re.compile(r"/\.recording-([^/]+?)(?:-[0-9a-f]{8})?$")


def problems_around(run: Run, others: Sequence[Run], skipped: Sequence[Skipped]) -> Iterator[Problem]:
    """Those of a folder in which a run was found."""
    yield from leftovers(skipped)
    yield from cut_off_elsewhere(run, others)
    told = recording_workers([run, *others])
    yield from never_stopped([item for item in skipped if _worker(item) not in told], empty_beside(run))
    yield from _split(run, others)


def leftovers(skipped: Iterable[Skipped]) -> Iterator[Problem]:
    """Files whose writer died before renaming them."""
    left = [item.path for item in skipped if _LEFT.search(item.path)]
    if left:
        yield problem("leftover-files", f"{{count}} unfinished files: {_names(left)}.", count=len(left))


def never_stopped(skipped: Iterable[Skipped], empty_runs: Sequence[str] = ()) -> Iterator[Problem]:
    """Recordings that began and did not end: our hidden folders, empty files and empty folders of runs."""
    signs = [item.path for item in skipped if _RECORDING.search(item.path) or _is_empty_profile(item)]
    signs += empty_runs
    if signs:
        yield problem("never-stopped", f"{{count}} unfinished: {_names(signs)}.", count=len(signs))


def _worker(item: Skipped) -> str | None:
    """Of a hidden folder of ours, who recorded into it."""
    found = _RECORDING.search(item.path)
    return None if found is None else found[1]


def _is_empty_profile(item: Skipped) -> bool:
    name = item.path.rsplit("/", 1)[-1]
    return item.reason == "an empty file" and bool(by_name(name).format_hint)


def _names(paths: Sequence[str]) -> str:
    shown = ", ".join(path.rstrip("/").rsplit("/", 1)[-1] for path in paths[:_NAMES_SHOWN])
    return f"{shown} …" if len(paths) > _NAMES_SHOWN else shown


def empty_beside(run: Run) -> list[str]:
    """Folders of runs beside this one with nothing in them."""
    first = run.entries[0]
    if first.filesystem is not None or not in_profile_folder(first.folder):
        return []
    return empty_runs(Path(first.folder).parent)


def empty_runs(profiles: Path) -> list[str]:
    """The empty folders in plugins/profile."""
    try:
        return [str(each) for each in sorted(profiles.iterdir()) if each.is_dir() and not any(each.iterdir())]
    except OSError:
        return []


def _split(run: Run, others: Sequence[Run]) -> Iterator[Problem]:
    """Runs of other workers, recorded in the same moment into folders of their own."""
    if not in_profile_folder(run.entries[0].folder):
        return
    ours = {entry.name for entry in run.entries}
    apart = [
        other
        for other in others
        if in_profile_folder(other.entries[0].folder)
        and ours.isdisjoint(entry.name for entry in other.entries)
        and abs(other.time_ns - run.time_ns) <= SAME_CAPTURE_NS
    ]
    if apart:
        yield problem(
            "split-runs",
            f"{run.name} holds {_names(sorted(ours))}; {_names([other.name for other in apart])} hold other workers, "
            "recorded within seconds of it.",
            count=len(apart),
            folder=run.entries[0].folder,
        )
