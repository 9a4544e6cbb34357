"""What a dump says: its groups, and each collective as one record. Damaged records cost themselves only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stepscope.errors import UnreadableFile
from stepscope.formats.pickles.read import read_pickle
from stepscope.formats.source import Source

_AGAIN = "Copy it again from the machine that wrote it; the dumps of the other ranks can be read without it."
_MOST_RANKS = 1 << 20


class Frame(msgspec.Struct):
    """One function of a stack, the innermost first."""

    name: str = ""
    filename: str = ""
    line: int = 0


class Record(msgspec.Struct):
    """One collective, as any version since 2.0 writes it."""

    profiling_name: str
    record_id: int = -1
    process_group: Any = None
    pg_id: int = 0
    collective_seq_id: int | None = None
    seq_id: int | None = None
    p2p_seq_id: int | None = None
    op_id: int | None = None
    is_p2p: bool = False
    input_sizes: list[Any] = []
    output_sizes: list[Any] = []
    input_dtypes: list[Any] = []
    output_dtypes: list[Any] = []
    state: str = ""
    retired: bool | None = None
    timeout_ms: int | None = None
    time_created_ns: int | None = None
    time_discovered_started_ns: int | None = None
    time_discovered_completed_ns: int | None = None
    duration_ms: float | None = None
    frames: list[Frame] = []
    thread_id: str | int | None = None
    thread_name: str = ""


class Group(msgspec.Struct):
    """A process group, as far as the dump knows it; `last` are sequence numbers."""

    name: str = ""
    desc: str = ""
    ranks: list[int] = []
    last: dict[str, int] = {}


@dataclass
class Dump:
    """One rank."""

    version: str = ""
    library: str = ""
    rank: int | None = None
    host: str | None = None
    groups: list[Group] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    damaged: int = 0
    is_cut: bool = False


def decode(source: Source) -> Dump:
    """The dump in a file."""
    path, is_pickle = source.path, source.head(1) == b"\x80"
    found, is_cut = (read_pickle(source), False) if is_pickle else _decode_json(bytes(source.content()), path)
    if not isinstance(found, dict):
        raise UnreadableFile(f"{path} is not a dump of the flight recorder: it holds something else.")
    _check_version(found.get("version"), path)
    records, damaged = _convert_records(found.get("entries"))
    return Dump(
        version=_text(found.get("version")),
        library=_text(found.get("comm_lib_version") or found.get("nccl_version")),
        rank=_whole(found.get("rank")),
        host=_text(found.get("host_name")) or None,
        groups=list(_list_groups(found.get("pg_config"), found.get("pg_status"))),
        records=records,
        damaged=damaged,
        is_cut=is_cut,
    )


def _check_version(version: object, path: str) -> None:
    major = _text(version).partition(".")[0]
    if major.isdigit() and int(major) > 2:
        raise UnreadableFile(
            f"{path} is a dump of version {_text(version)}; versions 2.0 to 2.10 are known.",
            fix="Update stepscope, or dump with the PyTorch version that trained.",
        )


def _decode_json(raw: bytes, path: str) -> tuple[Any, bool]:
    """The document, and whether it was cut: then all complete records are kept."""
    try:
        return msgspec.json.decode(raw), False
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        why = str(error)
    kept = _cut_to_records(raw)
    if kept is not None:
        try:
            return msgspec.json.decode(kept), True
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            pass
    raise UnreadableFile(f"{path} is cut or damaged: {why}.", fix=_AGAIN)


def _cut_to_records(raw: bytes) -> bytes | None:
    """The document up to its last complete record. All begin with the same member, unlike the frames inside."""
    first = re.search(rb'"entries"\s*:\s*\[\s*\{\s*("\w+")', raw)
    if first is None:
        return None
    ends = [found.start() for found in re.finditer(rb"\}\s*,\s*\{\s*" + first[1], raw)]
    return raw[: ends[-1] + 1] + b"]}" if ends else None


def _convert_records(entries: object) -> tuple[list[Record], int]:
    """A buffer holds a few thousand: each is converted by itself, so that a bad one costs no other."""
    records: list[Record] = []
    damaged = 0
    for each in entries if isinstance(entries, list | tuple) else ():
        try:
            records.append(msgspec.convert(each, Record, strict=False))
        except (msgspec.ValidationError, RecursionError, OverflowError):
            damaged += 1
    return records, damaged


def _list_groups(config: object, status: object) -> Iterator[Group]:
    """Those that are configured, and those that only have a status, as gloo's."""
    configured: Mapping[Any, Any] = config if isinstance(config, dict) else {}
    reported: Mapping[Any, Any] = status if isinstance(status, dict) else {}
    for key in dict.fromkeys([*configured, *reported]):
        about = configured.get(key)
        about = about if isinstance(about, dict) else {}
        last = reported.get(key)
        yield Group(
            name=_text(about.get("name")) or _text(key),
            desc=_text(about.get("desc")),
            ranks=_ranks(about.get("ranks")),
            last={
                _text(name): number for name, value in last.items() if (number := _whole(value)) is not None
            }
            if isinstance(last, dict)
            else {},
        )


def _ranks(value: object) -> list[int]:
    """A list, or a list as text."""
    if isinstance(value, str):
        value = re.findall(r"\d{1,7}", value)
    found = [_whole(each) for each in value] if isinstance(value, list | tuple) else []
    return sorted({rank for rank in found if rank is not None and 0 <= rank < _MOST_RANKS})


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        found = int(value)
    except ValueError:
        return None
    return found if abs(found) < 1 << 62 else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)[:100]
