"""Problems that only a comparison of several ranks shows: the report has them, the doctor does not compare ranks."""

from __future__ import annotations

from stepscope.problems.entry import Case, Entry

_SAME_STEPS = "Start and stop recording at the same step on all ranks."

ENTRIES = (
    Entry(
        "no-collectives",
        "warning",
        "No communication between the ranks was recorded",
        "The profiles have no collectives. Which rank waits for which, and how far the clocks differ, is unknown.",
        "If the ranks train together, record the device and not only the host; on CPUs, use host_tracer_level=2 and a backend whose "
        "calls the framework records.",
        {"separate-jobs": Case(severity="info")},
    ),
    Entry(
        "unmatched-collectives",
        "warning",
        "No collective of one rank matches one of another rank",
        "The ranks are from different jobs, or recorded different steps. Which rank waits for which is unknown.",
        "Record the same steps on all ranks of one job, and load only those. If the device runs behind the host, wait for the result in "
        "each recorded step: jax.block_until_ready(loss), loss.item(), loss.numpy().",
    ),
    Entry(
        "unequal-collectives",
        "warning",
        "Ranks made different numbers of collective calls",
        "Their recordings usually start or stop at different steps. Calls with sequence numbers are matched; other steps whose numbers of "
        "calls differ are left out.",
        _SAME_STEPS,
    ),
    Entry(
        "unequal-steps",
        "warning",
        "Ranks recorded different numbers of steps",
        "Their recordings start or stop at different steps. Only steps that several ranks have are compared.",
        _SAME_STEPS,
    ),
    Entry(
        "ambiguous-groups",
        "warning",
        "Process groups cannot be distinguished",
        "Several process groups share a name, and the profile does not list their ranks. Their collectives are not matched.",
        "Record with PyTorch 2.4 or newer, which writes the ranks of process groups, or give each group its own name.",
    ),
)
