"""The parts of the account in words and colours, the same in every rendering."""

from __future__ import annotations

from stepscope.lazy import dataclass


@dataclass(frozen=True)
class Part:
    """`light` and `dark`: colours on white and on black; `terminal`: one of the 256."""

    name: str
    title: str
    meaning: str
    is_busy: bool
    light: str
    dark: str
    terminal: str


_ALL = (
    Part("compute", "compute", "Kernels run on the device.", True, "#2f6fde", "#5b93f5", "color(33)"),
    Part("collective", "communication", "The device communicates, and nothing computes meanwhile.", True, "#7048c6", "#9d7bea", "color(99)"),
    Part("copy", "copies", "The device copies, and nothing else runs meanwhile.", True, "#0f96a8", "#2fb9cb", "color(37)"),
    Part("host_compute", "host compute", "Ops run on the CPU; there is no other device.", True, "#2f6fde", "#5b93f5", "color(33)"),
    Part("input", "input", "The device waits for the next batch.", False, "#e8710a", "#f68d32", "color(208)"),
    Part("dispatch", "dispatch", "The framework prepares and launches work more slowly than the device does it.", False, "#d7263d", "#f0566a", "color(203)"),
    Part("python", "Python", "Python code runs for long between two launches, or an op that the host computes.", False, "#e0ac00", "#f2c230", "color(220)"),
    Part("allocator", "allocator", "The driver allocates or releases memory.", False, "#7d5a3c", "#b98d68", "color(137)"),
    Part("sync", "synchronisation", "The host waited for the device, so the queue ran dry.", False, "#a3480f", "#cd7234", "color(130)"),
    Part("compile", "compilation", "A compiler or an autotuner runs.", False, "#c2378b", "#e364b1", "color(169)"),
    Part("host_collective", "host communication", "The host communicates with other ranks.", False, "#a288df", "#bfaaf0", "color(141)"),
    Part("io", "files", "Checkpoints, logs and other files.", False, "#5f9411", "#8abf3a", "color(106)"),
    Part("device_gap", "device gaps", "Work was queued, and the device had not begun it yet.", False, "#7688a8", "#8c9dbb", "color(103)"),
    Part("profiler", "profiler", "The cost of profiling itself.", False, "#b09a83", "#a8937d", "color(144)"),
    Part("unrecorded", "not recorded", "Work from before the recording was still running.", False, "#c3c9d1", "#59616c", "color(250)"),
    Part("unexplained", "unexplained", "No event covers this time.", False, "#98a0ab", "#747c87", "color(245)"),
)  # fmt: skip
PARTS = {part.name: part for part in _ALL}


def part(name: str) -> Part:
    """The part; one that is not known here goes by its name."""
    return PARTS.get(name) or Part(
        name, name.replace("_", " "), "", False, "#98a0ab", "#747c87", "color(245)"
    )
