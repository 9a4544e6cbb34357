"""One rank's trace with what several sections ask of it, computed once and only if it is asked for."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from typing import cast

import polars as pl

from stepscope.analysis.account.account import Account, account
from stepscope.analysis.kernels.calls import kernel_calls
from stepscope.analysis.memory import DeviceMemory, memory_use
from stepscope.analysis.once import shared
from stepscope.analysis.ops.calls import op_calls
from stepscope.analysis.options import Options
from stepscope.analysis.replay.plan import Plan, plan
from stepscope.analysis.steps.find import Steps, devices_with_work, find_steps, steps_of_events
from stepscope.trace.trace import Trace

WHOLE = 0  # the number of the window that stands for the whole recording where there are no steps


@dataclass
class RankContext:
    """What a section may use of one rank; `alone` if there is no other to compare it with."""

    rank: int
    whole_trace: Trace
    options: Options
    alone: bool = False

    @shared
    def all_steps(self) -> Steps:
        """All steps of the rank, also those that do not count."""
        return find_steps(self.whole_trace, self.options.step_name)

    @shared
    def steps(self) -> Steps:
        """The steps that count."""
        if self.options.steps is None:
            return self.all_steps
        wanted = pl.col("step").is_in(self._wanted())
        found = self.all_steps
        return replace(found, host=found.host.filter(wanted), windows=found.windows.filter(wanted))

    @shared
    def trace(self) -> Trace:
        """The trace, in which an event belongs to a step if that step counts."""
        found, whole = self.all_steps, self.whole_trace
        is_marked = found.source in ("marker", "none")  # the readers saw to it
        if is_marked and self.options.steps is None:
            return whole
        step = whole.events["step"] if is_marked else steps_of_events(whole, found.host)
        counts = step.is_in(self._wanted())
        events = whole.events.with_columns(step=pl.select(pl.when(counts).then(step)).to_series())
        tables = cast("MutableMapping[str, pl.DataFrame]", whole.tables)
        return Trace.over(ChainMap({"events": events}, tables), whole.cold)

    @shared
    def windows(self) -> Steps:
        """The steps that count; without any, one window over the whole recording for each device."""
        if len(self.all_steps.windows):
            return self.steps
        return replace(self.steps, windows=self._whole())

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
    def plan(self) -> Plan:
        """The steps on the critical device, ready to be played again."""
        return plan(self.trace, self.steps, self.critical_device)

    @shared
    def op_calls(self) -> pl.DataFrame:
        """One row per call of an op."""
        return op_calls(self.trace)

    @shared
    def kernel_calls(self) -> pl.DataFrame:
        """One row per kernel inside the steps."""
        return kernel_calls(self.trace)

    @shared
    def memory(self) -> list[DeviceMemory]:
        """The memory of each device."""
        return memory_use(self.trace, self.steps)

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
        return [step for step in self.all_steps.windows["step"].unique() if self.options.wants(step)]

    def _whole(self) -> pl.DataFrame:
        events = self.trace.events
        low = events["start_ns"].min() or 0
        high = (events["start_ns"] + events["dur_ns"]).max() or low
        devices: list[int | None] = [*devices_with_work(self.trace)] or [None]
        rows = [
            {"device": device, "step": WHOLE, "start_ns": low, "end_ns": high, "partial": False}
            for device in devices
        ]
        return pl.DataFrame(rows, schema=dict(self.steps.windows.schema))
