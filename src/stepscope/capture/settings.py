"""What a Profiler was asked for, and who records."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stepscope.capture.backends.base import Options
from stepscope.capture.files.identity import Identity, identify
from stepscope.capture.machine.git import find_commit

SCHEMA = "stepscope.capture/1"


@dataclass(frozen=True)
class Settings:
    """What a Profiler was asked for."""

    folder: Path
    options: Options
    backends: tuple[str, ...] | None = None
    telemetry: bool = True
    worker: str | None = None


def about(settings: Settings, who: Identity | None = None) -> dict[str, Any]:
    """Who records, for sidecars and rings."""
    who = who or identify()
    return {
        "schema": SCHEMA,
        "worker": settings.worker or who.worker,
        "host": who.host,
        "pid": who.pid,
        "rank": who.rank,
        "world_size": who.world_size,
        "local_rank": who.local_rank,
        "rank_source": who.source,
        "job": who.job,
        "options": asdict(settings.options),
        "command": list(getattr(sys, "orig_argv", sys.argv)),
        "cores": _cores(),
        "git_commit": find_commit(),
        "versions": {"python": platform.python_version(), "platform": platform.platform()},
    }


def _cores() -> int | None:
    """The cores that this process may use: fewer than the machine has in a container or under a scheduler."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on this system
        return os.cpu_count()
