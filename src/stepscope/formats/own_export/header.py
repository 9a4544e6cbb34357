"""The header of our own Chrome export, checked field by field: the file may have been edited."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import polars as pl
from msgspec import Meta

from stepscope.formats.own_export.write import RESERVED
from stepscope.trace.problems import Problem, Problems, quoted
from stepscope.trace.schema import TABLES
from stepscope.trace.trace import TraceInfo

# Found again by `finish` when it nests the events.
_FOUND_AGAIN = ("outlives-parent",)

Int32 = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
Int62 = Annotated[int, Meta(gt=-(2**62), lt=2**62)]
Id = Annotated[int, Meta(ge=0, lt=2**31)]


class _Info(msgspec.Struct):
    format: str = ""
    framework: str | None = None
    rank: Int32 | None = None
    world_size: Int32 | None = None
    host: str | None = None
    base_unix_ns: Int62 = 0
    clock_offset_ns: Int62 = 0
    clock_drift: float = 0.0
    devices: list[dict[str, Any]] = []
    versions: dict[str, Any] = {}
    capture_options: dict[str, Any] = {}
    capture: dict[str, Any] = {}


class _Problem(msgspec.Struct):
    code: str
    severity: Literal["error", "warning", "info"]
    title: str
    detail: str
    fix: str
    count: Int62


class _Track(msgspec.Struct):
    id: Id
    process: str | None = None
    thread: str | None = None
    stream: Int62 | None = None
    device: Int32 | None = None
    device_kind: str | None = None
    what: str | None = None
    pid: str | None = None
    tid: str | None = None


class Header(msgspec.Struct):
    """What the export says of the trace as a whole."""

    form: Literal[1]
    shift_ns: Int62
    info: _Info
    problems: list[_Problem]
    tracks: list[_Track]
    threads: list[tuple[Int62, Id, Id]]

    def trace_info(self, path: str) -> TraceInfo:
        """The trace as it was, in its new place."""
        return TraceInfo(path=path, **msgspec.structs.asdict(self.info))

    def known_problems(self) -> Problems:
        """The problems that were found when the original was read; those that are found again keep their place."""
        found = Problems()
        for each in self.problems:
            count = 0 if each.code in _FOUND_AGAIN else each.count
            found.add(quoted(Problem(each.code, each.title, each.detail, each.fix, each.severity, count)))
        return found

    def track_table(self) -> pl.DataFrame:
        """The tracks; a device kind or use that is not known becomes null. A job that ended at once has none."""
        if not self.tracks:
            return pl.DataFrame(schema=TABLES["tracks"])
        rows = pl.DataFrame(
            [msgspec.structs.asdict(track) for track in self.tracks], infer_schema_length=None
        )
        return rows.select(pl.col(name).cast(dtype, strict=False) for name, dtype in TABLES["tracks"].items())

    def track_of_thread(self) -> dict[int, int]:
        """The track of each tid: this is what undoes the lanes."""
        return {tid: track for tid, track, _ in self.threads}


def exported_header(header: dict[str, Any]) -> Header | None:
    """Our header, if the file is an undamaged export of ours."""
    try:
        found = msgspec.convert(header.get(RESERVED), Header)
    except msgspec.ValidationError:
        return None
    ids = [track.id for track in found.tracks]
    # Tables are sized by the highest id: one that no track has would let a small file ask for any memory.
    is_sound = ids == list(range(len(ids))) and all(track < len(ids) for _, track, _ in found.threads)
    return found if is_sound else None
