"""Problems of a recording: what the profiler lost, could not do, or was never asked for."""

from __future__ import annotations

from stepscope.problems.entry import Case, Entry

_DOCTOR = "Run stepscope doctor on the machine that recorded it, to find the cause."
_WRITABLE = "Use a folder that has free space and that this user can write to."

ENTRIES = (
    Entry(
        "no-history",
        "warning",
        "The memory snapshot has no history",
        "Recording of the history was not switched on before the snapshot, so the peak, the order of allocations and growth are unknown.",
        "Call torch.cuda.memory._record_memory_history() at the start of the job.",
    ),
    Entry(
        "no-allocation-stacks",
        "warning",
        "The memory snapshot names no lines",
        "No allocation has a Python stack: stacks were switched off, or recording began after everything had been allocated.",
        "Call torch.cuda.memory._record_memory_history(stacks='python') at the start of the job, before the model is made.",
    ),
    Entry(
        "no-device-events",
        "error",
        "Work was launched on a device, but none of it was recorded",
        "CUPTI delivered nothing: another profiler uses it (only one can at a time), permissions are missing, its library is missing or "
        "belongs to another CUDA version, or the window had no warm-up. The profile looks complete, but has no device time. In a "
        "truncated file, device work is lost first, because it is written last.",
        _DOCTOR,
        {
            "cut": Case(
                "The recording was cut off before all device work was written",
                "Copy the file again from where it was recorded, or record again: no speed-up is promised from this one.",
            ),
            "unknown": Case(
                "The recording was cut off before any device work could be written",
                "Copy the file again from where it was recorded, or record again: no speed-up is promised from this one.",
                severity="warning",
            ),
        },
    ),
    Entry(
        "launches-without-work",
        "warning",
        "Kernels are missing",
        "The profiler started or stopped while work was in flight, or lost records (`Out-of-range`).",
        "Warm up for a step, synchronise before the profiler stops, and record fewer steps at once.",
        {"few": Case(severity="info")},
    ),
    Entry(
        "work-without-launch",
        "warning",
        "The launches of some kernels were not recorded",
        "Work from before the window was still running when it started, or a thread was not recorded. These kernels count as device time, but "
        "have no op and no step.",
        "Warm up for a step, and synchronise before the window starts.",
        {
            "few": Case(severity="info"),
            "unlinked": Case(
                "Kernels are not linked to their launches",
                "The profiler wrote no correlation ids: try a newer one. The kernels themselves are complete.",
            ),
        },
    ),
    Entry(
        "dropped-events",
        "warning",
        "The profiler dropped events",
        "Its buffers were full: too many steps, or too many tracers at once. The dropped events are not in the file.",
        "Record fewer steps, or lower host_tracer_level and python_tracer_level.",
    ),
    Entry(
        "light-window-unused",
        "info",
        "The light window is not used",
        "A few steps were recorded with low overhead before the window, to measure host time without the profiler. They differ too much from the steps of "
        "the window, or their file cannot be read: promises then use the full window, which overstates host time.",
        "Record steps that do the same work: skip more of the first ones, and leave out those that evaluate or save.",
    ),
    Entry(
        "buffer-overflow",
        "warning",
        "The profiler's buffer overflowed",
        "The buffer has a fixed size and keeps the newest events. The oldest events are missing.",
        "Record fewer steps.",
        {
            "viztracer": Case(
                fix="Record a shorter time, or use a larger buffer: viztracer --tracer_entries 5000000"
            )
        },
    ),
    Entry(
        "event-cap",
        "warning",
        "The file stops at a limit on events",
        "The writer of trace.json.gz keeps the first million events and silently drops the rest: the timeline stops after a few steps.",
        "Open the xplane.pb next to it, which has all events; or record fewer steps, or with python_tracer_level=0.",
    ),
    Entry(
        "capture-error",
        "error",
        "The profiler reported an error: {message}",
        "The message is the profiler's own. Parts of the recording may be missing.",
        _DOCTOR,
        {
            "logged": Case("The profiler logged errors"),
            "logged-warnings": Case("The profiler logged warnings", severity="warning"),
        },
        {"message": "…"},
    ),
    Entry(
        "capture-warning",
        "warning",
        "The profiler reported a warning: {message}",
        "The message is the profiler's own. Parts of the recording may be missing.",
        _DOCTOR,
        example={"message": "…"},
    ),
    Entry(
        "capture-failed",
        "error",
        "{what} failed",
        "A framework's profiler, or stepscope's capture, raised an error. The job continued without it.",
        _DOCTOR,
        example={"what": "A part of the capture"},
    ),
    Entry(
        "cupti-failed",
        "error",
        "The GPU could not be traced",
        "The framework could not use CUPTI. The job continued, and the profile has no device events.",
        _DOCTOR,
    ),
    Entry(
        "second-profiler",
        "error",
        "Another profiler is running",
        "Only one profiler can record at a time.",
        "Run one profiler at a time.",
        {
            "own": Case(
                "Another stepscope Profiler is running",
                "Stop the first one before starting the second.",
                "warning",
            )
        },
    ),
    Entry(
        "gpu-traced-once",
        "warning",
        "Only {first} recorded the GPU",
        "Several frameworks in one process share one CUPTI, which serves one of them.",
        "To record the work of {other}, pass backends=('{other}',).",
        example={"first": "one framework", "other": "torch"},
    ),
    Entry(
        "started-twice",
        "warning",
        "start() was called twice",
        "The profiler was already running. The second call has no effect.",
        "Call start() once.",
    ),
    Entry(
        "nothing-recorded",
        "warning",
        "Nothing was recorded",
        "No window was reached, or no framework's profiler delivered anything.",
        "Profiler.problems lists what went wrong. If it is empty, run more steps than the schedule skips.",
    ),
    Entry(
        "no-nvtx",
        "warning",
        "NVTX ranges cannot be created",
        "The nvtx package is not installed.",
        "pip install nvtx",
    ),
    Entry(
        "disk-full",
        "error",
        "There was no space for the profile",
        "The disk or the quota was full.",
        "Free some space, or record fewer steps.",
    ),
    Entry(
        "folder-unwritable",
        "error",
        "The profile folder is not writable",
        "The folder is read-only or belongs to another user. The profiler fails when it stops, after the steps were recorded.",
        "Choose a folder that this user can write to, or fix its permissions.",
    ),
    Entry(
        "frames-left-out",
        "info",
        "The profile has no Python frames",
        "TensorFlow's profiler records none, and stepscope could not add those that it sampled. Time between ops has no source lines.",
        "If the file is larger than 64 MiB, record fewer steps.",
    ),
    Entry(
        "capture-killed",
        "warning",
        "The process ended before its profile was written",
        "The process was killed (kill -9, out of memory, a time limit), crashed, or called os._exit. stepscope reads what its ring file kept: "
        "steps, annotations and telemetry, without what the framework writes when a window ends.",
        "Record fewer steps, or several short windows, so that one is written before the end. `dmesg` shows whether the kernel's "
        "out-of-memory killer ended the process; the launcher's log shows other ranks and time limits.",
        {
            "later-window": Case(
                "The process ended before its last window was written",
                "Load it to see where the recording ends: {path}",
            )
        },
        {"path": "PATH"},
    ),
    Entry(
        "capture-running",
        "info",
        "The recording is still in progress",
        "The process has not written its profile yet. stepscope reads what its ring file has kept so far.",
        "Open it again when the window has ended.",
    ),
    Entry(
        "capture-unwritten",
        "warning",
        "The profile could not be written",
        "The window ended, but writing its files failed, usually because the disk was full. stepscope reads what its ring file kept.",
        "The warning on the job's stderr and the sidecar, if there is one, state the reason.",
    ),
    Entry(
        "ring-failed",
        "info",
        "The recording would not have survived a kill -9",
        "The ring file could not be created or could not grow: a full disk, or a read-only folder.",
        _WRITABLE,
    ),
    Entry(
        "windows-removed",
        "info",
        "Older windows of this recording were removed",
        "A schedule without an end keeps only the newest windows, so that it does not fill the disk.",
        "keep=None keeps all windows, keep=N the newest N.",
    ),
    Entry(
        "never-stopped",
        "warning",
        "A recording was started and never finished",
        "The profile is written when the profiler stops. The job was killed during its window, stop() was never called, or it is still running.",
        "Stop the profiler in a finally block, or use `with`. Run stepscope doctor train.py to check the script.",
    ),
    Entry(
        "leftover-files",
        "warning",
        "Some files were never finished",
        "A process ended before it could rename them (`.tmp`, `.part`), or is still writing. They are not read.",
        "Record again, then delete them.",
    ),
    Entry(
        "no-steps",
        "warning",
        "No steps were found",
        "Nothing marks the steps and nothing repeats; other tools say `No step marker observed`. All figures cover the whole recording.",
        "Put an annotation around each step, and record several.{or_named}",
        {
            "pytorch": Case(
                fix="Give torch.profiler.profile a schedule=, without which step() marks nothing, and call prof.step() at the end of each "
                "iteration.{or_named}"
            ),
            "jax": Case(
                fix="with jax.profiler.StepTraceAnnotation('train', step_num=step): around the body of the loop, or record several runs "
                "of the program.{or_named}"
            ),
            "tensorflow": Case(
                fix="with tf.profiler.experimental.Trace('train', step_num=step, _r=1): around the body of the loop. Keras's TensorBoard "
                "callback marks the batches of fit() by itself.{or_named}"
            ),
            "nsys": Case(
                fix="Put an NVTX range around each step (torch.cuda.nvtx.range_push('step'), range_pop()), and record with "
                "--trace=cuda,nvtx,osrt.{or_named}"
            ),
            "rocprof": Case(
                fix="Put a roctx range around each step (roctxRangePush('step'), roctxRangePop(); from PyTorch, torch.cuda.nvtx), and record "
                "with --runtime-trace.{or_named}"
            ),
            "stepscope": Case(
                fix="Call prof.step() at the end of each iteration; in a job that `stepscope run` started, stepscope.step().{or_named}"
            ),
        },
        {"or_named": ""},
    ),
    Entry(
        "one-step",
        "warning",
        "Only one step was recorded",
        "One step does not show what is typical, and the first step of a run is often slow.",
        "Record several steps after a warm-up: schedule(wait=5, warmup=2, active=5).",
    ),
    Entry(
        "only-warm-up",
        "warning",
        "Only the warm-up was recorded",
        "The window covers the steps in which programs are traced and compiled.",
        "Start the window later, after the programs are compiled.",
    ),
    Entry(
        "graph-capture",
        "warning",
        "Graphs are captured here, and none is launched",
        "A server does so once, when it starts: the host puts the work into a CUDA or HIP graph, and the device computes nothing meanwhile. So "
        "the host's time in this recording slows no step down.",
        "Record the job while it launches its graphs. Keep this file in capture_traces/ beside that profile: it names the ops in the graphs.",
    ),
    Entry(
        "option-without-data",
        "warning",
        "{option} was on, but the file has no {what}",
        "The header says that it was recorded, but no event has it.",
        "Update PyTorch, or record a longer window.",
        {
            "stacks": Case(
                fix="On Python 3.11 and newer, update PyTorch; or pass experimental_config with verbose=True."
            ),
            "memory": Case(fix="PyTorch records only allocations inside the window: record a longer one."),
        },
        {"option": "An option", "what": "such data"},
    ),
    Entry(
        "clock-inversion",
        "warning",
        "Kernels start before their launch",
        "The clocks of host and device disagree. The times are kept; times between host and device are off by that much.",
        "Update the driver or the profiler.",
        {"few": Case(severity="info")},
    ),
    Entry(
        "zero-time",
        "warning",
        "Device events are at time 0",
        "CUPTI lost their times. The events are kept.",
        "Update the driver; leave these events out of any sum.",
    ),
    Entry(
        "graphs-hide-ops",
        "info",
        "CUDA graphs hide the ops of their kernels",
        "A graph is one launch for many kernels. They count as device time, but belong to no op.",
        "Record a few steps without graphs to see their ops; torch.compile creates graphs with mode='reduce-overhead'.",
    ),
    Entry(
        "no-kernel-facts",
        "info",
        "Kernels have times only",
        "ROCm's profiler and old CUDA profilers write no occupancy, registers or grid sizes.",
        "Measure single kernels with the vendor's tool: rocprof-compute, or ncu.",
    ),
    Entry(
        "mostly-python",
        "info",
        "Most events of the trace are Python calls",
        "Stacks were on (with_stack, or JAX's Python tracer, which is on by default). They slow down the host and make the file large.",
        "Record with {option} where stacks are not needed.",
        example={"option": "with_stack=False, or python_tracer_level=0,"},
    ),
    Entry(
        "wait-without-record",
        "info",
        "Waits for CUDA events have no recording call",
        "The event was created before the window started, so CUPTI does not know which call recorded it. The waits are kept without a link.",
        "Start the profiler before the events are created.",
    ),
    Entry(
        "other-runs",
        "info",
        "There are other runs here",
        "The folder holds several runs, and a report covers one of them.",
        "Load another one by its path, for example {path}, or with --run.",
        example={"path": "PATH"},
    ),
    Entry(
        "analysis-failed",
        "error",
        "stepscope could not compute: {sections}",
        "This is a bug in stepscope. The rest of the report is complete.",
        "Set STEPSCOPE_RAISE=1 for the traceback, and please report it.",
        cases={"rules": Case(title="stepscope could not look for: {codes}")},
        example={"sections": "a section of the report", "codes": "a finding"},
    ),
)
