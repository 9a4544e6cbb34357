"""Texts for what went wrong while recording."""

from __future__ import annotations

from stepscope.trace.texts import Texts

_ENVIRONMENT = "Run stepscope doctor on the machine that recorded it: it names the cause."

CAPTURE: dict[str, Texts] = {
    "no-device-events": Texts(
        "error",
        "Work was launched on a device, and none of it was recorded",
        "CUPTI delivered nothing: another profiler held it, privileges were missing, the library was missing or of another CUDA, or the "
        "window was never warmed up. The profile looks fine and is not.",
        _ENVIRONMENT,
    ),
    "launches-without-work": Texts(
        "warning",
        "Kernels are missing",
        "The recorder started or stopped while work was on its way, or lost records (`Out-of-range`).",
        "Warm up for a step, synchronise before it stops, and record fewer steps at once.",
    ),
    "work-without-launch": Texts(
        "warning",
        "Kernels whose launch was not recorded",
        "Work from before the window was still running when it began, or a thread was not recorded.",
        "Warm up for a step, and synchronise before the window begins.",
    ),
    "dropped-events": Texts(
        "warning",
        "The recorder dropped events",
        "Its buffers were full: too many steps, or too many tracers at once.",
        "Record fewer steps, or lower host_tracer_level and python_tracer_level.",
    ),
    "buffer-overflow": Texts(
        "warning",
        "The recorder's buffer was full",
        "A ring buffer keeps the newest events only.",
        "Record a shorter time, or give the recorder a larger buffer.",
    ),
    "event-cap": Texts(
        "warning",
        "The file stops at a limit on events",
        "The writer of trace.json.gz keeps the first million events; the timeline stops after a few steps.",
        "Open the xplane.pb next to it, or record with python_tracer_level=0.",
    ),
    "capture-error": Texts("error", "The recorder reported an error", "It is quoted.", _ENVIRONMENT),
    "capture-warning": Texts("warning", "The recorder reported a warning", "It is quoted.", _ENVIRONMENT),
    "capture-failed": Texts(
        "error",
        "stepscope's capture failed in part",
        "A framework's profiler raised an error; the job went on without it.",
        _ENVIRONMENT,
    ),
    "cupti-failed": Texts(
        "error", "The GPU could not be traced", "The framework could not use CUPTI.", _ENVIRONMENT
    ),
    "second-profiler": Texts(
        "error",
        "Another profiler was running",
        "Only one can record at a time.",
        "Run one profiler at a time.",
    ),
    "gpu-traced-once": Texts(
        "info",
        "Only one of the frameworks recorded the GPU",
        "Two frameworks in one process share one CUPTI, which serves one of them.",
        "Record the other one in a run of its own.",
    ),
    "started-twice": Texts(
        "warning", "The profiler was started twice", "The second start does nothing.", "Call start() once."
    ),
    "nothing-recorded": Texts(
        "warning", "Nothing was recorded in this window", "No backend delivered anything.", _ENVIRONMENT
    ),
    "no-nvtx": Texts(
        "info",
        "NVTX ranges were asked for and could not be made",
        "The package nvtx is missing.",
        "pip install nvtx",
    ),
    "disk-full": Texts(
        "error",
        "There was no room for the profile",
        "The disk or the quota was full.",
        "Free some space, or record fewer steps.",
    ),
    "folder-unwritable": Texts(
        "error",
        "The profile's folder could not be written",
        "It is read-only, or belongs to someone else.",
        "Give a folder that this user can write.",
    ),
    "capture-killed": Texts(
        "warning",
        "The process ended before its profile was written",
        "It was killed (kill -9, out of memory, a time limit), crashed, or left by os._exit. What stepscope had kept in its ring file is "
        "read: steps, annotations and telemetry up to the last moment, without what the framework writes when a window ends.",
        "Record fewer steps, or several short windows, so that one is written before the end. dmesg tells of the kernel's out-of-memory "
        "killer.",
    ),
    "capture-running": Texts(
        "info",
        "The recording is still going on",
        "The process lives and has not written its profile yet; its ring file was read.",
        "Open it again when the window is over.",
    ),
    "capture-unwritten": Texts(
        "warning",
        "The profile could not be written",
        "The window ended, and writing its files failed; the ring file was kept in their place.",
        "The warning on the job's stderr, and the sidecar if there is one, say why: mostly the disk was full.",
    ),
    "ring-failed": Texts(
        "info",
        "The recording would not have survived a kill -9",
        "Its ring file could not be made or could not grow: a full disk, a read-only folder.",
        "Give a folder with some room that this user can write.",
    ),
    "windows-removed": Texts(
        "info",
        "Older windows of this recording were removed",
        "A schedule without an end keeps the newest windows, so that it does not fill the disk.",
        "keep=None keeps all of them, keep=N so many.",
    ),
    "never-stopped": Texts(
        "warning",
        "A recording was started and never finished",
        "The profile is written when the profiler stops. The job was killed in its window, stop() was forgotten, or it is still running.",
        "Stop the profiler in a finally block, or use `with`; stepscope doctor train.py looks at the script.",
    ),
    "leftover-files": Texts(
        "warning",
        "Files that were never finished",
        "A writer died before it could rename them (`.tmp`, `.part`), or still writes.",
        "Record again; then delete them.",
    ),
    "no-steps": Texts(
        "warning",
        "No steps were found",
        "Nothing marks the steps and nothing repeats; other tools say `No step marker observed`.",
        "Call prof.step() at the end of each step, annotate the step, or name an annotation with --step-name.",
    ),
    "one-step": Texts(
        "warning",
        "Only one step was recorded",
        "One step says nothing about what is usual, and the first of a run is often slow.",
        "Record several steps after a warm-up: schedule(wait=5, warmup=2, active=5).",
    ),
    "only-warm-up": Texts(
        "warning",
        "Only the warm-up was recorded",
        "The window covers the steps in which programs are traced and compiled.",
        "Begin the window later.",
    ),
    "option-without-data": Texts(
        "warning",
        "An option was on, and left nothing in the file",
        "Stacks need a recent PyTorch on Python 3.11 and newer; memory is written for allocations inside the window only.",
        "Update PyTorch, or widen the window.",
    ),
    "clock-inversion": Texts(
        "warning",
        "Work begins before its launch",
        "The clocks of host and device disagree.",
        "A newer driver or profiler fixes it; times between host and device are off by that much.",
    ),
    "zero-time": Texts("warning", "Device events at time 0", "CUPTI lost their times.", "Update the driver."),
    "graphs-hide-ops": Texts(
        "info",
        "CUDA graphs hide which op a kernel belongs to",
        "A graph is one launch for many kernels.",
        "Record a few steps without graphs to see their ops.",
    ),
    "no-kernel-facts": Texts(
        "info",
        "Nothing is known of the kernels but their times",
        "ROCm's recorder and old ones of CUDA write no occupancy, registers or extents.",
        "Measure single kernels with the vendor's tool: rocprof-compute, or ncu.",
    ),
    "unnamed-collectives": Texts(
        "info",
        "Collectives without their sizes and groups",
        "Old versions of PyTorch write no arguments of collectives, so that a distributed view shows zeros.",
        "Record with PyTorch 2.1 or newer, and record_shapes=True.",
    ),
    "mostly-python": Texts(
        "info",
        "Most of the trace are Python calls",
        "Stacks were on (with_stack, or JAX's python tracer, which is on by default). They slow the host down and make the file large.",
        "with_stack=False, or python_tracer_level=0, where stacks are not needed.",
    ),
    "wait-without-record": Texts(
        "info",
        "Waits for a CUDA event without the call that recorded it",
        "The event was made before the window began.",
        "Start the profiler before the events are made.",
    ),
    "missing-ranks": Texts(
        "warning",
        "Not all ranks of the job are here",
        "Their files are on other hosts or in other folders, or one of them did not finish.",
        "Copy the files of the other ranks next to these.",
    ),
    "duplicate-rank": Texts(
        "warning",
        "Several files say they are the same rank",
        "Files of several captures are in one folder, or the ranks did not know their numbers.",
        "Load only the files of one capture, with a pattern or --run.",
    ),
    "split-runs": Texts(
        "warning",
        "The workers of one capture are in different run folders",
        "TensorFlow and JAX name the folder by the second; hosts that begin a second apart name two.",
        "Move the files into one folder.",
    ),
    "ranks-apart": Texts(
        "warning",
        "The ranks were not recorded at the same time",
        "They recorded other steps, or their clocks differ.",
        "Record the same steps on all ranks, and keep the hosts' clocks in step.",
    ),
    "two-workers": Texts(
        "warning",
        "Several workers are in one file",
        "Traces were merged, or two workers wrote to one name.",
        "Keep one file per rank; stepscope puts the ranks together itself.",
    ),
    "other-runs": Texts(
        "info", "There are other runs here", "Only the newest is looked at.", "Name one with --run."
    ),
    "analysis-failed": Texts(
        "error",
        "Not everything could be computed",
        "This is a bug in stepscope.",
        "Set STEPSCOPE_RAISE=1 for the traceback, and please report it.",
    ),
}
