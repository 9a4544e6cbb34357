"""Problems of a training script: a profiler's life cycle, and what its window covers."""

from __future__ import annotations

from stepscope.problems.entry import Case, Entry

_TF = "Call tf.profiler.experimental.stop() in a finally block, or use `with tf.profiler.experimental.Profile(logdir):`."
_JAX = "Call jax.profiler.stop_trace() in a finally block, or use `with jax.profiler.trace(logdir):`."

ENTRIES = (
    Entry(
        "script-syntax",
        "error",
        "The script cannot be parsed",
        "It is not Python 3, or has a syntax error: the job would not start either.",
        "Fix the line.",
    ),
    Entry(
        "profiler-never-started",
        "warning",
        "A profiler is imported or created, but never started",
        "A profiler records nothing until it is entered by `with`, or its start is called.",
        "Use `with {maker}(…) as {name}:` around the loop, or call {name}.start() before it and {name}.stop() after.",
        {
            "tensorflow": Case(fix="Use `with tf.profiler.experimental.Profile(logdir):` around the loop."),
            "jax": Case(fix="Use `with jax.profiler.trace(logdir):` around the loop."),
        },
        {"maker": "torch.profiler.profile"},
    ),
    Entry(
        "profiler-never-stopped",
        "error",
        "A profiler is started and never stopped",
        "The profile is written when the profiler stops. Without stop() the job ends and nothing is written.",
        "try: … finally: {name}.stop(); or use `with {maker}(…) as {name}:`.",
        {
            "tensorflow": Case(fix=_TF),
            "jax": Case(fix=_JAX),
            "summary": Case(
                fix="Call tf.summary.trace_export(name, step, profiler_outdir=logdir) after the traced call."
            ),
            "cuda": Case(fix="Call torch.cuda.profiler.stop()."),
        },
        {"maker": "torch.profiler.profile"},
    ),
    Entry(
        "stop-skipped-on-error",
        "info",
        "An exception in the loop loses the profile",
        "stop() comes after the loop and is not reached if a step fails, or the job is interrupted.",
        "Put the loop into try: … finally: with stop() in it, or use `with`.",
        {"tensorflow": Case(fix=_TF), "jax": Case(fix=_JAX)},
    ),
    Entry(
        "profiler-inside-function",
        "error",
        "A profiler is started inside a function that is traced",
        "Python code in a function under tf.function, jax.jit or torch.compile runs while the function is traced, not while it trains. A profiler "
        "in it records the tracing and none of the steps.",
        "Start and stop it where {function}() is called.",
        example={"function": "train_step"},
    ),
    Entry(
        "profiler-name-unknown",
        "error",
        "The script uses a profiler name that TensorFlow does not have",
        "Names of TensorFlow 1, of contrib or of private modules are not in tf.profiler: the script fails with an AttributeError or ImportError.",
        "Use `with tf.profiler.experimental.Profile(logdir):`, or tf.profiler.experimental.start(logdir) and stop().",
        {
            "graph": Case(
                fix="In graph mode use tf.compat.v1.profiler.{name}; else `with tf.profiler.experimental.Profile(logdir):`."
            )
        },
    ),
    Entry(
        "step-on-legacy-profiler",
        "error",
        "torch.autograd.profiler.profile has no steps",
        "The old profiler of torch.autograd has no step(), schedule or on_trace_ready: the script fails with an AttributeError or TypeError.",
        "Use torch.profiler.profile instead: it has schedule, on_trace_ready and step().",
    ),
    Entry(
        "profiler-in-traced-function",
        "error",
        "An annotation is used inside a function that is traced",
        "The body of a function under tf.function, jax.jit or torch.compile runs once, while it is traced. An annotation in it "
        "starts and ends then, and marks none of the steps.",
        "Move it to where {function}() is called. Inside, use tf.name_scope or jax.named_scope.",
        example={"function": "train_step"},
    ),
    Entry(
        "two-profilers",
        "error",
        "A profiler is started inside another one",
        "Only one of them receives device events; the other ends early or stays empty.",
        "Use one profiler, and record_function or annotate for the inner region.",
    ),
    Entry(
        "shadowed-module",
        "warning",
        "A file next to the script hides a package",
        "Python looks in the script's own folder first: it imports a file profile.py or torch.py there instead of the package.",
        "Rename {file}, and delete its __pycache__.",
        example={"file": "the file"},
    ),
    Entry(
        "schedule-without-step",
        "error",
        "A schedule is given, but step() is never called",
        "The schedule counts calls of prof.step(). Without them the profiler stays in its first phase: on_trace_ready is never called and "
        "the export fails.",
        "Call {name}.step() at the end of each step.",
        {
            "unnamed": Case(
                fix="Call {name}.step() at the end of each step, and add `as {name}` to the with statement."
            )
        },
    ),
    Entry(
        "no-step-marker",
        "warning",
        "Nothing marks the steps",
        "Other tools then say `No step marker observed`, or treat the whole recording as one step. stepscope finds steps that repeat, but cannot "
        "know where the loop starts one.",
        "Call {name}.step() at the end of each step.",
        {
            "tensorflow": Case(
                fix="with tf.profiler.experimental.Trace('train', step_num=step, _r=1): around the body of the loop."
            ),
            "jax": Case(
                fix="with jax.profiler.StepTraceAnnotation('train', step_num=step): around the body of the loop."
            ),
        },
    ),
    Entry(
        "trace-without-root",
        "warning",
        "Trace marks no step",
        "TensorFlow counts a Trace as a step only if it has step_num and _r=1; XProf says `No step marker observed` otherwise.",
        "tf.profiler.experimental.Trace('train', step_num=step, _r=1)",
    ),
    Entry(
        "no-warmup",
        "warning",
        "The schedule has no warm-up",
        "The first step of a window pays for starting CUPTI: its first kernels are missing, and its times are too long.",
        "schedule(warmup=1, …) at least.",
    ),
    Entry(
        "window-never-reached",
        "error",
        "The loop ends before the window starts",
        "The schedule skips, waits and warms up for more steps than the loop has: nothing is recorded, or only the warm-up.",
        "Shorten skip, wait and warmup, or run more steps.",
        {"keras": Case(fix="Choose a profile_batch below {batches}, or train more batches.")},
        {"batches": "the number of batches"},
    ),
    Entry(
        "long-window",
        "info",
        "The window is so long that the trace will be huge",
        "A step takes one to fifty megabytes with stacks. Few viewers open traces of more than a few hundred megabytes.",
        "A few steps suffice: schedule(wait=5, warmup=2, active=5, repeat=1).",
    ),
)
