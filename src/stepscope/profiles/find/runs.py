"""Which files belong together: the ranks of one capture are a run; other captures next to them are other runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import field
from fnmatch import fnmatchcase
from itertools import pairwise, takewhile
from typing import Any

from stepscope.formats import ring
from stepscope.formats.source import Source
from stepscope.lazy import dataclass
from stepscope.profiles.find.file_names import Name, folder_time_ns, natural, pattern, read_folder, read_name

# Ranks stop profiling at the same training step, so their files are named within moments of each other. Workers
# without a rank may as well be two jobs that someone started one after the other, hence the shorter limit.
RANKED_GAP_NS = 600 * 1_000_000_000
UNRANKED_GAP_NS = 5 * 1_000_000_000
# The format of what was kept of a window that was never written.
RING = ring.FORMAT.name
CAPTURES = "capture_traces"  # where serving engines record the capture of their graphs


@dataclass(frozen=True)
class Entry:
    """One file that looks like a profile. `rank` comes from its name or folder."""

    path: str
    folder: str
    format_hint: str = ""
    rank: int | None = None
    worker: str | None = None
    who: tuple[int, ...] = ()
    template: str = ""
    time_ns: int | None = None
    mtime_ns: int = 0
    size: int = 0
    capture: str = ""  # which capture of stepscope's own wrote it, by its sidecar
    recording: str = ""  # the same of one process: its recording and window, which its ring has too
    job: str = ""  # and of all its workers: the job and window
    together: Entry | None = field(
        default=None, compare=False, repr=False
    )  # of another rank, in the same run
    filesystem: Any = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The file's name without its folders."""
        return self.path.rsplit("/", 1)[-1]

    def source(self) -> Source:
        """Its bytes."""
        return Source(self.path, self.filesystem)


@dataclass(frozen=True)
class Run:
    """The files of one capture, in the order of their ranks. `address` loads exactly this run; None if nothing short does."""

    name: str
    entries: tuple[Entry, ...]
    address: str | None = None

    @property
    def time_ns(self) -> int:
        """When it was recorded, as far as names and files say."""
        return max(when(entry) for entry in self.entries)

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(entry.size for entry in self.entries)


def when(entry: Entry) -> int:
    """The time in the file's name or folder, else when the file was last written."""
    return entry.time_ns or folder_time_ns(entry.folder.rsplit("/", 1)[-1]) or entry.mtime_ns


def entry(path: str, **known: Any) -> Entry:
    """An entry with everything its path says."""
    folder, _, file = path.rpartition("/")
    name, where = read_name(file), _folder_names(folder)
    outer = [part for part in where if part.who]
    rank = name.rank if name.who else (outer[-1].rank if outer else None)
    who = tuple(number for part in outer for number in part.who) + name.who
    template = "/".join([*(part.template for part in where), name.template])
    return Entry(
        path, folder, rank=rank, worker=name.worker, who=who, template=template, time_ns=name.time_ns, **known
    )


def _folder_names(folder: str) -> list[Name]:
    return [read_folder(part) for part in folder.split("/")]


def in_profile_folder(folder: str) -> bool:
    """Whether it is plugins/profile/<run>, where TensorFlow, JAX and XProf keep one run."""
    return folder.split("/")[-3:-1] == ["plugins", "profile"]


def group(entries: Iterable[Entry]) -> list[list[Entry]]:
    """The files of each run, ranks in order; the newest run first, but none before the one of which it repeats a few files."""
    together: dict[Hashable, list[Entry]] = defaultdict(list)
    for item in entries:
        together[_key(item)].append(item)
    return ordered([run for members in together.values() for run in _windows(members)])


def ordered(runs: Iterable[list[Entry]]) -> list[list[Entry]]:
    """Ranks in order; the newest run first, but none before the one of which it repeats a few files."""
    by_path = sorted((sorted(run, key=_order) for run in runs), key=lambda run: natural(run[0].path))
    newest = sorted(by_path, key=_recorded, reverse=True)
    repeated = [
        run for run in newest if len(run) > 2
    ]  # others are repeated by none: a logdir has hundreds of them
    repeats = [run for run in newest if any(_repeats(run, other) for other in repeated)]
    # A recording of how graphs were captured belongs to the profile beside its folder: it comes last.
    return sorted(
        newest, key=lambda run: (CAPTURES in run[0].folder.split("/"), any(run is each for each in repeats))
    )


def _recorded(run: list[Entry]) -> int:
    return max(map(when, run))


def _repeats(run: list[Entry], other: list[Entry]) -> bool:
    """Whether these are second files of a few workers of a run of the same moments: copies, or a window that the others do not have."""
    if 2 * len(run) >= len(other) or abs(_recorded(run) - _recorded(other)) > RANKED_GAP_NS:
        return False
    there = {(item.folder, item.who or item.worker) for item in other}
    return all((item.who or item.worker) and (item.folder, item.who or item.worker) in there for item in run)


def _key(item: Entry) -> Hashable:
    """Files of different keys are never one run."""
    if item.together is not None:
        return _key(item.together)
    if in_profile_folder(item.folder):
        return "folder", item.template.rpartition("/")[0], item.format_hint
    if item.capture:
        return "captured", item.folder, item.capture
    if item.who:
        return "marked", item.template
    if item.time_ns is not None:
        return "timed", item.folder
    return "alone", item.path


def _order(item: Entry) -> tuple[Any, ...]:
    return item.rank is None, item.rank or 0, item.who, natural(item.path)


def _windows(members: list[Entry]) -> list[list[Entry]]:
    """Split by time: a job may profile several times, and the same worker cannot be in one window twice."""
    if members[0].capture or any(member.time_ns is None for member in members):
        return [members]
    members = sorted(members, key=when)
    clusters = [[members[0]]]
    for before, after in pairwise(members):
        limit = RANKED_GAP_NS if after.who else UNRANKED_GAP_NS
        if when(after) - when(before) > limit:
            clusters.append([])
        clusters[-1].append(after)
    return [window for cluster in clusters for window in _cycles(cluster)]


def _cycles(cluster: list[Entry]) -> list[list[Entry]]:
    """Windows so close in time that only the repeated workers distinguish them."""
    by_worker: dict[Hashable, list[Entry]] = defaultdict(list)
    for member in cluster:
        by_worker[member.who or member.worker].append(member)
    counts = {len(files) for files in by_worker.values()}
    if len(counts) == 1:
        return [list(cycle) for cycle in zip(*by_worker.values(), strict=True)]
    cycles: list[list[Entry]] = [[]]
    for member in cluster:
        if any((other.who or other.worker) == (member.who or member.worker) for other in cycles[-1]):
            cycles.append([])
        cycles[-1].append(member)
    return cycles


def name_runs(groups: list[list[Entry]], root: str, *, saw_whole_folders: bool) -> list[Run]:
    """Names and addresses for the runs: the folder if it holds nothing else, else the file or a pattern."""
    everyone = [item for members in groups for item in members]
    runs = []
    taken: dict[str, int] = defaultdict(int)
    for members in groups:
        address, exact = _folder_address(members, everyone) if saw_whole_folders else None, True
        if address is None:
            address, exact = _file_address(members, everyone)
        name = _relative(address, root)
        taken[name] += 1
        if taken[name] > 1:
            name = f"{name} ({taken[name]})"
        runs.append(Run(name, tuple(members), address if exact else None))
    return runs


def _folder_address(members: list[Entry], everyone: list[Entry]) -> str | None:
    """The folder, if these files are all there is in it."""
    folder = _common_folder(members)
    if len(members) == 1 and not in_profile_folder(folder):
        return None
    return folder if len(_under(folder, everyone)) == len(_under(folder, members)) == len(members) else None


def _common_folder(members: list[Entry]) -> str:
    """The innermost folder that holds all of them."""
    folders = [member.folder.split("/") for member in members]
    shared = [
        parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))
    ]
    return "/".join(shared)


def _file_address(members: list[Entry], everyone: list[Entry]) -> tuple[str, bool]:
    """The file, or a pattern for all of them, and whether it stands for no others."""
    if len(members) == 1:
        return members[0].path, True
    address = pattern([member.path for member in members])
    return address, sum(fnmatchcase(item.path, address) for item in everyone) == len(members)


def _under(folder: str, entries: list[Entry]) -> list[Entry]:
    return [item for item in entries if item.path.startswith(folder + "/")]


def _relative(path: str, root: str) -> str:
    inside = path.removeprefix(root).lstrip("/")
    return inside if inside and path.startswith(root) else path.rsplit("/", 1)[-1]
