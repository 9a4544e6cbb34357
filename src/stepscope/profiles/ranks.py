"""Which rank each trace is: what the trace says, else its name, else its place in the order of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stepscope.lazy import dataclass
from stepscope.profiles.find.joined import absent_elsewhere
from stepscope.profiles.find.runs import Entry
from stepscope.trace.problems import Problem, problem

if TYPE_CHECKING:
    from stepscope.trace.trace import Trace

NAMES_SHOWN = 3


@dataclass(frozen=True)
class LoadedFile:
    """One file of a run, read."""

    entry: Entry
    trace: Trace


def assign(files: Sequence[LoadedFile]) -> tuple[list[tuple[int, Trace]], list[Problem]]:
    """The traces with their ranks, in rank order, and what is doubtful about it."""
    said = [file.trace.info.rank for file in files]
    named = [file.entry.rank for file in files]
    claims = [name if rank is None else rank for rank, name in zip(said, named, strict=True)]
    problems = []
    twice = _repeated(claims)
    if twice:
        believe_names = None not in named and not _repeated(named)
        outcome = (
            "The ranks in the file names were used."
            if believe_names
            else "All but the first got other numbers."
        )
        problems.append(_same_rank(files, claims, twice, outcome))
        claims = named if believe_names else _first_claims(claims)
    numbered = zip(_filled(claims), (file.trace for file in files), strict=True)
    return sorted(numbered, key=lambda pair: pair[0]), problems


def without_doubles(
    files: Sequence[LoadedFile],
) -> tuple[list[LoadedFile], list[tuple[LoadedFile, str]], Problem | None]:
    """Of several files of one rank the first, and why the others were left out.

    Only where they know the job: one that says it is rank 0 of 4, as another does, is none of the other three. Where all say
    the same, the files are wrong, and there are as many ranks as files.
    """
    said = [file.trace.info.rank for file in files]
    named = [file.entry.rank for file in files]
    twice = _repeated(said)
    world = max((file.trace.info.world_size or 0 for file in files), default=0)
    are_told_wrong = len(set(said)) == 1 and len(files) <= world
    if not twice or world < 2 or are_told_wrong or (None not in named and not _repeated(named)):
        return list(files), [], None
    first: dict[int | None, LoadedFile] = {}
    for rank, file in zip(said, files, strict=True):
        first.setdefault(rank, file)
    kept = [file for rank, file in zip(said, files, strict=True) if rank is None or first[rank] is file]
    left = [
        (file, f"rank {rank} is {first[rank].entry.name} already")
        for rank, file in zip(said, files, strict=True)
        if rank is not None and first[rank] is not file
    ]
    return kept, left, _same_rank(files, said, twice, "Only the first was taken.")


def _repeated(claims: Sequence[int | None]) -> list[int]:
    return sorted(rank for rank, times in Counter(claims).items() if rank is not None and times > 1)


def _first_claims(claims: Sequence[int | None]) -> list[int | None]:
    """The first file keeps the rank."""
    taken: set[int | None] = set()
    kept: list[int | None] = []
    for rank in claims:
        kept.append(None if rank in taken else rank)
        taken.add(rank)
    return kept


def _filled(claims: Sequence[int | None]) -> list[int]:
    """Ranks for all: those without one get the free numbers in order."""
    free = iter(sorted(set(range(len(claims))) - {rank for rank in claims if rank is not None}))
    return [next(free) if rank is None else rank for rank in claims]


def _same_rank(
    files: Sequence[LoadedFile], claims: Sequence[int | None], twice: list[int], outcome: str
) -> Problem:
    rank = twice[0]
    names = [file.entry.name for file, claim in zip(files, claims, strict=True) if claim == rank]
    others = f", and so on for {len(twice) - 1} more ranks" if len(twice) > 1 else ""
    return problem(
        "duplicate-rank",
        f"{' and '.join(names[:3])} are all rank {rank}{others}. {outcome}",
        count=len(twice),
    )


def missing_ranks(
    ranked: Sequence[tuple[int, Trace]], *, was_chosen: bool, others: Sequence[Entry] = ()
) -> Problem | None:
    """Whether the job had more ranks than were loaded. That is expected if the caller chose one file or rank.

    `others` are the files of the other runs here: one that says it is a missing rank need not be copied, but is of another time.
    """
    world = max((trace.info.world_size or 0 for _, trace in ranked), default=0)
    if world <= len(ranked):
        return None
    absent = sorted(set(range(world)) - {rank for rank, _ in ranked})
    here = {} if was_chosen else absent_elsewhere(absent, world, others)
    return problem(
        "missing-ranks",
        f"{len(ranked)} of {world:,} ranks; missing: {spans(absent)}.{_named(here)}",
        case="chosen" if was_chosen else "here" if here else "",
        count=len(absent),
    )


def _named(here: Mapping[int, Entry]) -> str:
    if not here:
        return ""
    names = ", ".join(f"{entry.name} (rank {rank})" for rank, entry in sorted(here.items())[:NAMES_SHOWN])
    return f" Recorded at another time: {names}{' …' if len(here) > NAMES_SHOWN else ''}."


def spans(numbers: Sequence[int], most: int = 8) -> str:
    """1–7, 9, 11–20, for sorted numbers; at most `most` pieces."""
    pieces: list[list[int]] = []
    for number in numbers:
        if pieces and pieces[-1][-1] == number - 1:
            pieces[-1][1:] = [number]
        else:
            pieces.append([number])
    texts = [str(piece[0]) if len(piece) == 1 else f"{piece[0]}–{piece[-1]}" for piece in pieces[:most]]
    return ", ".join(texts) + (" …" if len(pieces) > most else "")
