"""Problems of several ranks: missing, duplicated, or recorded differently."""

from __future__ import annotations

from stepscope.problems.entry import Case, Entry

ENTRIES = (
    Entry(
        "missing-ranks",
        "warning",
        "Some ranks of the job are missing",
        "Their files were not selected, are on other hosts or in other folders, or these ranks did not finish.",
        "Copy the files of the missing ranks next to these.",
        {
            "chosen": Case(fix="Load the folder that holds the files of all ranks.", severity="info"),
            "here": Case(
                fix="The files of the missing ranks that are here do not overlap with these in time. "
                "If they belong to one window, correct the clocks of their hosts; otherwise record the same steps on all ranks."
            ),
        },
    ),
    Entry(
        "duplicate-rank",
        "warning",
        "Several files claim the same rank",
        "The folder holds files of several captures, or the processes did not know their ranks.",
        "Load the files of one capture only, with a pattern or --run.",
    ),
    Entry(
        "split-runs",
        "warning",
        "The workers of one capture are in different run folders",
        "TensorFlow and JAX name the folder after the current second, and each worker uses its own clock. Only one folder was loaded.",
        "Move the files of all workers into {folder}.",
        example={"folder": "one folder"},
    ),
    Entry(
        "ranks-apart",
        "warning",
        "The ranks were not recorded at the same time",
        "They recorded different steps, or their clocks differ. Waiting times between these ranks are meaningless.",
        "Record the same steps on all ranks, and synchronise the clocks of the hosts (chrony, NTP).",
    ),
    Entry(
        "two-workers",
        "warning",
        "Several workers are in one file",
        "Traces were merged, or two workers wrote to the same file. Their times are added up as if they were one worker.",
        "Keep one file per rank; stepscope combines the ranks itself.",
        {
            "merged": Case(
                "Several ranks are in one file",
                "Load the original profile. For a copy that stepscope can read, export one file per rank: without --merge.",
            )
        },
    ),
    Entry(
        "unnamed-collectives",
        "info",
        "Collectives have no sizes and groups",
        "PyTorch before 2.1 writes no arguments of collectives.",
        "Record with PyTorch 2.1 or newer, and record_shapes=True.",
    ),
)
