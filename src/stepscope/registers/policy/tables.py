"""How long tables, texts and searches may be."""

from __future__ import annotations

from stepscope.registers.entry import policy

REPORT_ROWS = policy("REPORT_ROWS", 100, unit="rows", why="of a long list, unless -n says otherwise")
PHASES_SHOWN = policy("PHASES_SHOWN", 12, unit="phases", why="more do not fit a figure")
PHASE_LEAST = policy(
    "PHASE_LEAST", 0.005, unit="share of the steps", why="shorter phases cannot be seen in it"
)
GRAPH_KERNELS = policy("GRAPH_KERNELS", 20, unit="kernels", why="of a captured graph that are listed with it")
UNKNOWN_KERNELS = policy(
    "UNKNOWN_KERNELS",
    1_000,
    unit="kernels",
    why="whose number format is unknown that a report holds, of untrusted files",
)
INPUT_STAGES = policy("INPUT_STAGES", 30, unit="stages", why="of an input pipeline that are listed")
DEVICE_BINS = policy(
    "DEVICE_BINS",
    200,
    unit="bins",
    why="of the device's use over time: about one for each pixel triple of a figure",
)
MEMORY_POINTS = policy(
    "MEMORY_POINTS", 500, unit="points", why="of the memory curve: more than a figure is wide in pixels"
)
FLAME_NODES = policy(
    "FLAME_NODES", 20_000, unit="nodes", why="of a flame graph: a browser draws them at once"
)
FLAME_BOXES = policy(
    "FLAME_BOXES", 20_000, unit="boxes", why="of a flame graph in time order: a browser draws them at once"
)
FLAME_THREADS = policy(
    "FLAME_THREADS",
    12,
    unit="threads",
    why="the busiest of a flame graph in time order: more do not fit a screen",
)
STACK_SHOWN = policy(
    "STACK_SHOWN", 40, unit="frames", why="that are written; calls are distinguished by all of them"
)
DEEPEST_STACK = policy("DEEPEST_STACK", 500, unit="frames", why="of untrusted files: bounds time and memory")
LONGEST_KERNEL_NAME = policy(
    "LONGEST_KERNEL_NAME",
    20_000,
    unit="characters",
    why="of untrusted files that regular expressions look at",
)
XLA_DEVICES = policy("XLA_DEVICES", 1 << 17, unit="devices", why="of untrusted files: more than any job has")
XLA_BUFFERS = policy(
    "XLA_BUFFERS", 20_000, unit="buffers", why="of more, what is live at the peak takes too long to compute"
)
XLA_CALL_DEPTH = policy(
    "XLA_CALL_DEPTH", 8, unit="levels", why="of computations that call each other, of untrusted files"
)
XLA_UNROLLED_MOST = policy(
    "XLA_UNROLLED_MOST",
    1 << 16,
    unit="instructions",
    why="of one run of a program, all turns of its loops written out, that kernels are compared with",
)
XLA_WINDOW_SIZE = policy(
    "XLA_WINDOW_SIZE",
    1 << 14,
    unit="places of a kernel",
    why="along one axis of a convolution that are counted one by one, of untrusted files",
)
XLA_FUSION_DEPTH = policy(
    "XLA_FUSION_DEPTH", 4, unit="levels", why="of fusions that are looked into for a kernel's number format"
)
SILENCE_THREADS = policy(
    "SILENCE_THREADS",
    64,
    unit="threads",
    why="that every silence asks, at least: a file may have as many as events",
)
SILENCE_PAIRS = policy(
    "SILENCE_PAIRS",
    2_000_000,
    unit="pairs of a silence and a thread",
    why="with few silences more threads are asked",
)
XLA_DAMAGE_BYTES = policy(
    "XLA_DAMAGE_BYTES",
    64 << 20,
    unit="bytes of programs",
    why="that are searched for damage: a program of a hundred thousand instructions has some tens of MB",
)
XLA_DAMAGED_NAMES = policy("XLA_DAMAGED_NAMES", 3, unit="programs", why="that a sentence names")
XLA_BUFFER_PAIRS = policy(
    "XLA_BUFFER_PAIRS",
    20_000_000,
    unit="pairs of buffers",
    why="that are compared with each other: some seconds",
)
XLA_MEMORY_BYTES = policy("XLA_MEMORY_BYTES", 1 << 46, unit="bytes", why="no device has that much memory")
REPORT_LINES = policy("REPORT_LINES", 25, unit="lines", why="of the short report: one screen of a terminal")
REPORT_WIDTH = policy(
    "REPORT_WIDTH", 100, unit="columns", why="of the short report where the terminal's width is unknown"
)
FINDINGS_FIRST = policy("FINDINGS_FIRST", 3, unit="findings", why="that the short report shows")
HANG_ROWS = policy(
    "HANG_ROWS",
    8,
    unit="rows",
    why="of ranks in equal calls that the short report of a hang shows, the fewest ranks first",
)
ACCOUNT_ROWS_LEAST = policy(
    "ACCOUNT_ROWS_LEAST",
    3,
    unit="rows",
    why="of the account that the short report keeps, however much else there is",
)
ACCOUNT_ROW_SHARE = policy(
    "ACCOUNT_ROW_SHARE",
    0.005,
    unit="share of the step",
    why="smaller parts are one row of the short report together",
)
IDLE_NAMED = policy(
    "IDLE_NAMED",
    0.05,
    unit="share of the step",
    why="an idle part that takes less is not named in a sentence",
)
IDLE_HOLDS_UP = policy(
    "IDLE_HOLDS_UP",
    0.1,
    unit="share of the step",
    why="with less idle time in all, only kernels are left to improve",
)
WORTH_BLAMING = policy(
    "WORTH_BLAMING",
    1.05,
    unit="speed-up",
    why="a smaller one is the verdict only if it owns most of the idle time",
)
WORTH_PROMISING = policy(
    "WORTH_PROMISING", 1.005, unit="speed-up", why="less is written as 1.00×, so that it promises nothing"
)
LONGEST_ADVICE = policy("LONGEST_ADVICE", 80, unit="characters", why="of a fix that is part of a sentence")
WORTH_NAMING = policy(
    "WORTH_NAMING",
    0.5,
    unit="share",
    why="a smaller gap that no setting closes is left to --section coverage",
)
LEAST_UNKNOWN = policy(
    "LEAST_UNKNOWN",
    0.1,
    unit="share of kernel time",
    why="less of unknown work changes no figure that is shown",
)
MOST_CELLS = policy(
    "MOST_CELLS",
    1 << 22,
    unit="steps × parts",
    why="up to here sums go to an array of 32 MiB at most; beyond, to a table of what there is",
)
PROGRAMS_KEPT = policy(
    "PROGRAMS_KEPT",
    4,
    unit="programs",
    why="compiled programs whose text stays parsed: several parts of a report ask for the same few",
)
