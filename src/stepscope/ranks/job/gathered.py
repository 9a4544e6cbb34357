"""What all ranks did, in one table of each kind: as tables of their own they take many times the memory."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from zlib import compress, decompress

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.job.course import CALLS, DID, WORK, Course
from stepscope.registers.policy.job import COURSES_AT_ONCE

_RANK = {"rank": pl.Int32}
_FIRST = {"first_work": pl.UInt32, "first_call": pl.UInt32}


@dataclass(frozen=True)
class PackedCourse:
    """A course as it travels and is held until all of them are there: `tables` are work, calls and did."""

    rank: int
    tables: tuple[bytes, bytes, bytes]
    host: str | None
    step_ns: float

    def unpacked(self) -> Course:
        """The course."""
        work, calls, did = (pl.read_ipc_stream(BytesIO(decompress(table))) for table in self.tables)
        return Course(self.rank, work, calls, self.host, did, self.step_ns)


def packed(course: Course) -> PackedCourse:
    """The same in a tenth of the memory."""
    work, calls, did = (_packed(table) for table in (course.work, course.calls, course.did))
    return PackedCourse(course.rank, (work, calls, did), course.host, course.step_ns)


def _packed(table: pl.DataFrame) -> bytes:
    stream = BytesIO()
    table.write_ipc_stream(stream)
    return compress(stream.getbuffer(), 1)


@dataclass(frozen=True)
class Gathered:
    """`first_work` and `first_call` of a call are where those of its rank begin among all of their kind."""

    ranks: list[int]
    hosts: dict[int, str | None]
    step_ns: float  # the mean of all ranks
    work: pl.DataFrame  # WORK, rank
    calls: pl.DataFrame  # CALLS, first_work, first_call
    did: pl.DataFrame  # DID, rank


def gather(courses: Sequence[Course | PackedCourse]) -> Gathered:
    """Those of ranks that worked, some at a time."""
    batches = [_Batch()]
    hosts: dict[int, str | None] = {}
    step_ns, first_work, first_call = 0.0, 0, 0
    for at in range(0, len(courses), COURSES_AT_ONCE):
        batch = _Batch()
        for course in map(_open, courses[at : at + COURSES_AT_ONCE]):
            if len(course.work):
                batch.add(course, first_work, first_call)
                first_work, first_call = first_work + len(course.work), first_call + len(course.calls)
                hosts[course.rank] = course.host
                step_ns += course.step_ns
        batches.append(batch.together())
    work, calls, did = (
        pl.concat(table for batch in batches for table in getattr(batch, name))
        for name in ("work", "calls", "did")
    )
    return Gathered(list(hosts), hosts, step_ns / max(1, len(hosts)), work, calls, did)


class _Batch:
    """Tables of some ranks."""

    def __init__(self) -> None:
        self.work = [pl.DataFrame(schema={**WORK, **_RANK})]
        self.calls = [pl.DataFrame(schema={**CALLS, **_FIRST})]
        self.did = [pl.DataFrame(schema={**DID, **_RANK})]

    def add(self, course: Course, first_work: int, first_call: int) -> None:
        """One more rank."""
        rank = pl.lit(course.rank, pl.Int32).alias("rank")
        firsts = {"first_work": first_work, "first_call": first_call}
        first = [pl.lit(at, pl.UInt32).alias(name) for name, at in firsts.items()]
        self.work.append(course.work.with_columns(rank))
        self.calls.append(course.calls.with_columns(first))
        self.did.append(course.did.with_columns(rank))

    def together(self) -> _Batch:
        """As one table of each kind."""
        self.work, self.calls, self.did = (
            [pl.concat(tables, rechunk=True)] for tables in (self.work, self.calls, self.did)
        )
        return self


def _open(course: Course | PackedCourse) -> Course:
    return course.unpacked() if isinstance(course, PackedCourse) else course
