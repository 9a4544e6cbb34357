"""The parts of a step's account: what a moment of it can be given to."""

from __future__ import annotations

BUSY_PARTS = ("compute", "collective", "copy")
IDLE_PARTS = (
    "input", "compile", "python", "dispatch", "allocator", "sync", "device_gap", "host_collective", "io", "profiler",
    "unrecorded", "unexplained",
)  # fmt: skip
PARTS = (*BUSY_PARTS, "host_compute", *IDLE_PARTS)
# What people read; a part that is not here is called by its name.
TITLES = {
    "collective": "communication", "copy": "copies", "host_compute": "host compute", "python": "Python",
    "sync": "synchronisation", "compile": "compilation", "host_collective": "host communication", "io": "files",
    "device_gap": "device gaps", "unrecorded": "not recorded",
}  # fmt: skip
DURING = "during"  # where time is that was spent while the host was in the call that it is named by


def spoken(name: str) -> str:
    """One of the parts, for people."""
    return TITLES.get(name, name.replace("_", " "))
