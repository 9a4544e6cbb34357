"""What a file name says about a profile: which rank or worker wrote it, and when. Pure functions over names."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from stepscope.lazy import dataclass

# <worker>.<time>.pt.trace.json, as PyTorch's handler for TensorBoard writes it; the time may be missing.
_KINETO = re.compile(r"^(?P<worker>.*?)(?:\.(?P<time>\d+))?\.pt\.trace\.json$", re.IGNORECASE)
_MARKS = re.compile(
    r"(?<![A-Za-z])(?P<what>(?:global[-_])?rank|local[-_]?rank|worker|process|proc|task)[-_ ]?(?P<number>\d{1,6})(?!\d)",
    re.IGNORECASE,
)
# SGLang: 1759-TP-3.trace.json.gz, also with -DP-, -PP-, -EP-.
_DIMENSIONS = re.compile(r"(?<![A-Za-z])(?P<what>TP|DP|PP|EP|CP)-(?P<number>\d{1,6})(?!\d)")
# vLLM: dp0_pp0_tp1_dcp0_ep1_rank1.
_GRID = re.compile(r"^(?:[a-z]{2,3}\d+_){2,}(?=rank\d)")
_NODES = re.compile(r"(?<![A-Za-z])(?P<what>node|host)[-_ ]?(?P<number>\d{1,6})(?!\d)", re.IGNORECASE)
_RUN_FOLDER = re.compile(r"^(\d{4})_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)$")
_UNIT_NS = {10: 1_000_000_000, 13: 1_000_000, 16: 1_000, 19: 1}


@dataclass(frozen=True)
class Name:
    """What a file's name says. `template` is the name with everything blanked that differs between ranks."""

    template: str
    who: tuple[int, ...] = ()
    rank: int | None = None
    worker: str | None = None
    time_ns: int | None = None


def read_name(name: str) -> Name:
    """Take a file name apart. Whether it is packed makes no difference."""
    name = re.sub(r"\.gz$", "", name, flags=re.IGNORECASE)
    kineto = _KINETO.match(name)
    stem = kineto["worker"] if kineto else name
    template, who, rank = _marks(stem)
    if kineto is None:
        return Name(template, who, rank)
    suffix = name[kineto.end("time") if kineto["time"] else kineto.end("worker") :]
    return Name(template + suffix, who, rank, kineto["worker"], unix_ns(kineto["time"]))


def _marks(stem: str) -> tuple[str, tuple[int, ...], int | None]:
    """The stem with its marks blanked, their numbers, and the rank if they contain one."""
    grid = _GRID.match(stem)
    rest = stem[grid.end() :] if grid else stem
    found = [*_MARKS.finditer(rest)] or [*_DIMENSIONS.finditer(rest)]
    if any(match["what"].lower().startswith("local") for match in found):
        found += _NODES.finditer(rest)
    found.sort(key=lambda match: match.start())
    blanked = rest
    for match in reversed(found):
        blanked = blanked[: match.start("number")] + "*" + blanked[match.end("number") :]
    who = [int(match["number"]) for match in found]
    if grid:
        blanked = re.sub(r"\d+", "*", grid.group()) + blanked
        who = [int(number) for number in re.findall(r"\d+", grid.group())] + who
    return blanked, tuple(who), _rank(found)


def _rank(marks: list[re.Match[str]]) -> int | None:
    """A global rank if one is named, else the only number there is."""
    for match in marks:
        what = match["what"].lower()
        if what.endswith("rank") and not what.startswith("local"):
            return int(match["number"])
    return int(marks[0]["number"]) if len(marks) == 1 else None


def read_folder(folder: str) -> Name:
    """The same for a folder's name, which must end in its mark: rank_3, worker0."""
    marks = [*_MARKS.finditer(folder)] or [*_NODES.finditer(folder)]
    if not marks or marks[-1].end() != len(folder):
        return Name(folder)
    last = marks[-1]
    number = int(last["number"])
    return Name(folder[: last.start("number")] + "*", (number,), number)


def unix_ns(digits: str | None) -> int | None:
    """A time stamp in a name, whatever its unit: seconds, milli-, micro- or nanoseconds."""
    unit = _UNIT_NS.get(len(digits or ""))
    return int(digits or 0) * unit if unit else None


def folder_time_ns(folder: str) -> int | None:
    """When XProf, TensorFlow or JAX made the run's folder: 2026_11_14_23_49_41."""
    match = _RUN_FOLDER.match(folder)
    if match is None:
        return None
    try:
        year, month, day, hour, minute, second = map(int, match.groups())
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return None
    return int(moment.timestamp()) * 1_000_000_000


def natural(text: str) -> tuple[tuple[int, int | str], ...]:
    """Sorts rank10 after rank9."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", text) if part)


def pattern(names: list[str]) -> str:
    """The shortest way to write all names at once: what differs between them becomes a star."""
    pieces = [re.split(r"(\d+)", name) for name in names]
    if len({len(split) for split in pieces}) > 1:
        return _starred(names)
    return "".join(_starred(list(column)) for column in zip(*pieces, strict=True))


def _starred(texts: list[str]) -> str:
    """What the texts begin and end with in common, and a star between if there is more."""
    first, shortest = texts[0], min(map(len, texts))
    if all(text == first for text in texts):
        return _escaped(first)
    head = 0
    while head < shortest and all(text[head] == first[head] for text in texts):
        head += 1
    tail = 0
    while tail < shortest - head and all(text[-1 - tail] == first[-1 - tail] for text in texts):
        tail += 1
    return _escaped(first[:head]) + "*" + (_escaped(first[-tail:]) if tail else "")


def _escaped(text: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", text)
