"""Write a memory snapshot when PyTorch's CUDA allocator gives up, before anything unwinds. The error itself stays as it is.

The history of allocations is switched on with the stacks of allocations alone, and bounded; one that the job records itself is left
as it is. CUDA is never initialised from here: PyTorch calls back once the job has done that.

A stack costs about as much as a third of a small op, for every tensor. Jobs that launch many of these took a quarter longer, also
outside of windows. So stacks are recorded until the first steps have made weights, gradients and the optimizer's state, and again
while memory is short: blocks keep the stacks that they have.
"""

from __future__ import annotations

import os
import pickle
import shutil
import time
import traceback
from pathlib import Path
from typing import Any

from stepscope.capture.files.identity import identify
from stepscope.capture.process.on_import import after_import
from stepscope.capture.process.troubles import tell
from stepscope.capture.schedule import NEVER

WITHOUT_STACKS = "stepscope: no stacks recorded"  # as in stepscope.trace.snapshot, which needs polars

SWITCH = "STEPSCOPE_SNAPSHOT"  # in the environment: 0 to do without
FOLDER = "out-of-memory"
_ENTRIES = 100_000
_MOST_SNAPSHOTS = 2  # of a process: a job that catches the error and tries again fails many times
_LEAST_FREE_BYTES = 1 << 30
_FIRST_LOOK, _LOOK_EVERY = 2, 32  # steps; asking takes about 0.1 ms
_SHORT = 0.5  # of the device's memory: what grows until there is none passes this first


class Watch:
    """Snapshots of this process; `folder` is where they go, None while none are wanted."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.files: list[Path] = []
        self._stays = False
        self._is_attached = False
        self._history_is_ours = False
        self._has_stacks = False
        self._without_stacks: list[tuple[str, int]] = []  # when that began and ended, START and END in turn
        self._cuda: Any = None

    def start(self, folder: Path, for_good: bool = False) -> None:
        """From now on, or `for_good`; as soon as the job uses CUDA. Nothing that fails here reaches the job."""
        if self._stays or os.environ.get(SWITCH, "1") == "0":
            return
        self.folder, self._stays = folder, for_good
        after_import("torch.cuda", self._wait_for_cuda)

    def stop(self) -> None:
        """No more; PyTorch keeps the observer, which then does nothing."""
        if self._stays:
            return
        self.folder = None
        if self._history_is_ours:
            self._history_is_ours = False
            _quietly(lambda: self._cuda.memory._record_memory_history(enabled=None))

    def look(self, number: int) -> int:
        """Between two steps: record stacks if memory is short, and none if it is not. The step to look again."""
        if self.folder is None:
            return NEVER
        if number >= _FIRST_LOOK and self._history_is_ours:
            _quietly(self._choose_stacks)
        return _FIRST_LOOK if number < _FIRST_LOOK else number + _LOOK_EVERY

    def _choose_stacks(self) -> None:
        device = self._cuda.current_device()
        total = self._cuda.get_device_properties(device).total_memory
        is_short = self._cuda.memory_reserved(device) >= _SHORT * total
        if is_short != self._has_stacks:
            self._record(with_stacks=is_short)

    def _record(self, *, with_stacks: bool) -> None:
        context = "alloc" if with_stacks else None
        self._cuda.memory._record_memory_history(
            enabled="all", context=context, stacks="python", max_entries=_ENTRIES
        )
        if with_stacks != self._has_stacks and (self._without_stacks or not with_stacks):
            stage = "END" if with_stacks else "START"
            self._without_stacks.append((stage, time.time_ns() // 1000))
        self._has_stacks = with_stacks

    def _wait_for_cuda(self, cuda: Any) -> None:
        self._cuda = cuda
        if cuda.is_available():
            cuda._lazy_call(lambda: _quietly(self._attach))

    def _attach(self) -> None:
        if self.folder is None:
            return
        import torch

        internal: Any = torch._C
        is_on = getattr(internal, "_cuda_isHistoryEnabled", None)
        if is_on is None or not is_on():
            self._record(with_stacks=True)
            self._history_is_ours = True
        if not self._is_attached:
            internal._cuda_attach_out_of_memory_observer(self.observe)
            self._is_attached = True

    def observe(self, device: int, asked: int, *_: int) -> None:
        """The allocator has given up; called with the interpreter's lock, before the error is raised."""
        try:
            self._write(device, asked)
        except BaseException as error:  # the job's own error is the one that counts
            tell(f"The memory snapshot could not be written: {type(error).__name__}: {error}.")

    def _write(self, device: int, asked: int) -> None:
        if self.folder is None or len(self.files) >= _MOST_SNAPSHOTS:
            return
        target = self.folder / FOLDER / time.strftime("%Y_%m_%d_%H_%M_%S")
        target.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(target).free < _LEAST_FREE_BYTES:
            tell("Out of memory; no snapshot was written, since the disk is almost full.")
            return
        who = identify()
        rank = "" if who.rank is None else f".rank{who.rank}"
        path = target / f"{who.worker}{rank}.{len(self.files)}.pickle"
        draft = path.with_suffix(".draft")
        snapshot = self._cuda.memory._snapshot()
        _quietly(lambda: self._annotate(snapshot))  # the snapshot is worth having without that
        _quietly(lambda: _name_failure(snapshot, device))
        with draft.open("wb") as file:
            pickle.dump(snapshot, file)
        draft.replace(path)
        self.files.append(path)
        tell(
            f"Out of memory on device {device}, asked for {asked:,} bytes. What held it: stepscope report {path}"
        )

    def _annotate(self, snapshot: dict[str, Any]) -> None:
        """When no stacks were recorded: what has none is not of the backward pass there."""
        notes = [
            {"name": WITHOUT_STACKS, "stage": stage, "time_us": moment, "device": device}
            for device in range(len(snapshot["device_traces"]))
            for stage, moment in self._without_stacks
        ]
        if notes:
            snapshot["external_annotations"] = [*snapshot.get("external_annotations", ()), *notes]


def _name_failure(snapshot: dict[str, Any], device: int) -> None:
    """The line that asked for too much, where no stack of it was recorded: it is still being executed."""
    for trace in snapshot["device_traces"][device : device + 1]:
        failed = [event for event in trace if event["action"] == "oom"][-1:]
        for event in failed:
            event["frames"] = event.get("frames") or _frames_of_job()


def _frames_of_job() -> list[dict[str, Any]]:
    """As PyTorch writes them: the innermost first."""
    stack = reversed(traceback.extract_stack())
    return [
        {"filename": frame.filename, "line": frame.lineno, "name": frame.name}
        for frame in stack
        if frame.filename != __file__
    ]


def _quietly(act: Any) -> None:
    try:
        act()
    except Exception:  # a version with other names: there is no snapshot then
        return


watch = Watch()
