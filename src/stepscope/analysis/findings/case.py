"""What the rules that make findings may ask about a rank.

Findings own disjoint slices of the account: a rule takes what no rule before it has claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.basis import RECORDED, Basis, step_basis
from stepscope.analysis.compute.account import ComputeAccount
from stepscope.analysis.cut_off import is_broken, is_cut
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.faults import Fault
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.ready_batches import is_of_workers, with_whole_waits
from stepscope.analysis.findings.spread import Spread, spread_of
from stepscope.analysis.findings.steps.slow_batches import find_slow_batches, with_slow_batches
from stepscope.analysis.findings.steps.times import StepTimes
from stepscope.analysis.host.functions import where
from stepscope.analysis.host.loops import Loops, find_loops
from stepscope.analysis.host.names import STAGES_COPY
from stepscope.analysis.host.place import Place
from stepscope.analysis.input_facts import input_facts
from stepscope.analysis.kernels.device_peaks import Peaks, peaks
from stepscope.analysis.memory import DeviceMemory
from stepscope.analysis.replay.plan import SPEEDS, USUAL, Plan
from stepscope.analysis.snapshot.explain import Explained
from stepscope.analysis.steps.find import Steps
from stepscope.analysis.steps.usual import usual
from stepscope.lazy import dataclass
from stepscope.native.host import replay as native
from stepscope.registers.calibration.profiler import (
    REPLAY_ERROR,
    REPLAY_ERROR_OF_DEVICE,
    REPLAY_ERROR_UNKNOWN_STEP,
)
from stepscope.registers.policy.capture import OTHER_STEPS
from stepscope.registers.policy.findings import (
    DECIDED_BY_DEVICE,
    MOST_SAVED,
    MOST_STEP_NOISE,
    NEARLY_ALL,
    PROMISE_NOISE,
    REPLAY_FITS,
    STEP_NOISE_SHARE,
    STEPS_TO_KNOW_WARM_UP,
    TOP_NAMES,
)
from stepscope.trace.lookup import is_named
from stepscope.trace.trace import Trace
from stepscope.units import duration, percent


@dataclass(frozen=True)
class Gain:
    """What a change brings: time saved per step, the speed-up of the job, and the step that is left."""

    saves_ns: int
    speedup: Interval
    left_ns: Interval | None


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
    plan_of: Callable[[], Plan]
    compute_of: Callable[[], ComputeAccount]
    snapshots: list[Explained] = field(default_factory=list)  # each device of a memory snapshot
    workload: str | None = None  # inference or training, where that is known
    earlier: list[Finding] = field(
        default_factory=list
    )  # found by the rules before; only `apply_rules` adds to it
    changes: dict[str, Change] = field(
        default_factory=dict
    )  # the fixes of those that a replay judged, by code
    of_slow_steps: set[str] = field(
        default_factory=set
    )  # codes of those that are about slow steps instead, of which no replay says anything
    claims: list[pl.Series] = field(default_factory=list)  # the slices of each claim, in their order
    owned: dict[str, list[pl.Series]] | None = None  # the claims of each finding, when the rules are applied
    faults: list[Fault] = field(default_factory=list)  # of rules that raised
    all_steps: StepTimes | None = None  # of the recording, where the case is about a sample of them

    @property
    def has_device(self) -> bool:
        """Whether there is one beside the host, recorded or only named."""
        return self.device is not None or bool(self.trace.info.devices)

    @property
    def is_tpu(self) -> bool:
        """Whether the devices are TPUs, which run programs as a whole."""
        return any(device.get("kind") == "tpu" for device in self.trace.info.devices)

    @property
    def runs_programs(self) -> bool:
        """Whether the framework runs whole compiled programs, not op by op."""
        return self.trace.info.framework in ("jax", "tensorflow")

    @cached_property
    def compute(self) -> ComputeAccount:
        """What the device's compute time went to."""
        return self.compute_of()

    @cached_property
    def staging(self) -> pl.Series:
        """Host events that stage copies to the device."""
        found: pl.Series = self.trace.events["id"].filter(is_named(self.trace.events, STAGES_COPY))
        return found

    @cached_property
    def loops(self) -> Loops:
        """Loops in Python that launch the same work again and again."""
        return find_loops(self.trace, on_host=self.device is None)

    @cached_property
    def own(self) -> StepTimes:
        """The steps that the case is about."""
        return StepTimes(self.trace, self.steps, self.account, self.device)

    @property
    def recorded(self) -> StepTimes:
        """All steps of the recording: how slow some of them are, and how long they are, is asked of these."""
        return self.all_steps or self.own

    @property
    def all_slices(self) -> pl.DataFrame:
        """The account of the device, with the length of each slice and the name that it is charged to."""
        return self.own.slices

    @property
    def lengths(self) -> pl.DataFrame:
        """step, ns of all steps of this device, in order."""
        return self.own.lengths

    @cached_property
    def outliers(self) -> pl.DataFrame:
        """Those of the steps that are slow among all that were recorded."""
        slow = self.recorded.outliers
        return (
            slow
            if self.all_steps is None
            else slow.filter(pl.col("step").is_in(self.lengths["step"].implode()))
        )

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
        """The usual steps, ready to be replayed without the profiler's share, with the batches and waits for them that the job has."""
        plan, extra = self._plan_with_waits, self.slow_batches_ns
        return with_slow_batches(plan, extra, self.basis_ns - plan.step_ns()) if extra else plan

    @cached_property
    def _plan_with_waits(self) -> Plan:
        basis = replace(self.basis, ns=self.basis_ns)
        return with_whole_waits(self._plan_of_recording, self.trace, basis, self.recorded.rhythm)

    @cached_property
    def slow_batches_ns(self) -> float:
        """What batches that take longer to make, as some do again and again, add to the mean step without the profiler."""
        return find_slow_batches(self.recorded) if self.basis.source != RECORDED else 0.0

    @cached_property
    def _plan_of_recording(self) -> Plan:
        usual = self.lengths["step"].is_in(self.outliers["step"].implode())
        return self.plan_of().counting([place for place, out in enumerate(usual) if not out])

    @cached_property
    def played(self) -> dict[str, float]:
        """A replayed step without any change, for each speed of the host."""
        return {speed: self.plan.at(speed).step_ns() for speed in SPEEDS}

    @property
    def played_ns(self) -> float:
        """The same, at the speed that is expected."""
        return self.played[USUAL]

    @cached_property
    def basis(self) -> Basis:
        """How long a step takes, over all whole steps of this device."""
        mean = self.recorded.mean_ns
        return step_basis(self.trace, self.step_ns if mean is None else mean, self.steps.source)

    @cached_property
    def basis_ns(self) -> float:
        """The same of a usual step."""
        if self.basis.source == RECORDED:
            return self.step_ns
        rhythm = self.recorded.rhythm
        if rhythm is None or not self.recorded.has_restarts:
            return self.basis.ns
        # The host's usual steps are shorter where the device has run dry before them: it works as long in each.
        work = self._plan_of_recording.busiest_ns() / max(1, len(self.lengths))
        return min(self.basis.ns, max(work, self.basis.ns * rhythm.usual_share))

    @cached_property
    def unprofiled_share(self) -> float:
        """What the profiler leaves of the basis: all where the capture timed that without it, else what the replay says, if it fits.

        A recording that lacks work of the device, or the end of its file, says nothing about it. The device works as long without it.
        """
        if self.basis.source != RECORDED or not self.replay_fits or self.is_broken or is_cut(self.trace):
            return 1.0
        least = self.work_ns(self.plan) / self.step_ns
        return min(1.0, max(least, self.played_ns / self.recorded_ns))

    @property
    def saved_of_ns(self) -> float:
        """The step that savings are a part of, without the profiler: the mean one, where recorded slow steps count as usual ones."""
        alike = self.basis.source == RECORDED and not self.recorded.has_restarts
        slow = alike and len(self.recorded.outliers) > 0
        return (self.recorded.usual_ns if slow else self.basis.ns) * self.unprofiled_share

    def gain(
        self,
        left: Interval,
        of_all: bool = False,
        code: str = "",
        work: float = 0.0,
        spread: Spread | None = None,
    ) -> Gain:
        """What it brings to leave so much of a usual step, or of all; nothing where the recording is broken, or of other steps.

        Slow steps are a finding of their own, and gain nothing from the others'. `code` is of the finding that promises it.
        `work`: the share of a usual step that surely stays, where that is known. `spread`: where it is another than that of the code.
        """
        if self.is_broken or self.basis.ns <= 0 or self._is_of_other_steps:
            return Gain(0, Interval(), None)
        left, usual = left.ordered(), 1.0 if of_all else self.recorded.usual_share
        # The less is left, the more of it was never seen alone.
        noise = self._noise + self._replay_error * (1 - left.mid) if left.mid < 1 else 0.0
        shares = [
            1 - usual * (1 - min(1.0, max(0.0, share * factor)))
            for share, factor in ((left.low, 1 - noise), (left.mid, 1.0), (left.high, 1 + noise))
        ]
        found = Interval(*(max(1 - MOST_SAVED, share) for share in shares))
        spread = spread or spread_of(code, self.device_decides)
        found = spread.around(found, 1 - usual * (1 - min(1.0, work)))
        low, mid, high = max(1 - MOST_SAVED, found.low), found.mid, found.high
        speedup = Interval(round(1 / high, 3), round(1 / mid, 3), round(1 / low, 3))
        ns = self.basis.ns * self.unprofiled_share if of_all else self.saved_of_ns
        return Gain(
            int(ns * (1 - mid)), speedup, Interval(round(low * ns), round(mid * ns), round(high * ns))
        )

    @cached_property
    def is_broken(self) -> bool:
        """Whether the recording lacks work of the device, so that nothing can be promised."""
        return is_broken(self.trace)

    @property
    def had_ready_batches(self) -> bool:
        """Whether recorded steps waited less for batches than those of the job, since some were ready when the recording began."""
        return self._plan_with_waits is not self._plan_of_recording

    @property
    def lacking_wait_ns(self) -> float:
        """How much longer steps of the job wait for batches than the recorded ones would without the profiler."""
        return max(0.0, self.basis_ns - self._plan_of_recording.step_ns()) if self.had_ready_batches else 0.0

    @cached_property
    def lacks_slow_steps(self) -> bool:
        """Whether slow steps that come back take most of the job's time, and none of them was recorded.

        A host that waits for the device now and then has them too: then the recorded steps, as replayed, are as long as the job's.
        Waits for workers that deliver together are known without being recorded.
        """
        rhythm = self.recorded.rhythm
        if rhythm is None or len(self.recorded.outliers) or len(self.recorded.lengths) >= rhythm.period:
            return False
        if self.recorded.noted_starts is not None or self.slow_batches_ns:
            return False
        if self.had_ready_batches and is_of_workers(input_facts(self.trace), rhythm):
            return False
        is_half = rhythm.mean_ns > OTHER_STEPS * rhythm.usual_ns
        return is_half and rhythm.mean_ns > OTHER_STEPS * self._plan_of_recording.step_ns()

    @cached_property
    def _is_of_other_steps(self) -> bool:
        """Whether the recorded steps are much shorter than those without the profiler: what held these up was not recorded."""
        recorded = self.recorded.mean_ns or self.step_ns
        if self.lacks_slow_steps:
            return True
        if self.had_ready_batches or self.recorded.noted_starts is not None or self.slow_batches_ns:
            return False
        return self.basis.source != RECORDED and self.basis.ns > OTHER_STEPS * recorded

    @cached_property
    def _noise(self) -> float:
        """How much steps differ anyway, on either side."""
        basis = self.basis
        if basis.low_ns is None or basis.high_ns is None:
            return PROMISE_NOISE
        spread = (basis.high_ns - basis.low_ns) / 2 / basis.ns
        return PROMISE_NOISE + min(MOST_STEP_NOISE, STEP_NOISE_SHARE * spread)

    @cached_property
    def device_decides(self) -> bool:
        """Whether the device works for most of the step."""
        work = int(self.plan.items["device_ns"].sum()) / max(1, len(self.lengths))
        return work >= DECIDED_BY_DEVICE * self.played_ns

    @cached_property
    def _replay_error(self) -> float:
        """How far a replayed step is from the true one: the device's work repeats, the host's does not."""
        if self.device_decides:
            return REPLAY_ERROR_OF_DEVICE
        return REPLAY_ERROR_UNKNOWN_STEP if self.basis.source == RECORDED else REPLAY_ERROR

    def work_ns(self, plan: Plan) -> float:
        """What the busiest stream of the device has to do in a step of the plan; work that begins before the end of other work overlaps with it."""
        return plan.busiest_ns() / max(1, len(self.lengths))

    def work_share(self, plan: Plan) -> float:
        """The same as a share of a usual step without the profiler, which promises are of."""
        usual_ns = self.basis_ns * self.unprofiled_share
        return min(1.0, self.work_ns(plan) / usual_ns) if usual_ns > 0 else 0.0

    @cached_property
    def recorded_ns(self) -> float:
        """A replayed step with the profiler's share."""
        return self.plan.as_recorded().step_ns()

    @cached_property
    def replay_fits(self) -> bool:
        """Whether the replayed steps are about as long as the recorded ones: else no promise can rest on them.

        They are not where other threads or processes decide, as in a profile without a device, nor where the launches of
        the device's work are not in the profile, as on a TPU.
        """
        if not (self.plan.items["kind"] == native.WORK).any():
            return False
        fits = self.played_ns > 0 and abs(self.recorded_ns / self.step_ns - 1) <= REPLAY_FITS
        return fits and self.device is not None

    @cached_property
    def peaks(self) -> Peaks | None:
        """What the device can do at best, where that is known."""
        found = [peaks(one) for one in self.trace.info.devices]
        return next((one for one in found if one is not None), None)

    def has_found(self, code: str) -> bool:
        """Whether an earlier rule made a finding of this code."""
        return any(finding.code == code for finding in self.earlier)

    def free(self, *matches: pl.Expr) -> pl.DataFrame:
        """The matching slices that no finding owns yet."""
        return self.unclaimed.filter(*matches)

    def claim(self, owned: pl.DataFrame) -> None:
        """These slices belong to a finding now."""
        taken = pl.repeat(False, len(self.all_slices), dtype=pl.Boolean, eager=True).scatter(
            owned["slice"], True
        )
        mine = taken.gather(self.unclaimed["slice"])
        self.claims.append(self.unclaimed["slice"].filter(mine))
        self.unclaimed = self.unclaimed.filter(~mine)

    def per_step(self, owned: pl.DataFrame) -> int:
        """Time of these slices per step."""
        return int(int(owned["ns"].sum()) / self.step_count)

    def is_of_one_step(self, owned: pl.DataFrame) -> bool:
        """Whether nearly all of this happened in a single one of several steps: an event of the recording, not of the job."""
        by_step = owned.group_by("step").agg(pl.col("ns").sum())["ns"]
        most = int(by_step.sort()[-1]) if len(by_step) else 0
        return self.step_count >= STEPS_TO_KNOW_WARM_UP and most > NEARLY_ALL * int(by_step.sum())

    def top_names(
        self, owned: pl.DataFrame, count: int = TOP_NAMES, steps: int | None = None
    ) -> list[dict[str, Any]]:
        """The names that the time is charged to, largest first; `steps` are those that it is from, if not the usual ones."""
        summed = owned.group_by("name").agg(pl.col("ns").sum()).cast({"name": pl.String})
        ranked = summed.sort(["ns", "name"], descending=[True, False])
        return [
            {"name": name, "ns_per_step": int(ns / (steps or self.step_count))}
            for name, ns in ranked.head(count).iter_rows()
        ]

    def places(self, owned: pl.DataFrame, count: int = TOP_NAMES) -> list[Place]:
        """Where in the program the time is charged to, largest first: frames, or the frames around them."""
        summed = (
            owned.group_by("named_by")
            .agg(pl.col("ns").sum())
            .sort(["ns", "named_by"], descending=[True, False])
        )
        return where(self.trace, summed["named_by"])[:count]

    def by_part(self, owned: pl.DataFrame) -> dict[str, int]:
        """Time of these slices per step, by part, largest first."""
        summed = owned.group_by("part").agg(pl.col("ns").sum()).cast({"part": pl.String})
        ranked = summed.sort(["ns", "part"], descending=[True, False])
        return {part: int(ns / self.step_count) for part, ns in ranked.iter_rows()}

    def of_step(self, ns: float) -> str:
        """`ns` in words: how long, and which share of the step; of the recording, if that has no steps."""
        if self.steps.is_whole:
            return f"{duration(ns)} of {duration(self.step_ns)} ({percent(ns / self.step_ns)})"
        which = "step that is not slow" if len(self.recorded.outliers) else "step"
        return f"{duration(ns)} of {duration(self.step_ns)} per {which} ({percent(ns / self.step_ns)})"
