"""A finding, and what the rules that make findings may ask about a rank.

Findings own disjoint slices of the account: a rule takes what no rule before it has claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.findings.advice import advice
from stepscope.analysis.findings.side_effects import FOLLOWING, following
from stepscope.analysis.kernels.device_peaks import Peaks, peaks
from stepscope.analysis.memory import DeviceMemory
from stepscope.analysis.parts import spoken
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.steps.find import Steps
from stepscope.analysis.steps.usual import outliers, usual
from stepscope.registers.policy.findings import (
    MOST_SAVED,
    REPLAY_FITS,
    TOP_NAMES,
    WORTH_A_SENTENCE,
    WORTH_SHOWING,
)
from stepscope.trace.trace import Trace
from stepscope.units import duration

CLASSES = ("capture", "memory", "time", "advice")


@dataclass(frozen=True)
class Finding:
    """Named as in the report."""

    code: str
    class_: str
    title: str
    detail: str
    fix: str
    evidence: dict[str, Any] = field(default_factory=dict)
    share: float = 0.0
    saves_ns_per_step: int = 0
    speedup: float = 1.0
    speedup_max: float = 1.0


@dataclass
class Case:
    """Everything that a rule may ask about one rank's critical device."""

    trace: Trace
    steps: Steps
    account: Account
    device: int | None
    memory: list[DeviceMemory]
    kernels: pl.DataFrame  # kernels.kernel_calls
    ops: pl.DataFrame  # ops.op_calls
    whole_plan: Plan
    apart: pl.Series | None = None  # host time of the plan that a finding about the optimizer owns
    awaits: bool = False  # a finding about waits for the device is told

    @property
    def has_device(self) -> bool:
        """Whether there is one beside the host, recorded or only named."""
        return self.device is not None or bool(self.trace.info.devices)

    @cached_property
    def all_slices(self) -> pl.DataFrame:
        """The account of the device, with length and the name of whom each slice is charged to."""
        mine = self.account.slices.filter(pl.col("device").eq_missing(self.device))
        names = self.trace.events["name"].gather(mine["named_by"])
        return mine.with_columns(ns=pl.col("end_ns") - pl.col("start_ns"), name=names).with_row_index("slice")

    @cached_property
    def lengths(self) -> pl.DataFrame:
        """step, ns of all steps of this device, in order."""
        return self.all_slices.group_by("step").agg(pl.col("ns").sum()).sort("step")

    @cached_property
    def outliers(self) -> pl.DataFrame:
        """Slow steps (stepscope.statistics.slow_steps); none where there are too few to tell."""
        return outliers(self.lengths)

    @cached_property
    def slices(self) -> pl.DataFrame:
        """The slices of usual steps: outliers are a finding of their own."""
        return usual(self.all_slices, self.outliers)

    @cached_property
    def unclaimed(self) -> pl.DataFrame:
        """The slices that no finding owns yet."""
        return self.slices

    @cached_property
    def step_count(self) -> int:
        """Usual steps of this device."""
        return max(1, self.slices["step"].n_unique())

    @cached_property
    def step_ns(self) -> float:
        """The mean length of a usual step, as recorded."""
        return int(self.slices["ns"].sum()) / self.step_count

    @cached_property
    def plan(self) -> Plan:
        """The usual steps, ready to be played again without the profiler's share."""
        usual = self.lengths["step"].is_in(self.outliers["step"].implode())
        return self.whole_plan.counting([place for place, out in enumerate(usual) if not out])

    @cached_property
    def played_ns(self) -> float:
        """A step played again without any change."""
        return self.plan.step_ns()

    @cached_property
    def unprofiled_ns(self) -> float:
        """The length of a step without the profiler: shorter than recorded as the replay is without its share."""
        return self.step_ns * self.played_ns / self.recorded_ns if self.replay_fits else self.step_ns

    @cached_property
    def recorded_ns(self) -> float:
        """A step played again with the profiler's share."""
        return self.plan.as_recorded().step_ns()

    @cached_property
    def replay_fits(self) -> bool:
        """Whether the played steps are about as long as the recorded ones: else no promise can rest on them.

        They are not where other threads or processes decide, as in a profile without a device.
        """
        fits = self.played_ns > 0 and abs(self.recorded_ns / self.step_ns - 1) <= REPLAY_FITS
        return fits and self.device is not None

    @cached_property
    def peaks(self) -> Peaks | None:
        """What the device can do at best, where that is known."""
        found = [peaks(one) for one in self.trace.info.devices]
        return next((one for one in found if one is not None), None)

    def free(self, *matches: pl.Expr) -> pl.DataFrame:
        """The matching slices that nobody owns yet."""
        return self.unclaimed.filter(*matches)

    def claim(self, owned: pl.DataFrame) -> None:
        """These slices belong to a finding now."""
        taken = pl.repeat(False, len(self.all_slices), dtype=pl.Boolean, eager=True).scatter(
            owned["slice"], True
        )
        self.unclaimed = self.unclaimed.filter(~taken.gather(self.unclaimed["slice"]))

    def per_step(self, owned: pl.DataFrame) -> int:
        """Time of these slices per step."""
        return int(int(owned["ns"].sum()) / self.step_count)

    def top_names(self, owned: pl.DataFrame, count: int = TOP_NAMES) -> list[dict[str, Any]]:
        """Whom the time is charged to, largest first."""
        summed = owned.group_by("name").agg(pl.col("ns").sum()).cast({"name": pl.String})
        ranked = summed.sort(["ns", "name"], descending=[True, False])
        return [
            {"name": name, "ns_per_step": int(ns / self.step_count)}
            for name, ns in ranked.head(count).iter_rows()
        ]

    def by_part(self, owned: pl.DataFrame) -> dict[str, int]:
        """Time of these slices per step, by part, largest first."""
        summed = owned.group_by("part").agg(pl.col("ns").sum()).cast({"part": pl.String})
        ranked = summed.sort(["ns", "part"], descending=[True, False])
        return {part: int(ns / self.step_count) for part, ns in ranked.iter_rows()}

    def of_step(self, ns: float) -> str:
        """`ns` in words: how long, and which share of the step."""
        which = "usual step" if len(self.outliers) else "step"
        return f"{duration(ns)} of {duration(self.step_ns)} per {which} ({ns / self.step_ns:.0%})"


def timed(
    case: Case,
    code: str,
    owned: pl.DataFrame,
    changed: Plan,
    title: str,
    detail: str,
    evidence: dict[str, Any] | None = None,
    owned_ns: int | None = None,
    follow: Sequence[str] = FOLLOWING,
) -> Finding:
    """A finding that saves what the changed plan saves; it owns its slices from now on."""
    mine = case.per_step(owned) if owned_ns is None else owned_ns
    told = {"names": case.top_names(owned), **(evidence or {})}
    if not case.replay_fits:
        case.claim(owned)
        saved = case.unprofiled_ns * mine / case.step_ns
        return saving(case, code, mine, saved, mine, title, detail, {**told, "estimate": "account"})
    # Shares of the played step: where the replay is a little off, it is so before and after the change.
    saved = case.unprofiled_ns * (1 - changed.step_ns() / case.played_ns)
    raw = case.step_ns * (1 - changed.as_recorded().step_ns() / case.recorded_ns)
    also = following(case.unclaimed, owned, (max(saved, raw) - mine) * case.step_count, follow)
    case.claim(pl.concat([owned, also]))
    more = case.per_step(also)
    if more >= WORTH_A_SENTENCE * case.step_ns:
        told["follows"] = case.by_part(also)
        detail += (
            f" {duration(more)} beside it, mostly {_time_of(next(iter(told['follows'])))}, would go too."
        )
    return saving(case, code, mine + more, saved, raw, title, detail, told)


def _time_of(part: str) -> str:
    return "unexplained time" if part == "unexplained" else spoken(part)


def saving(
    case: Case,
    code: str,
    owned_ns: int,
    saved: float,
    raw: float,
    title: str,
    detail: str,
    evidence: dict[str, Any],
) -> Finding:
    """A finding with its time and speed-up; `raw` is what the steps as recorded would save."""
    length = case.unprofiled_ns
    saved = min(max(0.0, saved), MOST_SAVED * length, owned_ns)
    raw = min(max(0.0, raw), MOST_SAVED * case.step_ns, owned_ns)
    # Without the profiler's share the same time is more of the step; the bound is never below the estimate.
    bound = max(saved / length, raw / case.step_ns, min(owned_ns / case.step_ns, MOST_SAVED))
    of_all = case.step_count / max(1, len(case.lengths))
    return Finding(
        code=code,
        class_="time",
        title=title if case.device is not None else title.replace("The device waits", "The step waits"),
        detail=detail,
        fix=advice(code, case.trace.info.framework, case.has_device),
        evidence={**evidence, "speedup_as_recorded": round(case.step_ns / (case.step_ns - raw), 3)},
        share=round(owned_ns / case.step_ns, 4),
        saves_ns_per_step=int(saved * of_all),
        speedup=round(length / (length - saved), 3),
        speedup_max=round(1 / (1 - bound), 3),
    )


def of_part(
    case: Case,
    code: str,
    owned: pl.DataFrame,
    title: str,
    changed: Callable[[], Plan],
    least: float = WORTH_SHOWING,
    follow: Sequence[str] = FOLLOWING,
) -> Finding | None:
    """A finding that owns time of some part, if that is enough to tell; only then is the change looked at."""
    ns = case.per_step(owned)
    if ns < least * case.step_ns:
        return None
    names = case.top_names(owned)
    mostly = f", mostly in {names[0]['name']}" if names and names[0]["name"] else ""
    return timed(case, code, owned, changed(), title, f"{case.of_step(ns)}{mostly}.", follow=follow)
