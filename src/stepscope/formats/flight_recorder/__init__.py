"""Dumps of PyTorch's flight recorder: the last collectives of one rank, as a pickle or as JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepscope.formats.reader import Format, Progress
from stepscope.formats.source import Source

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft

_KEYS = (
    rb"(?:comm_lib_version|entries|host_name|nccl_comm_state|nccl_version|pg_config|pg_status|rank|version)"
)
_JSON = re.compile(rb'\s*\{\s*"' + _KEYS + rb'"\s*:')
# The first key of the dict; texts have their length before them, and a frame or a memo may come first.
_PICKLE = re.compile(rb"\x80[\x02-\x05](?:\x95.{8})?\}(?:q.|\x94)?\(?(?:X.\0\0\0|\x8c.)" + _KEYS, re.DOTALL)
# What no other file has.
_SIGNS = (b"pg_config", b"pg_status", b"profiling_name", b"nccl_comm_state")


def _matches(head: bytes, name: str) -> bool:
    begins = _PICKLE.match(head) or _JSON.match(head)
    return begins is not None and any(sign in head for sign in _SIGNS)


def _read(source: Source, progress: Progress) -> Draft:
    from stepscope.formats.flight_recorder.draft import read

    return read(source, progress)


FORMAT = Format(
    name="flight_recorder",
    summary="dumps of PyTorch's flight recorder (nccl_trace_rank_*)",
    matches=_matches,
    read=_read,
    turn=20,  # before other JSON
    written_by="the NCCL watchdog of PyTorch at a time-out, or `_dump_fr_trace`; see [hangs](formats/flight_recorder.md)",
    versions="2.0 to 2.10; pickle and JSON; NCCL, gloo and others",
    verified="real hangs of 4 gloo processes with PyTorch 2.13: rank, collective and line named",
)
