"""What `stepscope try` passes to the job through the environment, and the settings that `stepscope run --with` applies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

TRIAL = "STEPSCOPE_TRY"
WITH = "STEPSCOPE_WITH"


@dataclass(frozen=True)
class Trial:
    """One run: which changes, how many steps, and where its result and its files go.

    After `warmup` steps at least `steps` are timed and at least `least_s` seconds, but not more than `most_s`.
    """

    result: str
    scratch: str
    changes: list[str] = field(default_factory=list)
    warmup: int = 5
    steps: int = 20
    least_s: float = 2.0
    most_s: float = 20.0

    def variables(self) -> dict[str, str]:
        """For the environment of the job."""
        return {TRIAL: json.dumps(asdict(self))}


def trial_of(env: Mapping[str, str]) -> Trial | None:
    """The run that this process is part of; None outside of a trial, or with one that makes no sense."""
    try:
        return Trial(**json.loads(env[TRIAL]))
    except (KeyError, ValueError, TypeError):
        return None


def settings_of(env: Mapping[str, str]) -> list[str]:
    """The changes of `stepscope run --with`."""
    try:
        found = json.loads(env[WITH])
    except (KeyError, ValueError):
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
