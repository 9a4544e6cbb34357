"""What `stepscope run` passes to the processes of a job, through the environment only, and what they leave for it to read."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PLAN = "STEPSCOPE_LAUNCH"
RUN = "STEPSCOPE_RUN"
LISTEN = "STEPSCOPE_LISTEN"
# Taken out by the first Python that sees it: processes that it starts are not recorded unless they show a loop.
MAIN = "STEPSCOPE_MAIN"
# Of a trial: the job ends when its steps are recorded; its checkpoints go to this folder.
END = "STEPSCOPE_END"
HOOK = Path(__file__).parent / "hook"
MOST_WARMUP = 2


@dataclass(frozen=True)
class Plan:
    """Which steps are recorded, both included, and where to. `notes` is a folder for what `run` wants to know afterwards."""

    folder: str
    first: int
    last: int
    notes: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    repeat: int = 1

    @property
    def warmup(self) -> int:
        """Steps before the first in which the collectors warm up."""
        return min(MOST_WARMUP, self.first)

    @property
    def count(self) -> int:
        """How many steps are recorded."""
        return self.last - self.first + 1

    @property
    def cycle(self) -> int:
        """Steps from the beginning of one window's wait to the end of the window."""
        return self.last + 1

    def is_over(self, steps: int) -> bool:
        """Whether this number of steps is more than all windows."""
        return self.repeat > 0 and steps > self.cycle * self.repeat - 1


def environment(plan: Plan, before: Mapping[str, str], *, listen: bool = False) -> dict[str, str]:
    """The environment of the job: the plan, a name that all its workers share, and the folder of our hook on the path."""
    env = dict(before)
    env[PLAN] = json.dumps(asdict(plan))
    env.setdefault(RUN, secrets.token_hex(8))
    env[MAIN] = "1"
    if listen:
        env[LISTEN] = "1"
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HOOK), before.get("PYTHONPATH"))))
    return env


def plan_of(env: Mapping[str, str]) -> Plan | None:
    """The plan that this process was launched with; None without one, or with one that makes no sense."""
    try:
        return Plan(**json.loads(env[PLAN]))
    except (KeyError, ValueError, TypeError):
        return None


def write_note(plan: Plan, note: dict[str, Any]) -> None:
    """For the launcher, if it runs on this machine: one file per process, replaced as a whole."""
    folder = Path(plan.notes)
    if not plan.notes or not folder.is_dir():
        return
    path = folder / f"{os.getpid()}.json"
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(note, default=str), encoding="utf-8")
    draft.replace(path)


def read_notes(folder: Path) -> Iterator[dict[str, Any]]:
    """What the processes of the job left."""
    for path in sorted(folder.glob("*.json")):
        try:
            note = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(note, dict):
            yield note
