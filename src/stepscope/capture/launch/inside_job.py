"""Inside a job that `stepscope run` launched: find its loop, record the steps that were asked for, and keep out of its way."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.capture.launch.environment import END, LISTEN, MAIN, PLAN, plan_of, write_note
from stepscope.capture.loop.loop import Loop
from stepscope.capture.loop.sources import watch
from stepscope.capture.process.on_import import after_import
from stepscope.capture.trial.plan import TRIAL, WITH

if TYPE_CHECKING:
    from stepscope.capture.launch.environment import Plan
    from stepscope.capture.launch.whole import Whole
    from stepscope.capture.loop.input_workers import Workers
    from stepscope.capture.loop_profiler import LoopProfiler

# Steps of a loop that the recording of the whole goes on for: a job may end before the steps that were asked for.
_STEPS_OF_WHOLE = 3
_FRAMEWORKS = ("torch", "tensorflow", "jax")
_launched: Launched | None = None


def begin() -> None:
    """Called at the start of every process of the job. Nothing heavy happens before a framework is imported."""
    global _launched
    if TRIAL in os.environ or WITH in os.environ:
        from stepscope.capture.trial.inside_job import apply_settings, begin_trial

        apply_settings()
        if begin_trial():
            return
    listen_if_asked()
    plan = plan_of(os.environ) if PLAN in os.environ else None
    is_main = bool(os.environ.pop(MAIN, ""))
    if plan is None or _launched is not None:
        return
    import atexit

    _launched = Launched(plan)
    if END in os.environ:
        from stepscope.capture.trial.scratch import Scratch

        Scratch(os.environ[END]).watch()
    after_import("torch.cuda", _launched.watch_memory)
    watch(_loop)
    for name in _FRAMEWORKS:
        after_import(name, _watch_turns)
    after_import("stepscope.capture.process.active", _launched.hear_calls)
    after_import("torch.utils.data.dataloader", _launched.watch_loaders)
    atexit.register(_launched.leave)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_launched.before_fork, after_in_child=_launched.start_over)
    if is_main:
        _launched.record_whole()


def listen_if_asked() -> None:
    """With STEPSCOPE_LISTEN=1, processes that import a framework, or use stepscope, can be recorded from at any time."""
    if os.environ.get(LISTEN, "0") not in ("", "0"):
        for name in (*_FRAMEWORKS, "stepscope.capture.annotate.annotate"):
            after_import(name, _listen)


def _listen(_module: Any) -> None:
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.current_process().daemon:
        return  # reads data for a process that trains
    from stepscope.capture.remote.listen import listen

    listen()


def _watch_turns(_module: Any) -> None:
    from stepscope.capture.backends.exclusive import watch as watch_turns

    watch_turns()


def _loop() -> Loop | None:
    return None if _launched is None or _launched.is_done else _launched.loop


class Launched:
    """The recording of one process of the job."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._whole: Whole | None = None
        self._records_itself: str | None = None
        self.start_over()

    def watch_memory(self, _module: Any) -> None:
        """An out-of-memory error leaves a snapshot, whenever it comes."""
        from stepscope.capture.backends.out_of_memory import watch as memory

        memory.start(Path(self._plan.folder).absolute(), for_good=True)

    def record_whole(self) -> None:
        """Record the process lightly until it shows a loop: it may have none."""
        from stepscope.capture.launch.whole import Whole
        from stepscope.capture.process import active

        self._whole = Whole(self._plan.folder, self._plan.options)
        self._whole.start()
        active.provisional = self._make_room

    def _make_room(self, profiler: Any) -> None:
        """A Profiler is about to open a window: one of the job's own is all that is wanted."""
        if self._whole is not None and profiler is self._profiler:
            self._whole.finish()
        elif self._whole is not None:
            self._whole.discard()
            self._records_itself = str(profiler.folder)

    def before_fork(self) -> None:
        """A collector that runs would run on in the child, and fill its memory."""
        if self._whole is not None:
            self._whole.before_fork()

    def start_over(self) -> None:
        """A new process, also a forked one, counts from the beginning."""
        self.loop = Loop(self.begin, self.step)
        self.is_done = False
        self._is_beginning = False
        self._number = 0
        self._profiler: LoopProfiler | None = None
        self._records_itself = None
        self._workers: list[Workers] = []
        whole, self._whole = self._whole, None
        if whole is not None:
            whole.become_inert()

    def begin(self) -> None:
        """The loop begins; or a more reliable source reports its steps, and counting starts anew."""
        if self.is_done or self._is_beginning or _is_data_worker():
            return
        self._is_beginning = True
        try:
            self._begin()
        finally:
            self._is_beginning = False

    def _begin(self) -> None:
        from stepscope.capture.loop_profiler import LoopProfiler
        from stepscope.capture.process import active
        from stepscope.capture.schedule import schedule

        if self._profiler is not None:
            if self._number == 0 or not self._profiler.is_waiting:
                return
            self._profiler.stop()
        elif active.profiler is not None:  # the job records itself
            self._give_way(str(active.profiler.folder))
            return
        plan = self._plan
        skip = plan.first - plan.warmup
        steps = schedule(skip=skip, warmup=plan.warmup, active=plan.count, repeat=plan.repeat)
        self._number = 0
        self._profiler = LoopProfiler(
            plan.folder, self.loop, self.step, self._give_way, schedule=steps, **plan.options
        )
        for workers in self._workers:
            self._profiler.watch_input(workers)
        self._profiler.start()
        if self._whole is not None:
            self._whole.begin_step(0)

    def watch_loaders(self, module: Any) -> None:
        """The worker processes of the job's loaders measure what they do while a window is open."""
        get = module.DataLoader._get_iterator

        def _get_iterator(loader: Any) -> Any:
            if self.is_done:
                return get(loader)
            from stepscope.capture.loop.input_workers import iterate

            batches, workers = iterate(loader, get)
            if workers is not None:
                self._workers.append(workers)
                if self._profiler is not None:
                    self._profiler.watch_input(workers)
            return batches

        module.DataLoader._get_iterator = _get_iterator

    def hear_calls(self, active: Any) -> None:
        """Code that calls stepscope.step() itself finds someone to call."""
        active.first_step = self._first_call

    def _first_call(self) -> None:
        if not self.is_done and self.loop.called():
            self.step()

    def step(self) -> None:
        """A step is over."""
        profiler = self._profiler
        if profiler is None:
            return
        self._number += 1
        self._step_of_whole()
        profiler.advance()
        if self._plan.is_over(self._number - profiler.steps_after):
            self.leave()
            if END in os.environ:
                from stepscope.capture.trial.inside_job import end_process

                end_process()
        elif self._number % self._plan.cycle == 0:
            self._note()

    def _step_of_whole(self) -> None:
        whole = self._whole
        if whole is None:
            return
        whole.end_step()
        if self._number >= _STEPS_OF_WHOLE:
            whole.finish()
        else:
            whole.begin_step(self._number)

    def leave(self) -> None:
        """Nothing more is to be recorded; also at the end of the process."""
        if self.is_done:
            return
        self.is_done = True
        if self._profiler is not None:
            self._profiler.stop()
        if self._whole is not None:
            profiler = self._profiler
            # What went wrong with the steps that were asked for must not hide behind a recording of others.
            is_settled = profiler is not None and (profiler.files or profiler.problems)
            self._whole.discard() if self._records_itself or is_settled else self._whole.finish()
        for workers in self._workers:
            workers.close()
        try:
            self._note()
        except OSError:  # the launcher is gone
            pass

    def _give_way(self, folder: str) -> None:
        self._records_itself = folder
        self.is_done = True
        if self._whole is not None:
            self._whole.discard()
        self._note()

    def _note(self) -> None:
        used = [name for name in _FRAMEWORKS if name in sys.modules]
        whole = self._whole
        if not used and not self._number and (whole is None or not whole.files):
            return
        profiler = self._profiler
        write_note(
            self._plan,
            {
                "pid": os.getpid(),
                "rank": os.environ.get("RANK"),
                "command": list(getattr(sys, "orig_argv", sys.argv)),
                "frameworks": used,
                "source": self.loop.source,
                "steps": self._number,
                "files": [] if profiler is None else [str(path) for path in profiler.files],
                "problems": [] if profiler is None else profiler.problems,
                "records_itself": self._records_itself,
                "whole_files": [] if whole is None else whole.files,
                "whole_seconds": None if whole is None else whole.seconds,
                "snapshots": _list_snapshots(),
            },
        )


def _list_snapshots() -> list[str]:
    """Of out-of-memory errors, where memory was watched at all."""
    module = sys.modules.get("stepscope.capture.backends.out_of_memory")
    return [] if module is None else [str(path) for path in module.watch.files]


def _is_data_worker() -> bool:
    """Whether this is a process that PyTorch started to read data."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    return getattr(worker, "_worker_info", None) is not None
