"""Problems of a job that hangs, and of the dumps that its ranks left."""

from __future__ import annotations

from stepscope.problems.entry import Case, Entry

_SET_UP = "Run the job with TORCH_FR_BUFFER_SIZE=2000 (before PyTorch 2.9: TORCH_NCCL_TRACE_BUFFER_SIZE=2000)"

ENTRIES = (
    Entry(
        "hang",
        "error",
        "The ranks hang in a collective",
        "A collective ends only when every rank of its group has made the same call. The others wait until the time-out.",
        "Look at what that rank does instead: `stepscope capture --stacks all` shows the Python stacks of a job that still hangs.",
        {
            "op": Case(
                "The ranks call different collectives",
                "Make every rank of the group call the same collectives in the same order: look for a branch on the rank, on the data or on a loss "
                "above these lines.",
            ),
            "size": Case(
                "The ranks pass tensors of different sizes",
                "Give the tensor the same shape on every rank: look for a last batch that is smaller, or a length that depends on the data.",
            ),
            "dtype": Case(
                "The ranks pass tensors of different types",
                "Give the tensor the same dtype on every rank: look for autocast, or a checkpoint that only some ranks have loaded.",
            ),
            "dead": Case(
                "A rank is missing",
                "Look at the end of its log: a killed process (out of memory, exit code -9) leaves no dump. If it is alive, copy its dump next to "
                "these.",
            ),
            "stuck": Case(
                "A collective that every rank called does not complete",
                "Look at the network and the devices: NCCL_DEBUG=INFO in the logs, `dmesg` and `nvidia-smi` of the hosts for Xid errors.",
            ),
            "device": Case(
                "The device of a rank does not reach the collective",
                "Look for a kernel on that rank that does not end, or a stream that waits for an event: run it with CUDA_LAUNCH_BLOCKING=1, and its stack "
                "shows the launch.",
            ),
            "deadlock": Case(
                "Process groups wait for each other",
                "Make all ranks use their groups in the same order, or wait for the collectives of one group before those of another are called.",
            ),
        },
    ),
    Entry(
        "nothing-pending",
        "warning",
        "No collective is pending",
        "The dumps were written before the job hung or after it ended, the ranks hang outside collectives, or in sends and receives of gloo, "
        "which its recorder leaves out.",
        "Dump while the job hangs; `stepscope capture --stacks all` shows where its ranks are.",
    ),
    Entry(
        "empty-dump",
        "warning",
        "A dump of the flight recorder is empty",
        "The recorder was off when the process group was made, or this rank called no collective.",
        f"{_SET_UP}, set before the process starts.",
    ),
    Entry(
        "dump-without-stacks",
        "info",
        "The dumps have no stacks",
        "The JSON form has none, and stacks can be left out when dumping: collectives are named, but not the lines that called them.",
        "Dump as a pickle with stacks: `_dump_fr_trace(includeStackTraces=True)`.",
    ),
    Entry(
        "mixed-dumps",
        "warning",
        "The dumps are from different times",
        "They come from several hangs or restarts: some end before others begin.",
        "Remove the older files, or use a separate dump folder for each run (TORCH_FR_DUMP_TEMP_FILE).",
    ),
)
