"""One rank's trace with what several sections ask of it, computed once and only if it is asked for."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping
from dataclasses import field, replace
from typing import cast
from weakref import ref

import polars as pl

from stepscope.analysis.account.account import Account, account
from stepscope.analysis.compute.account import ComputeAccount, compute_account
from stepscope.analysis.critical_path import CriticalPath, critical_path
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.steps.times import StepTimes
from stepscope.analysis.host.causes import share_causes
from stepscope.analysis.kernels.calls import kernel_calls
from stepscope.analysis.memory import DeviceMemory, memory_use
from stepscope.analysis.once import shared
from stepscope.analysis.ops.calls import op_calls
from stepscope.analysis.options import Options
from stepscope.analysis.replay.light import LightHost, NotJoined, join_light
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.replay.unprofiled_host import plan
from stepscope.analysis.serving.workload import Workload, workload
from stepscope.analysis.snapshot.device_memory import memory_of_snapshot
from stepscope.analysis.snapshot.explain import Explained, explain
from stepscope.analysis.steps.find import Steps, find_steps, steps_of_events
from stepscope.analysis.steps.inside import cut_to_windows
from stepscope.analysis.steps.sample import Excerpt, Sample, choose_sample, cut_sample
from stepscope.lazy import dataclass
from stepscope.profiles.light import read_light
from stepscope.trace.graphs import captures, is_graph_launch, named_by_captures
from stepscope.trace.trace import Trace


@dataclass
class RankContext:
    """What a section may use of one rank; `alone` if there is no other to compare it with.

    `in_brief`: one of many, of which only what all ranks are compared by is asked.
    """

    rank: int
    whole_trace: Trace
    options: Options
    alone: bool = False
    in_brief: bool = False

    @shared
    def all_steps(self) -> Steps:
        """All steps of the rank, also those that do not count."""
        options = self.options
        return find_steps(self.whole_trace, options.step_name, options.whole, options.region)

    @shared
    def steps(self) -> Steps:
        """The steps that count."""
        if self.options.steps is None or self.all_steps.is_whole:
            return self.all_steps
        wanted = pl.col("step").is_in(self._wanted())
        found = self.all_steps
        return replace(found, host=found.host.filter(wanted), windows=found.windows.filter(wanted))

    @shared
    def named_trace(self) -> Trace:
        """The whole trace; work of graphs that were captured in it has the names of its capture."""
        if not is_graph_launch(self.whole_trace.events).any():
            return self.whole_trace
        return named_by_captures(self.whole_trace, captures(self.whole_trace))

    @shared
    def trace(self) -> Trace:
        """The trace, in which an event belongs to a step if that step counts."""
        found, whole = self.all_steps, self.named_trace
        if found.windows.is_empty():
            return whole
        step = steps_of_events(whole, found.host, found.windows)
        if self.options.steps is not None:
            step = pl.select(pl.when(step.is_in(self._wanted())).then(step)).to_series()
        derived = with_events(whole, whole.events.with_columns(step=step))
        return share_causes(whole, derived) if whole is self.whole_trace else derived

    @shared
    def work(self) -> Trace:
        """The trace, in which device work takes the time that it ran inside the windows, and is of the step it ran in.

        Tables are made of it: they cover the same time of a device as the account.
        """
        trace = self.trace
        if self.windows.windows.is_empty():
            return trace
        return with_events(trace, cut_to_windows(trace, self.windows.windows, trace.events["step"]))

    @shared
    def windows(self) -> Steps:
        """The steps that count, or one window over the whole recording for each device."""
        return self.steps

    @shared
    def account(self) -> Account:
        """The account of the windows. It is made over all steps: a gap may begin in one that does not count."""
        if self.options.steps is None or self.all_steps.windows.is_empty():
            return account(self.whole_trace, self.windows)
        whole = account(self.whole_trace, self.all_steps)
        return replace(whole, slices=whole.slices.filter(pl.col("step").is_in(self._wanted())))

    @shared
    def parts(self) -> pl.DataFrame:
        """device, step, part, ns."""
        return self.account.parts

    @shared
    def critical_device(self) -> int | None:
        """The device that the others wait for: the one that computes most."""
        devices = self.windows.windows["device"]
        if devices.n_unique() == 1:  # known before the account is
            return cast("int | None", devices[0])
        computing = self.parts.filter(pl.col("part").is_in(["compute", "host_compute"]))
        ranked = (
            computing.group_by("device")
            .agg(pl.col("ns").sum())
            .sort(["ns", "device"], descending=[True, False])
        )
        return cast("int | None", ranked["device"][0] if len(ranked) else devices.min())

    @shared
    def light(self) -> LightHost | NotJoined | None:
        """The host's time by the light window, or why that cannot be used; None where none was recorded."""
        found = read_light(self.whole_trace)
        if found is None or isinstance(found, str):
            return None if found is None else NotJoined(found)
        return join_light(self.trace, self.steps, found.trace, found.moments)

    @shared
    def plan(self) -> Plan:
        """The steps on the critical device, ready to be replayed."""
        light = self.light if isinstance(self.light, LightHost) else None
        return plan(self.trace, self.steps, self.critical_device, light)

    @shared
    def critical_path(self) -> CriticalPath:
        """What decided how long each step took on the critical device."""
        device, slices = self.critical_device, self.account.slices
        return critical_path(self.trace, self.windows, device, lambda: self.plan, slices)

    @shared
    def op_calls(self) -> pl.DataFrame:
        """One row per call of an op."""
        return op_calls(self.work)

    @shared
    def kernel_calls(self) -> pl.DataFrame:
        """One row per kernel inside the steps."""
        return kernel_calls(self.work)

    @shared
    def compute(self) -> ComputeAccount:
        """The account of compute: what it needs at best, and where the rest is lost."""
        return compute_account(self.work, self.account, self.kernel_calls, self.op_calls)

    @shared
    def case(self) -> Case:
        """What the rules may ask about the rank, shared by all callers; it must have steps, or one window over the whole recording."""
        context = ref(self)  # no circle: what a rank needed is let go at once
        return Case(
            trace=self.trace,
            steps=self.steps,
            account=self.account,
            device=self.critical_device,
            memory=self.memory,
            snapshots=self.snapshots,
            kernels=self.kernel_calls,
            ops=self.op_calls,
            plan_of=lambda: cast("RankContext", context()).plan,
            compute_of=lambda: cast("RankContext", context()).compute,
            workload=self.workload.kind,
            all_steps=self.recorded_steps,
        )

    @shared
    def recorded_steps(self) -> StepTimes | None:
        """All steps, of a context that is about a sample of them."""
        return None

    @shared
    def sample(self) -> Sample | None:
        """The consecutive steps that findings are made of; None where they are made of all.

        What ranks do to each other is a matter of all their steps, and so is what a light window says.
        """
        is_asked_for = self.options.steps is not None
        if not self.alone or is_asked_for or self.steps.is_whole or self.light is not None:
            return None
        mine = pl.col("device").eq_missing(self.critical_device)
        windows = self.steps.windows.filter(mine)
        return choose_sample(self.parts.filter(mine), windows, self.whole_trace.events.height)

    @shared
    def sampled(self) -> RankContext:
        """The context of the sample, or this one."""
        if self.sample is None:
            return self
        found = cut_sample(self.named_trace, self.all_steps, self.sample)
        options = replace(self.options, steps=(self.sample.first, self.sample.last))
        return SampledContext(self.rank, found.trace, options, self.alone, excerpt=found, whole=ref(self))

    @shared
    def workload(self) -> Workload:
        """Whether the rank shows inference or training."""
        return workload(self.whole_trace)

    @shared
    def memory(self) -> list[DeviceMemory]:
        """The memory of each device."""
        if self.snapshots:
            return [memory_of_snapshot(self.whole_trace, found) for found in self.snapshots]
        return memory_use(self.trace, self.steps)

    @shared
    def snapshots(self) -> list[Explained]:
        """Each device of a memory snapshot, explained; none of any other profile."""
        return explain(self.whole_trace)

    @shared
    def thread_names(self) -> pl.Series:
        """For every track, by its id, what to call it; the thread that marks the steps is `main thread`."""
        tracks = self.trace.tracks.sort("id")
        main = self.steps.host["track"][0] if len(self.steps.host) else None
        text = pl.coalesce("thread", "process", pl.lit("unknown thread"))
        prefix = pl.when((pl.col("what") == "device") & pl.col("device").is_not_null())
        named = prefix.then(pl.format("device {} {}", "device", text)).otherwise(text)
        is_main = pl.col("id").eq_missing(pl.lit(main, dtype=pl.UInt32)) & pl.lit(main is not None)
        return tracks.select(
            pl.when(is_main).then(pl.lit("main thread")).otherwise(named).alias("thread")
        ).to_series()

    def _wanted(self) -> list[int]:
        found = self.all_steps.windows["step"].unique().to_list()
        return found if self.all_steps.is_whole else [step for step in found if self.options.wants(step)]


@dataclass
class SampledContext(RankContext):
    """Some consecutive steps of a long recording. What a few steps cannot show is asked of all."""

    excerpt: Excerpt = field(kw_only=True)
    whole: ref[RankContext] = field(kw_only=True)

    @shared
    def all_steps(self) -> Steps:
        """The steps of the excerpt, with one before and one after them."""
        return self.excerpt.steps

    @shared
    def account(self) -> Account:
        """That of all steps, as far as it is about these."""
        slices = self._of_all().account.slices.filter(pl.col("step").is_in(self._wanted()))
        return Account(self.excerpt.renumber(slices))

    @shared
    def critical_device(self) -> int | None:
        """That of all steps."""
        return self._of_all().critical_device

    @shared
    def light(self) -> None:
        """There is none."""

    @shared
    def memory(self) -> list[DeviceMemory]:
        """Of the whole recording: it grows from step to step."""
        return self._of_all().memory

    @shared
    def snapshots(self) -> list[Explained]:
        """Those of the recording."""
        return self._of_all().snapshots

    @shared
    def workload(self) -> Workload:
        """By the whole recording."""
        return self._of_all().workload

    @shared
    def recorded_steps(self) -> StepTimes | None:
        """All steps that were recorded."""
        whole = self._of_all()
        return StepTimes(whole.trace, whole.steps, whole.account, whole.critical_device)

    def _of_all(self) -> RankContext:
        return cast("RankContext", self.whole())


def with_events(trace: Trace, events: pl.DataFrame) -> Trace:
    """The trace with another table of events, whose rows are the same."""
    tables = cast("MutableMapping[str, pl.DataFrame]", trace.tables)
    return Trace.over(ChainMap({"events": events}, tables), trace.cold)
