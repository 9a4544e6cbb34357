"""What an answer about a run depends on: its files, their sidecars and the like, what else is in the folder, and our own code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.formats.source import Source
from stepscope.profiles.cache.answers import Answers
from stepscope.profiles.cache.place import Identity, state_of
from stepscope.profiles.cache.sources import sources_digest
from stepscope.profiles.find.captures import capture_files
from stepscope.profiles.find.catalog import Catalog
from stepscope.profiles.find.execution_files import execution_files
from stepscope.profiles.find.leftovers import empty_beside
from stepscope.profiles.find.runs import RING, Entry, Run
from stepscope.profiles.find.sidecars import light_path, sidecar_path


def answers_about(run: Run, catalog: Catalog | None = None) -> Answers | None:
    """The answers that are kept of this run, in the catalog or on its own; None where nothing can be."""
    identity = identify_run(run, catalog)
    return None if identity is None else Answers(identity)


def identify_run(run: Run, catalog: Catalog | None = None) -> Identity | None:
    """The run as it is now; None where one of its files has no state, or changes without a sign of it, as a ring does."""
    others = [other for other in catalog.runs if other is not run] if catalog is not None else []
    entries = [*run.entries, *(entry for other in others for entry in other.entries)]
    if any(entry.format_hint == RING for entry in entries):
        return None
    states = [_state(entry) for entry in run.entries]
    if not all(states):
        return None
    lines = [sources_digest(), *states, *map(_beside, run.entries), *empty_beside(run)]
    place = run.address or run.name
    if catalog is not None:
        place = f"{catalog.path}\n{run.name}"
        lines += [*_around(others), *(f"{each.path} {each.reason}" for each in catalog.skipped)]
        lines.append(f"{catalog.folders > 0}")
    return Identity(f"answers about\n{place}", "\n".join([place, *lines]))


def _state(entry: Entry) -> str:
    found = state_of(entry.source())
    named = f"{entry.path} {entry.rank} {entry.format_hint} {entry.worker}"
    return "" if found is None else f"{named} {found.path} {found.state}"


def _beside(entry: Entry) -> str:
    """The state of the notes beside a trace: its sidecar, its light window, recordings of graph captures, and execution traces."""
    paths = [sidecar_path(entry.path), light_path(entry.path)]
    noted = [Source(path, entry.filesystem) for path in paths if path is not None]
    beside = [*capture_files(entry), *(path for _, path in execution_files(entry))]
    others = [Source(str(path)) for path in beside]
    return " ".join(_or_nothing(state_of(each)) for each in [*noted, *others])


def _or_nothing(found: Identity | None) -> str:
    return "-" if found is None else found.key


def _around(others: Sequence[Run]) -> Iterator[str]:
    """Of other runs only what a look at the folder shows: a report names them, and may ask them for missing ranks."""
    for other in others:
        yield f"{other.name} {other.address}"
        yield from (f"{entry.path} {entry.size} {entry.mtime_ns}" for entry in other.entries)
