"""Tracks of Chrome trace JSON: processes, threads and streams, with the names that metadata events give them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from stepscope.formats.chrome.scan.columns import Identity, JsonEvents
from stepscope.trace.schema import TABLES


@dataclass
class Names:
    """What metadata events say of processes and threads."""

    processes: dict[Identity, str] = field(default_factory=dict)
    labels: dict[Identity, str] = field(default_factory=dict)
    threads: dict[tuple[Identity, Identity], str] = field(default_factory=dict)

    @classmethod
    def of(cls, found: JsonEvents) -> Names:
        """The last name given wins, as it does in trace viewers."""
        names = cls()
        for name, pid, tid, args in found.metadata:
            if name == "process_name" and "name" in args:
                names.processes[pid] = str(args["name"])
            elif name == "process_labels" and "labels" in args:
                names.labels[pid] = str(args["labels"])
            elif name == "thread_name" and "name" in args:
                names.threads[pid, tid] = str(args["name"])
        return names


class TrackTable:
    """Numbers tracks as they are asked for; those of the scan keep their numbers."""

    def __init__(self, found: JsonEvents) -> None:
        self.names = Names.of(found)
        self.scanned = found.tracks
        self._rows: list[dict[str, Any]] = [
            self._host(number, pid, tid) for number, (pid, tid) in enumerate(found.tracks)
        ]

    def _host(self, number: int, pid: Identity, tid: Identity) -> dict[str, Any]:
        return {
            "id": number,
            "process": self.names.processes.get(pid),
            "thread": self.names.threads.get((pid, tid)),
            "stream": None,
            "device": None,
            "device_kind": "cpu",
            "what": "host",
            "pid": None if pid is None else str(pid),
            "tid": None if tid is None else str(tid),
        }

    def set(self, number: int, **values: Any) -> None:
        """Say more of a track."""
        self._rows[number].update(values)

    def add(self, like: int, **values: Any) -> int:
        """Another track beside an existing one."""
        number = len(self._rows)
        self._rows.append(self._rows[like] | {"id": number} | values)
        return number

    def frame(self) -> pl.DataFrame:
        """The `tracks` table."""
        return pl.DataFrame(self._rows, schema=TABLES["tracks"])
