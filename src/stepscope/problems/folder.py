"""Problems of a path that should hold a profile, and data that a profile lacks because nothing requested it."""

from __future__ import annotations

from stepscope.problems.entry import Case, Entry

NEVER_WRITTEN = (
    "PyTorch, TensorFlow and JAX write a profile when the profiler stops. A job that was killed during its window leaves nothing, not "
    "even the folder. Run stepscope doctor train.py to check the script."
)

ENTRIES = (
    Entry(
        "nothing-found",
        "error",
        "There is no profile here",
        "The path is wrong, the profiler was never stopped, a remote worker wrote to its own disk, or Keras' TensorBoard callback ran without "
        "profile_batch. Other tools say `No profile data was found` or `No dashboards are active`.",
        NEVER_WRITTEN,
        {
            "elsewhere": Case(fix="{advice}"),
            "explained": Case(fix="{advice}\n" + NEVER_WRITTEN),
            "keras": Case(
                title="Keras wrote its events here, but no profile",
                fix="profile_batch was not given, was 0, or is beyond the last batch, or the job was killed inside it. Use "
                "TensorBoard(log_dir, profile_batch=(10, 15)), with batch numbers that the run reaches: they count over all epochs.{also}",
            ),
        },
        {"advice": "A path that holds a profile, or what to change.", "also": ""},
    ),
    Entry(
        "not-a-profile",
        "error",
        "This file is not a profile",
        "It is empty, truncated before its first event, or another kind of file: an execution trace (observer_0.json), a memory snapshot, an "
        "Nsight report, a notebook.",
        "Record a profile with torch.profiler, tf.profiler, jax.profiler or stepscope.",
        {"explained": Case(fix="{advice}")},
        {"advice": "What the reader advises for this kind of file."},
    ),
    Entry(
        "wrong-logdir",
        "warning",
        "TensorBoard and XProf would show nothing from this folder",
        "They look for <logdir>/plugins/profile/<run>/<host>.xplane.pb. They do not find profiles if the logdir is inside plugins/profile or the "
        "files are elsewhere: `No profile data was found`. stepscope accepts either.",
        "tensorboard --logdir '{logdir}'",
        {"outside": Case(fix="mkdir -p '{run}' && mv '{folder}'/*.xplane.pb '{run}'")},
        {"logdir": "LOGDIR", "run": "LOGDIR/plugins/profile/run1", "folder": "FOLDER"},
    ),
    Entry(
        "huge-trace",
        "warning",
        "The trace is too large for other tools",
        "Too many steps were recorded, or stacks of everything. Browsers give up at a few hundred megabytes: `Loading data` forever. stepscope "
        "opens it.",
        "Record fewer steps: schedule(wait=5, warmup=2, active=3); omit with_stack where it is not needed.",
    ),
    Entry(
        "no-shapes",
        "info",
        "No op has shapes",
        "Without shapes, ops cannot be distinguished by size, and FLOPs are unknown. PyTorch records them only with record_shapes=True.",
        "torch.profiler.profile(record_shapes=True)",
        {"no-option": Case(fix="Nothing to turn on: only PyTorch's profiler has an option for it.")},
    ),
    Entry(
        "no-stacks",
        "info",
        "No op has a stack",
        "Without stacks, the source line of an op is unknown. PyTorch records them only with with_stack=True, and only of threads that run Python.",
        "torch.profiler.profile(with_stack=True)",
        {
            "no-option": Case(
                fix="Record with stacks where the profiler has an option for it, or annotate the code around the ops."
            )
        },
    ),
    Entry(
        "no-memory",
        "info",
        "No allocation was recorded",
        "PyTorch records allocations only with profile_memory=True; TensorFlow and JAX record those of devices only, and none on the CPU.",
        "torch.profiler.profile(profile_memory=True)",
        {
            "no-option": Case(
                fix="Nothing to turn on: TensorFlow and JAX record the allocations of devices only. "
                "jax.profiler.save_device_memory_profile shows what is held."
            )
        },
    ),
)
