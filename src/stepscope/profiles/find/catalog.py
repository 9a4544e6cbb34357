"""What is in this folder: the runs and their files, and everything that was skipped, with the reason."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

from stepscope.errors import NothingFound, StepscopeError, UnreadableFile
from stepscope.formats import flight_recorder
from stepscope.lazy import dataclass
from stepscope.profiles.find.alike import join_alike
from stepscope.profiles.find.duplicates import without_copies
from stepscope.profiles.find.file_names import pattern
from stepscope.profiles.find.inside import rank_in
from stepscope.profiles.find.joined import join_by_content
from stepscope.profiles.find.paths import Location, locate
from stepscope.profiles.find.rings import behind_their_own, settle_rings
from stepscope.profiles.find.runs import Entry, Run, entry, group, in_profile_folder, name_runs
from stepscope.profiles.find.sidecars import is_light, is_sidecar, note_captures
from stepscope.profiles.find.skipped import (
    HEAD_BYTES,
    LOOK_INSIDE,
    Verdict,
    by_content,
    by_name,
    by_search,
    searched_by,
)
from stepscope.profiles.find.walk import FoundFile, Skipped, Walk

# Files whose name does not tell are opened for their first bytes. A folder of a million JSON files is a data set.
FILES_OPENED = 1_000


@dataclass(frozen=True)
class Catalog:
    """The runs under a path, the newest first, and what else was there."""

    path: str
    runs: list[Run]
    skipped: list[Skipped]
    looked_at: int
    folders: int

    def run(self, name: str) -> Run | None:
        """The run of this name or address."""
        return next((run for run in self.runs if name in (run.name, run.address)), None)


Places = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def scan(path: Places) -> Catalog:
    """Look at everything under the path, or the paths. A file that is named itself is taken as it is: its content decides."""
    several = [path] if isinstance(path, str | os.PathLike) else list(path)
    walks = [Walk(locate(each)) for each in several]
    found = [_entries(walk, walk.location) for walk in walks]
    location = walks[0].location if len(walks) == 1 else _together(walks)
    entries, twins = _without_twins(_each_once(item for items, _ in found for item in items))
    entries, copies = without_copies(entries)
    sidecars = [path for _, paths in found for path in paths]
    entries, rings = settle_rings(note_captures(entries, sidecars))
    entries = _with_ranks_inside(entries)
    folders = sum(walk.folders for walk in walks)
    groups = behind_their_own(join_alike(join_by_content(group(entries))))
    return Catalog(
        path=location.path,
        runs=name_runs(groups, _root(location), saw_whole_folders=folders > 0 and not location.is_pattern),
        skipped=[*(skipped for walk in walks for skipped in walk.skipped), *twins, *copies, *rings],
        looked_at=sum(walk.files for walk in walks),
        folders=folders,
    )


def _together(walks: list[Walk]) -> Location:
    """What stands for several paths in messages."""
    if not walks:
        raise NothingFound(
            "No path is given.", fix="Give a profile, a folder with profiles, a pattern or a URL."
        )
    return Location(pattern([walk.location.path for walk in walks]), walks[0].location.filesystem)


def _each_once(entries: Iterable[Entry]) -> list[Entry]:
    """Paths may overlap: a folder and a file in it."""
    return list({item.path: item for item in entries}.values())


def _root(location: Location) -> str:
    """What the names of runs leave out: the folder that was given, or that a pattern begins with."""
    fixed = re.split(r"[*?[]", location.path, maxsplit=1)[0]
    return location.path if fixed == location.path else fixed.rpartition("/")[0]


def _entries(walk: Walk, location: Location) -> tuple[list[Entry], list[str]]:
    """What looks like a profile, and the sidecars of our own capture."""
    found: list[Entry] = []
    sidecars: list[str] = []
    opened = 0
    for file in walk:
        if is_sidecar(file.path) and not file.is_named:
            sidecars.append(file.path)
            continue
        if is_light(file.path) and not file.is_named:  # its trace is the profile
            continue
        item = entry(file.path, size=file.size, mtime_ns=file.mtime_ns, filesystem=location.filesystem)
        verdict = _before_opening(file, item)
        if verdict == LOOK_INSIDE and not file.is_named:
            opened += 1
            verdict = _inside(item) if opened <= FILES_OPENED else _too_many
        if verdict.reason:
            walk.skipped.append(Skipped(file.path, verdict.reason))
        else:
            found.append(_with_number(replace(item, format_hint=verdict.format_hint)))
    return found, sidecars


def _with_number(item: Entry) -> Entry:
    """PyTorch appends the rank to whatever prefix a user gives dumps of the flight recorder: the last number is the rank."""
    number = re.search(r"(\d{1,6})(\.json)?(\.gz)?$", item.name)
    if item.format_hint != flight_recorder.FORMAT.name or item.who or number is None:
        return item
    rank = int(number[1])
    prefix = item.path.removesuffix(number[0])
    return replace(item, rank=rank, who=(rank,), template=f"{prefix}*")


_too_many = Verdict(
    reason=f"not opened: {FILES_OPENED:,} files of unknown kind were; name it to have it read"
)


def _before_opening(file: FoundFile, item: Entry) -> Verdict:
    if file.is_named:
        return Verdict(by_name(item.name).format_hint)
    if file.size == 0 and item.filesystem is None:
        return Verdict(reason="an empty file")
    return by_name(item.name)


def _inside(item: Entry) -> Verdict:
    """The verdict by the first bytes."""
    try:
        searching = searched_by(item.name.lower())
        if searching is not None:
            with _opened(item) as file:
                return by_search(searching, file, item.size)
        return by_content(item.source().head(HEAD_BYTES))
    except UnreadableFile as error:
        return Verdict(reason=error.what)
    except Exception as error:  # a remote filesystem has errors of its own
        return Verdict(reason=f"cannot be read: {error}")


def _opened(item: Entry) -> IO[bytes]:
    if item.filesystem is None:
        return Path(item.path).open("rb")
    return cast("IO[bytes]", item.filesystem.open(item.path, "rb"))


def _with_ranks_inside(entries: list[Entry]) -> list[Entry]:
    """Where names contain no rank and files next to each other may be ranks or strangers, ask their first bytes."""
    unclear = [item for item in entries if item.time_ns is not None and not item.who and not item.capture]
    crowded = {folder for folder, files in Counter(item.folder for item in unclear).items() if files > 1}
    asked = [item for item in unclear if item.folder in crowded]
    if not asked:
        return entries
    with ThreadPoolExecutor(8, thread_name_prefix="stepscope-scan") as pool:
        told = dict(zip((item.path for item in asked), pool.map(_with_rank_inside, asked), strict=True))
    return [told.get(item.path, item) for item in entries]


def _with_rank_inside(item: Entry) -> Entry:
    try:
        found = rank_in(item)
    except Exception:  # whatever is wrong with the file is told when it is read
        return item
    if found is None:
        return item
    rank, world = found
    return replace(item, rank=rank, who=(rank,), template=f"{item.folder}/* of {world}")


def _without_twins(entries: list[Entry]) -> tuple[list[Entry], list[Skipped]]:
    """Leave out files that say again what another one says better."""
    paths = {item.path for item in entries}
    xplanes = {item.folder: item.name for item in entries if item.format_hint == "xplane"}
    kept: list[Entry] = []
    twins: list[Skipped] = []
    for item in entries:
        twin = _twin(item, paths, xplanes)
        if twin is None:
            kept.append(item)
        else:
            twins.append(Skipped(item.path, f"twin of {twin}"))
    return kept, twins


def _twin(item: Entry, paths: set[str], xplanes: dict[str, str]) -> str | None:
    """The file that holds the same: JAX's JSON beside its xplane.pb, or the unpacked file beside the packed one."""
    json = re.search(r"\.trace\.json(\.gz)?$", item.path)
    if json is not None:
        for suffix in (".xplane.pb", ".xplane.pb.gz"):
            twin = item.path[: json.start()] + suffix
            if twin in paths:
                return twin.rsplit("/", 1)[-1]
    if item.name.startswith("perfetto_trace.json") and in_profile_folder(item.folder):
        return xplanes.get(item.folder)
    unpacked = item.path.removesuffix(".gz")
    return unpacked.rsplit("/", 1)[-1] if unpacked != item.path and unpacked in paths else None


def choose(catalog: Catalog, name: str | None) -> Run:
    """The run of this name, else the newest."""
    if name is None:
        return catalog.runs[0]
    found = catalog.run(name)
    if found is None:
        known = ", ".join(run.name for run in catalog.runs[:20])
        raise StepscopeError(f"No run {name} in {catalog.path}.", fix=f"There are: {known}")
    return found
