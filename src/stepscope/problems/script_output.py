"""Problems of a training script: what it records, and what it does with the trace."""

from __future__ import annotations

from stepscope.problems.entry import Case, Entry

ENTRIES = (
    Entry(
        "export-after-handover",
        "error",
        "The trace is exported after it was handed over",
        "on_trace_ready has already saved the trace; a second export raises `RuntimeError: Trace is already saved.`",
        "Export in one place: in on_trace_ready, or after the loop without on_trace_ready.",
    ),
    Entry(
        "export-before-stop",
        "error",
        "The trace is exported while it is still being recorded",
        "Inside the `with` block nothing is finished yet: `'NoneType' object has no attribute 'save'`.",
        "Move export_chrome_trace after the `with` block.",
    ),
    Entry(
        "trace-thrown-away",
        "warning",
        "The trace is recorded and discarded",
        "Without on_trace_ready and without an export nothing is ever written.",
        "on_trace_ready=torch.profiler.tensorboard_trace_handler('logs'), or prof.export_chrome_trace('trace.json.gz') after the loop.",
    ),
    Entry(
        "one-logdir-for-all-ranks",
        "warning",
        "All ranks write to the same place",
        "Every rank runs this script. All of them write a file of the same name at once: the last one wins, or the file is broken. "
        "TensorFlow and JAX name files after the host, which several processes of a host share.",
        "Put the rank into the name: prof.export_chrome_trace(f'trace_rank{{rank}}.json.gz').",
        {
            "worker-name": Case(
                fix="Leave worker_name out (PyTorch then uses host and process), or put the rank into it: worker_name=f'rank{{rank}}'."
            ),
            "folder": Case(
                fix="Where several processes share a host, put the rank into the folder: f'logs/{{rank}}'; one process per host is fine.",
                severity="info",
            ),
        },
    ),
    Entry(
        "option-missing",
        "error",
        "The script requests data that the profiler does not record",
        "export_stacks needs with_stack, export_memory_timeline needs record_shapes, profile_memory and with_stack: PyTorch raises an error after "
        "the job has run. Groups by shape or stack stay empty without record_shapes or with_stack, modules without with_stack.",
        "torch.profiler.profile({options}, …)",
        example={"options": "with_stack=True"},
    ),
    Entry(
        "no-device-activity",
        "warning",
        "The script uses a GPU, but only the CPU is recorded",
        "activities=[ProfilerActivity.CPU] leaves out kernels and copies; so does the old torch.autograd.profiler unless use_device is given.",
        "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], or omit activities to record all that are available.",
        {"legacy": Case(fix="Use torch.profiler.profile instead.", severity="info")},
    ),
    Entry(
        "device-tracer-off",
        "warning",
        "The device's tracer is switched off",
        "With device_tracer_level=0 TensorFlow and JAX record host rows only.",
        "Omit device_tracer_level, or set it to 1.",
    ),
    Entry(
        "no-block-until-ready",
        "warning",
        "The trace may stop before the device has finished",
        "JAX returns before the work is done. If nothing waits for the last step, stop_trace comes too early and device rows are missing.",
        "jax.block_until_ready(result) before stop_trace, or at the end of the `with` block.",
    ),
    Entry(
        "keras-profile-batch",
        "warning",
        "Keras profiles its first batch",
        "The first batch traces and compiles the model: the profile shows that instead of a typical step.",
        "TensorBoard(log_dir, profile_batch=(10, 15))",
    ),
    Entry(
        "nothing-records",
        "info",
        "Nothing in this script records a profile",
        "The script uses no profiler of PyTorch, TensorFlow, JAX or stepscope. Keras' TensorBoard callback records none unless profile_batch is "
        "given.",
        "with stepscope.profile('logs') as prof: around the loop, and prof.step() in it; or stepscope run -- python train.py.",
    ),
)
