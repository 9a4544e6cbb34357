"""Two runs to be compared: what of them can be, and what their rows are judged by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from stepscope.analysis.parts import PARTS
from stepscope.diffs.comparable import (
    describe_run,
    do_both_have_steps,
    do_steps_wait,
    have_same_framework,
    have_same_versions,
)
from stepscope.diffs.data.model import Batch, Run
from stepscope.diffs.data.samples import Side
from stepscope.diffs.explain.batch import detect_batch
from stepscope.diffs.explain.call_counts import find_sporadic_ops
from stepscope.diffs.explain.programs import measure_overlap
from stepscope.diffs.noise.crossed import Layout
from stepscope.diffs.noise.judge import Ground, Measured, measure_step
from stepscope.diffs.noise.machine_speed import DEVICE, HOST, Speeds, estimate_speeds, find_clock
from stepscope.diffs.noise.same_recording import is_same_recording
from stepscope.registers.policy.diffs import SAME_CODE


@dataclass(frozen=True)
class Case:
    """The two sides of a diff."""

    a: Side
    b: Side

    @cached_property
    def runs(self) -> tuple[Run, Run]:
        """Both in a few words."""
        return describe_run(self.a), describe_run(self.b)

    @cached_property
    def compares_names(self) -> bool:
        """Whether names mean the same in both."""
        return have_same_framework(*self.runs)

    @cached_property
    def compares_steps(self) -> bool:
        """Whether steps are compared with steps, or whole recordings with whole recordings."""
        return do_both_have_steps(*self.runs)

    @cached_property
    def compares_parts(self) -> bool:
        """Whether what happens in a step is that step's work."""
        return self.compares_steps and do_steps_wait(self.a, self.b)

    @cached_property
    def compares_ops(self) -> bool:
        """Whether ops and kernels of both can be matched."""
        return self.compares_names and self.compares_parts

    @cached_property
    def compares_code(self) -> bool:
        """Whether functions and scopes of one run can be expected in the other."""
        return self.compares_ops and have_same_versions(*self.runs)

    @cached_property
    def batch(self) -> Batch | None:
        """Another batch size, where shapes or the input pipeline show one."""
        return detect_batch(self.a, self.b) if self.compares_ops else None

    @cached_property
    def common_calls(self) -> float | None:
        """The share of calls that both runs make; None where that is unknown, or ops cannot be matched."""
        if not self.compares_ops:
            return None
        return measure_overlap(self.a.samples, self.b.samples, same_batch=self.batch is None)

    @property
    def are_two_programs(self) -> bool:
        """Whether most of what one run does, the other does not."""
        return self.common_calls is not None and self.common_calls < SAME_CODE

    @cached_property
    def ground(self) -> Ground:
        """In one recording host and device were equally fast on both sides; two programs, and a single step, do not show the speed of the machine."""
        a, b = self.a.samples, self.b.samples
        is_exact = is_same_recording(self.a, self.b)
        has_steps = all(Layout(side.cells).shows_noise for side in (a, b))
        shows_speed = has_steps and not (is_exact or self.are_two_programs)
        speeds = estimate_speeds(a, b, same_work=self.batch is None) if shows_speed else Speeds()
        return Ground(a, b, speeds, is_exact)

    @cached_property
    def measure(self) -> str:
        """The clock that ops are compared by: the device's where both runs have device time, else the host's."""
        has_device = all(side.ops["device_ns"].sum() for side in (self.ground.a, self.ground.b))
        return DEVICE if has_device else HOST

    @cached_property
    def sporadic(self) -> set[str]:
        """Ops that are recorded only now and then."""
        return find_sporadic_ops(self.ground, self.runs[0].framework, self.measure)

    @cached_property
    def step(self) -> Measured:
        """The mean step."""
        return measure_step(self.ground, {part: find_clock(part) for part in PARTS})
