"""A fix: a set of changes to the steps that are replayed together."""

from __future__ import annotations

from dataclasses import field

import polars as pl

from stepscope.analysis.replay.plan import USUAL, Plan
from stepscope.lazy import dataclass
from stepscope.registers.calibration.profiler import WARM_DISPATCH
from stepscope.registers.policy.findings import LONG_WORK_OF_HOST


@dataclass(frozen=True)
class Change:
    """A fix as plans: with what surely goes, and with what may go.

    `unseen_stays`: whether time of the step that the replay lacks may stay as it is, such as work that was not recorded.
    """

    smallest: Plan
    largest: Plan
    unseen_stays: bool = field(default=False, kw_only=True)

    def combined(self, other: Change) -> Change:
        """Both fixes together."""
        smallest, largest = self.smallest.combined(other.smallest), self.largest.combined(other.largest)
        return Change(smallest, largest, unseen_stays=self.unseen_stays or other.unseen_stays)


def with_warm_caches(plan: Plan, before: Plan, warm: float = WARM_DISPATCH) -> Plan:
    """Dispatch after long work of the host is slower than usual, and gains when so much of the host's time goes."""
    was, left = (int(one.host[USUAL].sum()) for one in (before, plan))
    if was - left < LONG_WORK_OF_HOST * was:
        return plan
    return plan.with_host(pl.col("cause").is_in(["dispatch", "sync"]), warm)


def with_busy_host(plan: Plan, before: Plan, left: float, idle: float = LONG_WORK_OF_HOST) -> Plan:
    """A host that waits for the device dispatches slower than one that is kept busy, as after a change on the device.

    `idle`: the share of the step that it must have waited.
    """
    steps = max(1, int(before.items["last"].sum()))
    working = int(before.host[USUAL].sum()) / steps
    if before.step_ns() - working < idle * before.step_ns():
        return plan
    return plan.with_host(pl.col("cause") == "dispatch", left)


def as_change(changed: Plan | Change) -> Change:
    """A plan is a fix of which nothing is in doubt."""
    return changed if isinstance(changed, Change) else Change(changed, changed)
