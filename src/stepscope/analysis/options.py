"""What is wanted of a report: which steps, how they are marked, how long its lists may be."""

from __future__ import annotations

import re
from dataclasses import replace

from stepscope.errors import StepscopeError
from stepscope.lazy import dataclass
from stepscope.registers.policy.tables import REPORT_ROWS

_STEPS = re.compile(r"(\d*)(?::(\d*))?")


@dataclass(frozen=True)
class Options:
    """`steps`: the first and the last that count, None for an open end. `limit`: rows of a long list, 0 for all."""

    step_name: str | None = None
    steps: tuple[int | None, int | None] | None = None
    limit: int = REPORT_ROWS
    ops_by: tuple[str, ...] = ()
    whole: bool = False  # the whole recording as one window, whatever marks steps in it
    must_match: bool = True  # a `step_name` that nothing has is an error
    brief: bool = False  # for one screen: tables that it takes a name or a share from are of the sample
    region: str | None = None  # what the ranks agreed on, where none was chosen by hand

    def of_region(self, region: str | None) -> Options:
        """The same for another recording: where none was chosen, of the region that the first one is about."""
        return self if region is None or self.step_name is not None else replace(self, step_name=region)

    def wants(self, step: int) -> bool:
        """Whether the step counts."""
        first, last = self.steps or (None, None)
        return (first is None or step >= first) and (last is None or step <= last)


def parse_steps(text: str) -> tuple[int | None, int | None]:
    """`7` is one step, `3:8` are the steps 3 to 8, `3:` and `:8` have an open end."""
    found = _STEPS.fullmatch(text.strip())
    if found is None or not text.strip(" :"):
        raise StepscopeError(
            f"{text!r} is no range of steps.", fix="Write 7 for one step, or 3:8 for the steps 3 to 8."
        )
    first, last = (int(end) if end else None for end in found.groups())
    if ":" not in text:
        return first, first
    if first is not None and last is not None and last < first:
        raise StepscopeError(f"The steps {text} end before they begin.", fix=f"Try {last}:{first}.")
    return first, last
