"""`Profiler` and `profile`: record some steps of any training loop, and never get in its way."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import Any

from stepscope.capture.annotate.annotate import Annotation, Function, look_for_torch
from stepscope.capture.annotate.nvtx import ranges
from stepscope.capture.backends import detect, exclusive, light_of, out_of_memory
from stepscope.capture.backends.base import Options
from stepscope.capture.backends.waits import wait_for_devices
from stepscope.capture.files.published import Published
from stepscope.capture.files.retention import Keep, Retention, limits
from stepscope.capture.light import DECIDED_AFTER, NO_GPU, WARMED_UP, LightSteps, unrecorded
from stepscope.capture.loop.input import Batch, Input, Waits
from stepscope.capture.loop.loader_starts import LoaderStarts
from stepscope.capture.process import active
from stepscope.capture.process.exits import Exits
from stepscope.capture.process.framework_use import forget, when_in_use
from stepscope.capture.process.guarded import guarded_method
from stepscope.capture.process.step_times import KEPT, StepTimes
from stepscope.capture.process.troubles import Troubles, trouble
from stepscope.capture.profiler_ring import ProfilerRing
from stepscope.capture.regions import Regions
from stepscope.capture.schedule import NEVER, Phase, Schedule, from_now
from stepscope.capture.settings import Settings
from stepscope.capture.unprofiled import UnprofiledRuns
from stepscope.capture.window import Window


class Profiler:
    """Records windows of steps into a folder.

    Without a schedule, recording begins with start() and ends with stop(), after at most 20 steps. With `regions`, only what
    runs inside `region(name)` is recorded: all regions, or those named.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        schedule: Schedule | None = None,
        memory: bool = True,
        shapes: bool = True,
        stacks: bool = True,
        flops: bool = True,
        backends: Collection[str] | None = None,
        regions: bool | Collection[str] = False,
        sync: bool = True,
        telemetry: bool = True,
        nvtx: bool = False,
        packed: bool = False,
        worker: str | None = None,
        keep: Keep = "newest",
        light: bool = True,
    ) -> None:
        self.folder = Path(folder)
        self._schedule = schedule or from_now()
        self._settings = Settings(
            folder=self.folder.absolute(),
            options=Options(
                memory, shapes, stacks, flops, sync, packed=packed, detach=self._schedule.leaves_room
            ),
            backends=None if backends is None else tuple(backends),
            telemetry=telemetry,
            worker=worker,
        )
        self._regions = Regions(regions)
        self._nvtx = nvtx
        self._remade = functools.partial(
            Profiler, folder, schedule=schedule, memory=memory, shapes=shapes, stacks=stacks, flops=flops,
            backends=backends, regions=regions, sync=sync, telemetry=telemetry, nvtx=nvtx, packed=packed, worker=worker,
            keep=keep, light=light,
        )  # fmt: skip
        exclusive.watch()
        self._troubles = Troubles()
        self._retention = Retention(limits(keep, is_endless=self._schedule.repeat == 0), self._troubles)
        self._exits = Exits(self.stop)
        self._is_inert = self._is_busy = self._is_running = False
        self._next = self._memory_look = NEVER
        self._phase: Phase = "off"
        self._window: Window | None = None
        self._warm: Window | None = None
        self._count_from(0)
        self._ring = ProfilerRing(lambda: (self._number, self._recent))
        self._after_first: int | None = None
        self._pending: list[Published] = []
        self._published: list[Published] = []
        self._phases: dict[str, dict[str, int]] = {}
        self._waits = Waits()
        self._starts = LoaderStarts(lambda: self._number)
        self._runs = UnprofiledRuns(self._wait_for_devices)
        self._runs_around: dict[str, Any] | None = None
        self._light = LightSteps(is_wanted=light)

    # ---- what the loop calls

    def step(self) -> None:
        """End the current step and begin the next."""
        if not self._is_running:
            return
        self._recent.append(perf_counter_ns())
        self._number += 1
        if self._number >= self._next or self._window is not None:
            self._step()

    @guarded_method
    def start(self) -> None:
        """Start recording: at once, or according to the schedule."""
        if not self._may_start():
            return
        self._is_running = True
        active.profiler = self
        look_for_torch()
        if self._settings.options.memory:
            out_of_memory.watch.start(self._settings.folder)
            self._memory_look = out_of_memory.watch.look(0)
        if self._nvtx:
            active.nvtx = ranges(self._troubles)
        self._exits.watch()
        self._starts.open()
        self._after_first = None
        self._count_from(0)
        self._ring.open(self._settings, self._troubles)
        self._enter(self._schedule.phase(0))
        if self._settings.backends is None:
            when_in_use(self._attach)

    @guarded_method
    def warmup(self) -> None:
        """Prepare the collectors now, so that start() does not have to."""
        if not self._is_running and self._window is None and self._warm is None:
            self._warm = Window(self._settings, 0, self._troubles)
            self._warm.warm_up()

    @guarded_method
    def stop(self) -> None:
        """Stop recording and write what was recorded. Calling it again, or without start(), does nothing."""
        if not self._is_running:
            if self._warm is not None:
                self._warm.abandon()
                self._warm = None
            return
        self._is_running = False
        self._exits.unwatch()
        forget(self._attach)
        try:
            self._leave()
            self._note_after()
        finally:
            out_of_memory.watch.stop()
            self._ring.close()
            self._waits.forget()
            self._starts.close()
            if active.profiler is self:
                active.profiler, active.nvtx = None, None

    @contextmanager
    def region(self, name: str) -> Iterator[None]:
        """A part of the loop by name. With `regions=`, or before start(), nothing else is recorded."""
        selected = self._enter_region(name)
        try:
            with Annotation(name):
                yield
        finally:
            if selected:
                self._leave_region()

    def input(self, loader: Iterable[Batch]) -> Input[Batch]:
        """The same loader, with the wait for each batch marked as input."""
        return Input(loader, self._waits)

    # ---- afterwards

    @property
    def files(self) -> list[Path]:
        """The traces written so far."""
        return [each.trace for each in self._published if each.trace is not None]

    @property
    def problems(self) -> list[dict[str, Any]]:
        """What went wrong, as recorded in the sidecar."""
        return self._troubles.rows()

    @property
    def phases(self) -> dict[str, dict[str, int]]:
        """Calls and total time of each annotation and region in the last window."""
        return dict(self._phases)

    def summary(self) -> str:
        """The phases of the last window, longest first, one per line."""
        rows = sorted(self._phases.items(), key=lambda item: -item[1]["total_ns"])
        lines = [
            f"{name:<32} {row['calls']:>7} calls {row['total_ns'] / 1e6:>12.3f} ms"
            f" {row['total_ns'] / 1e6 / max(1, row['calls']):>12.3f} ms each"
            for name, row in rows
        ]
        return "\n".join(lines)

    def report(self, **options: Any) -> Any:
        """The report on the last recording. None, with a warning, if there is nothing to report."""
        self.stop()
        if not self.files:
            self._troubles.add(trouble("nothing-recorded"))
            return None
        import stepscope

        return stepscope.report(str(self.files[-1]), **options)

    # ---- context manager and decorator

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.is_ending = error is not None
        self.stop()

    def __call__(self, function: Function) -> Function:
        """Each call of the function is recorded on its own."""

        @functools.wraps(function)
        def recorded(*arguments: Any, **options: Any) -> Any:
            with self._remade():
                return function(*arguments, **options)

        return recorded  # type: ignore[return-value]

    def give_way_to(self, other: Profiler) -> bool:
        """Whether this one has stopped so that the other can record. What the job started itself does not."""
        return False

    def become_inert(self) -> None:
        """In a forked child: do nothing any more."""
        self._is_inert, self._is_running = True, False
        self._ring.become_inert()

    # ---- inside

    def _count_from(self, number: int) -> None:
        """The step that begins now has this number."""
        self._number = number
        self._times = StepTimes(perf_counter_ns())
        self._recent = self._times.recent

    def _may_start(self) -> bool:
        if self._is_running:
            self._troubles.add(trouble("started-twice"))
            return False
        if active.profiler is not None and not active.profiler.give_way_to(self):
            self._troubles.add(
                trouble(
                    "second-profiler",
                    f"It records into {active.profiler.folder}; this one records nothing.",
                    case="own",
                )
            )
            return False
        return True

    @guarded_method
    def _step(self) -> None:
        window = self._window
        if window is not None:
            self._ring.step_ended(self._number - 1, self._recent[-1])
        if window is not None and not self._regions.is_on:
            window.end_step()
        if self._number >= self._next:
            self._change()
        if window is not None and window is self._window and not self._regions.is_on:
            window.begin_step(self._number)
        if active.on_step is not None and active.profiler is self:
            active.on_step(self._number)

    def hear_on_step(self) -> None:
        """Someone waits for the next step: `active.on_step` is called from there on. May be called from any thread."""
        self._next = 0

    @property
    def is_recording(self) -> bool:
        """Whether a window is open or about to open."""
        return self._phase != "off" or self._light.is_open

    @property
    def number(self) -> int:
        """The number of steps completed since start()."""
        return self._number

    @guarded_method
    def _attach(self, name: str) -> None:
        """A framework is in use that was not when the window opened: imported in a later cell of a notebook, for example."""
        if self._window is not None:
            self._window.attach(name)

    def _wait_for_devices(self) -> bool:
        """Whether the devices have nothing left to do."""
        if not self._settings.options.sync:
            return False
        return wait_for_devices(self._settings.backends or detect())

    def _plan_run(self, number: int) -> None:
        """Steps go unprofiled from `number` on: when to time a run of them. Regions leave no run of steps that touch."""
        if self._regions.is_on:
            self._runs.give_up()
        elif self._pending:
            self._runs.plan_after(number, self._recorded_from())
        else:
            self._runs.plan_before(number, self._recorded_from())

    def _recorded_from(self) -> int:
        """The step from which on nothing is unprofiled."""
        return min(self._schedule.next_change(self._number), self._light.first)

    def _reach_light(self) -> None:
        """Do what is to be done for the light window when this step begins. Inside it nothing is: steps cost what they cost."""
        point = self._light.reach(self._number)
        if point == "decide":
            self._decide_on_light()
        elif point == "warmup":
            self._warm_up_light()
        elif point == "start" and self._warm is not None:
            self._warm.start_light()
            self._times.restart(perf_counter_ns())
        elif point == "end" and self._warm is not None:
            moments = list(self._recent)
            self._warm.finish_light(self._number - len(moments) + 1, moments)
            self._times.restart(perf_counter_ns())
        self._recent = self._times.recent

    def _decide_on_light(self) -> None:
        """After the first steps the devices are known, and the unprofiled run has not begun."""
        if self._warm is not None:
            self._light.give_up(WARMED_UP)
        elif light_of(self._settings.backends or detect()) is None:
            self._light.give_up(NO_GPU)
        else:
            self._light.take_steps()
            self._plan_run(self._number - DECIDED_AFTER)

    def _warm_up_light(self) -> None:
        self._note_after()
        if active.provisional is not None:
            active.provisional(self)
        self._warm = Window(self._settings, self._schedule.window(self._number), self._troubles)
        self._warm.warm_up_light()
        self._times.cut_before(self._number, perf_counter_ns())

    def _change(self) -> None:
        """Something else has to be done from this step on."""
        self._ring.look_at_steps()
        if self._number >= self._memory_look and not self.is_recording:
            self._memory_look = out_of_memory.watch.look(self._number)
        if self._runs.reach(self._number, self._recent, perf_counter_ns) and self._runs.after is not None:
            self._runs_around = self._runs.rows()
            self._runs.forget()
            self._runs.plan_before(self._number, self._recorded_from(), skipped=0)
        self._reach_light()
        after = self._schedule.phase(self._number)
        is_other_window = (
            self._window is not None and self._schedule.window(self._number) != self._window.number
        )
        if self._phase == "record" and (after != "record" or is_other_window):
            self._leave()
        if self._phase != after or is_other_window:
            if after != "off":
                self._note_after()
            self._enter(after)
        else:
            if self._after_first is None or self._number >= self._after_first + KEPT:
                self._note_after()
            self._plan()

    def _enter(self, phase: Phase) -> None:
        was = self._phase
        if phase == "off":
            self._phase = phase
            self._light.plan(self._number, self._schedule, has_regions=self._regions.is_on)
            self._plan_run(self._number)
            self._plan()
            return
        self._runs.close(self._number, self._recent, perf_counter_ns)
        if active.provisional is not None:
            active.provisional(self)
        if self._warm is None:
            self._warm = Window(self._settings, self._schedule.window(self._number), self._troubles)
        if phase == "warmup":
            self._warm.warm_up()
            self._times.enter_warmup(self._number, perf_counter_ns())
        else:
            self._open(was)
        self._recent = self._times.recent
        self._phase = phase
        self._plan()

    def _open(self, was: Phase) -> None:
        window, self._warm = self._warm, None
        assert window is not None
        window.start(self._ring.enter_window())
        self._ring.mark(self._number)
        self._waits.open()
        self._times.enter_window(self._number, perf_counter_ns(), was_warmup=was == "warmup")
        self._window = window
        if self._regions.is_on:
            window.pause()
        else:
            window.begin_step(self._number)

    def _leave(self) -> None:
        """The window is over: write it, and time the steps that follow."""
        if self._warm is not None:
            self._warm.abandon()
            self._warm = None
        window, self._window = self._window, None
        self._phase = "off"
        if window is None:
            return
        if window.last_step is None and self._after_first == self._number:
            window.abandon()  # it touches the one before, and the loop ended between the two
            self._regions.forget_open()
            self._ring.leave_window(self._published)
            return
        self._after_first = self._number
        noted: dict[str, Any] = {"input": self._waits.close(), "regions": self._regions.taken()}
        noted |= {"unprofiled": self._runs.rows(), "light": unrecorded(self._light.reason)}
        noted["loader_starts"] = self._starts.rows()
        self._times.close_window(self._number)
        self._pending = window.finish(lambda: self._times.rows(self._number), noted, self._exits.is_ending)
        gone = self._retention.add(self._pending)
        self._published = [each for each in (*self._published, *self._pending) if each not in gone]
        self._ring.leave_window(self._pending)
        for each in self._pending if gone else ():
            each.update(problems=self._troubles.rows())
        if self._pending:
            self._phases = self._pending[-1].note["phases"]
        self._times.leave_window(perf_counter_ns())
        self._recent = self._times.recent

    def _plan(self) -> None:
        """When step() has to look again."""
        self._next = min(
            self._schedule.next_change(self._number), self._runs.next_point, self._light.next_point
        )
        if not self.is_recording:  # steps of a window cost what they cost
            self._next = min(self._next, self._memory_look)
        if self._pending and self._after_first is not None:
            self._next = min(self._next, self._after_first + KEPT)
        if active.on_step is not None and active.profiler is self:
            self._next = self._number + 1

    def _note_after(self) -> None:
        """The sidecars of the last window learn how long the steps after it took."""
        pending, self._pending = self._pending, []
        if pending:
            self._runs.close_after(self._number, self._recent, perf_counter_ns)
        if self._after_first is not None and self._number > self._after_first:
            late = {"steps": self._times.rows(self._after_first), "loader_starts": self._starts.rows()}
            late["unprofiled"] = self._runs_around or self._runs.rows()
            for each in pending:
                each.update(problems=self._troubles.rows(), **late)
        self._runs_around = None
        self._times.forget_after()
        self._recent = self._times.recent

    @guarded_method
    def _enter_region(self, name: str) -> bool:
        if not self._is_running and active.profiler is None and not self._published:
            self._regions.want_all()
            self._is_busy = False  # start() is guarded itself
            self.start()
            self._is_busy = True
        if self._window is None or not self._regions.may_enter(name):
            return False
        self._window.resume()
        self._window.begin_step(self._regions.next_number, name)
        self._regions.enter(name)
        return True

    @guarded_method
    def _leave_region(self) -> None:
        if self._regions.leave() and self._window is not None:
            self._window.end_step()
            self._window.pause()


def profile(folder: str | os.PathLike[str], **options: Any) -> Profiler:
    """Record what happens inside: `with profile("logs/run1") as prof: …`, or `@profile("logs/run1")` on a function.

    Options as for `Profiler`.
    """
    return Profiler(folder, **options)
