"""From a path to a profile: find the run, read or reopen its ranks in parallel, number them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace

from stepscope import formats
from stepscope.errors import NothingFound, StepscopeError, UnreadableFile
from stepscope.formats.reader import no_progress
from stepscope.formats.source import Source
from stepscope.lazy import dataclass
from stepscope.profiles.cache.cache import Cache, identify
from stepscope.profiles.cache.place import Identity
from stepscope.profiles.execution_traces import with_execution_trace
from stepscope.profiles.find.catalog import Catalog, Places, choose, scan
from stepscope.profiles.find.leftovers import problems_around
from stepscope.profiles.find.nothing_found import nothing_found
from stepscope.profiles.find.runs import RING, Entry, Run
from stepscope.profiles.find.walk import Skipped
from stepscope.profiles.graph_captures import with_names
from stepscope.profiles.profile import Profile
from stepscope.profiles.ranks import LoadedFile, assign, missing_ranks, spans, without_doubles
from stepscope.profiles.sidecar_tables import attach
from stepscope.trace.problems import Problem, Problems, problem
from stepscope.trace.trace import Trace

# Told the bytes of all files that were read so far, and how many there are. May be called from several threads,
# but never from two at once.
LoadProgress = Callable[[int, int], None]
# Each file being read needs several times its size; more at once would trade memory for little time.
FILES_AT_ONCE = 4


def load(
    path: Places,
    *,
    cache: bool = True,
    progress: LoadProgress | None = None,
    rank: int | Collection[int] | None = None,
    run: str | None = None,
) -> Profile:
    """Load the profile at `path`: a file, a folder, a pattern or a URL that fsspec supports, or a list of those.

    From a folder with several runs, load the newest, or the one named `run`; `Profile.other_runs` lists the rest.
    `rank` selects ranks. With `cache`, tables are cached, so that the profile opens instantly the next time.
    """
    wanted = _Wanted(cache, progress, rank)
    catalog = scan(path)
    if not catalog.runs:
        raise nothing_found(catalog)
    if run is not None or len(catalog.runs) == 1:
        return _load(choose(catalog, run), catalog, wanted)
    return _newest_readable(catalog, wanted)


def load_run(
    run: Run,
    *,
    cache: bool = True,
    progress: LoadProgress | None = None,
    rank: int | Collection[int] | None = None,
) -> Profile:
    """The profile of one run of a catalog."""
    alone = Catalog(run.address or run.name, [run], [], len(run.entries), 0)
    return _load(run, alone, _Wanted(cache, progress, rank))


@dataclass(frozen=True)
class _Wanted:
    """How to load, as the caller wants it."""

    cache: bool
    progress: LoadProgress | None
    rank: int | Collection[int] | None

    @property
    def ranks(self) -> set[int] | None:
        if self.rank is None:
            return None
        return {self.rank} if isinstance(self.rank, int) else set(self.rank)


def _newest_readable(catalog: Catalog, wanted: _Wanted) -> Profile:
    """The newest run of which anything can be read: names may promise what the content does not hold."""
    for candidate in catalog.runs:
        try:
            return _load(candidate, catalog, wanted)
        except UnreadableFile as error:
            catalog = replace(
                catalog,
                runs=[run for run in catalog.runs if run is not candidate],
                skipped=[*catalog.skipped, *(_skipped(entry, error) for entry in candidate.entries)],
            )
    raise nothing_found(catalog)


def _load(run: Run, catalog: Catalog, wanted: _Wanted) -> Profile:
    entries = _chosen(run.entries, wanted.ranks)
    meter = _Meter(wanted.progress, entries)
    reader = _Reader(Cache() if wanted.cache else None, meter, keep_in_memory=len(entries) == 1)
    files, failures = _read_all(reader, entries)
    if not files:
        raise _none_readable(run, failures)
    if reader.cache is not None and not reader.keep_in_memory:
        reader.cache.prune()
    return put_together(run, catalog, files, failures, reader.problems, wanted.ranks)


def put_together(
    run: Run,
    catalog: Catalog,
    files: Sequence[LoadedFile],
    failures: list[tuple[Entry, UnreadableFile]],
    more: Sequence[Problem] = (),
    ranks: set[int] | None = None,
) -> Profile:
    """The profile of files that were read, here or elsewhere, and what is to be said of it."""
    files, doubles, double = without_doubles(files)
    ranked, doubts = assign(files)
    if ranks is not None:
        ranked = _only(ranked, ranks, run)
    was_chosen = ranks is not None or catalog.folders == 0 or catalog.path == run.entries[0].path
    others = [other for other in catalog.runs if other is not run]
    problems = Problems()
    for each in (
        double,
        *doubts,
        missing_ranks(ranked, was_chosen=was_chosen, others=_entries_of(others)),
        *more,
        _told(failures),
        _other_runs(run, others),
        *problems_around(run, others, catalog.skipped),
    ):
        if each is not None:
            problems.add(each)
    return Profile(
        path=catalog.path,
        name=run.name,
        traces=[trace for _, trace in ranked],
        ranks=[number for number, _ in ranked],
        problems=problems,
        skipped=[
            *catalog.skipped,
            *(_skipped(entry, error) for entry, error in failures),
            *(Skipped(file.entry.path, reason) for file, reason in doubles),
        ],
        other_runs=others,
    )


def _entries_of(runs: Sequence[Run]) -> list[Entry]:
    return [entry for run in runs for entry in run.entries]


def _chosen(entries: Sequence[Entry], wanted: set[int] | None) -> Sequence[Entry]:
    """Only the files of the wanted ranks, if names contain them; else all have to be read to know."""
    named = {entry.rank for entry in entries}
    if wanted is None or None in named or len(named) != len(entries) or not wanted <= named:
        return entries
    return [entry for entry in entries if entry.rank in wanted]


def _only(ranked: list[tuple[int, Trace]], wanted: set[int], run: Run) -> list[tuple[int, Trace]]:
    there = [number for number, _ in ranked]
    absent = sorted(wanted.difference(there))
    if absent:
        raise NothingFound(f"No rank {spans(absent)} in {run.name}.", fix=f"Available: {spans(there)}")
    return [(number, trace) for number, trace in ranked if number in wanted]


def _read_all(
    reader: _Reader, entries: Sequence[Entry]
) -> tuple[list[LoadedFile], list[tuple[Entry, UnreadableFile]]]:
    """Files are read side by side: the native loops release the GIL."""
    at_once = max(1, min(FILES_AT_ONCE, os.cpu_count() or 1, len(entries)))
    with ThreadPoolExecutor(at_once, thread_name_prefix="stepscope-load") as pool:
        results = list(pool.map(reader.attempt, entries))
    files = [
        LoadedFile(entry, found)
        for entry, found in zip(entries, results, strict=True)
        if isinstance(found, Trace)
    ]
    failures = [
        (entry, found)
        for entry, found in zip(entries, results, strict=True)
        if isinstance(found, UnreadableFile)
    ]
    return files, failures


@dataclass
class _Reader:
    """Reads one file, or reopens its tables."""

    cache: Cache | None
    meter: _Meter
    keep_in_memory: bool
    problems: list[Problem] = field(default_factory=list)

    def attempt(self, entry: Entry) -> Trace | UnreadableFile:
        """The trace, or why it cannot be read."""
        try:
            whole = with_execution_trace(attach(self.read(entry), entry), entry)
            return with_names(whole, entry, self.read)
        except UnreadableFile as error:
            return error
        except MemoryError:
            return UnreadableFile(
                f"Not enough memory for {entry.path}.", fix="Record fewer steps, or load fewer ranks."
            )
        except Exception as error:
            if entry.filesystem is None:
                raise
            return UnreadableFile(f"Cannot read {entry.path}: {type(error).__name__}: {error}")
        finally:
            self.meter.finished(entry)

    def read(self, entry: Entry) -> Trace:
        """From the cache if it is there as it was, else from the file."""
        source = entry.source()
        # A ring changes without a change of its times while its process lives.
        identity = identify(source) if self.cache is not None and entry.format_hint != RING else None
        if self.cache is None or identity is None:
            return formats.read(source, self.meter.of(entry))
        kept = self.cache.open(identity, entry.path, lambda: self._reread(entry, identity))
        return kept or self._fresh(source, entry, identity, self.cache)

    def _fresh(self, source: Source, entry: Entry, identity: Identity, cache: Cache) -> Trace:
        trace = formats.read(source, self.meter.of(entry))
        if identify(entry.source()) != identity:
            self.problems.append(_changed(entry))
            return trace
        if self.keep_in_memory:
            self._note(cache.store_later(identity, trace))
            return trace
        problem = cache.store(identity, trace)
        self._note(problem)
        if problem is not None:
            return trace
        # With hundreds of ranks only mapped tables fit: the system drops their pages when it needs the memory.
        return cache.open(identity, entry.path, lambda: self._reread(entry, identity)) or trace

    def _note(self, problem: Problem | None) -> None:
        if problem is not None:
            self.problems.append(problem)

    def _reread(self, entry: Entry, identity: Identity) -> Trace:
        """What to do when stored tables prove damaged after the profile was opened."""
        if self.cache is not None:
            self.cache.discard(identity)
        if identify(entry.source()) != identity:
            raise StepscopeError(f"{entry.path} changed after it was opened.", fix="Load it again.")
        trace = formats.read(entry.source(), no_progress)
        if self.cache is not None:
            self.cache.store(identity, trace)
        return trace


class _Meter:
    """Adds up what several threads have read."""

    def __init__(self, progress: LoadProgress | None, entries: Sequence[Entry]) -> None:
        self._progress = progress
        self._done = dict.fromkeys((entry.path for entry in entries), 0)
        self._sizes = {entry.path: entry.size for entry in entries}
        self._total = sum(self._sizes.values())
        self._lock = threading.Lock()

    def of(self, entry: Entry) -> Callable[[int], None]:
        """The meter of one file."""
        return lambda done: self._tell(entry.path, done) if entry.path in self._sizes else None

    def finished(self, entry: Entry) -> None:
        """The file is done, whatever its reader reported."""
        self._tell(entry.path, self._sizes[entry.path])

    def _tell(self, path: str, done: int) -> None:
        if self._progress is None:
            return
        with self._lock:
            self._done[path] = min(max(done, self._done[path]), self._sizes[path])
            self._progress(sum(self._done.values()), self._total)


def _skipped(entry: Entry, error: UnreadableFile) -> Skipped:
    return Skipped(entry.path, error.what.removeprefix(entry.path).strip())


def _none_readable(run: Run, failures: list[tuple[Entry, UnreadableFile]]) -> UnreadableFile:
    first = failures[0][1]
    if len(failures) == 1:
        return first
    return UnreadableFile(
        f"None of the {len(failures)} files of {run.name} can be read. {first.what}", fix=first.fix
    )


def _told(failures: list[tuple[Entry, UnreadableFile]]) -> Problem | None:
    if not failures:
        return None
    entry, error = failures[0]
    more = f" And {len(failures) - 1} more." if len(failures) > 1 else ""
    return problem(
        "unreadable-file",
        f"{entry.name}: {_skipped(entry, error).reason}{more}",
        case="explained" if error.fix else "",
        count=len(failures),
        advice=error.fix or "",
    )


def _changed(entry: Entry) -> Problem:
    return problem("file-changed", f"{entry.name} is still being written.")


def _other_runs(run: Run, others: list[Run]) -> Problem | None:
    if not others:
        return None
    names = ", ".join(other.name for other in others[:5]) + (" …" if len(others) > 5 else "")
    return problem(
        "other-runs",
        f"{run.name} was loaded; {len(others)} other runs were not: {names}.",
        path=others[0].address or others[0].name,
    )
