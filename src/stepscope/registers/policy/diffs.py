"""What a diff shows, and when two runs are comparable."""

from __future__ import annotations

from stepscope.registers.entry import policy

_BENCH = "chosen with benchmarks/diff"

# What is judged and shown.
SLIVER = policy(
    "SLIVER",
    0.004,
    unit="share of the step",
    why="smaller figures are not judged, and take nothing from the significance of the others",
)
LEAST_DIFFERENCE = policy(
    "LEAST_DIFFERENCE",
    0.002,
    unit="share of the step",
    why="smaller differences do not matter, however significant",
)
DIFF_ROWS = policy("DIFF_ROWS", 200, unit="rows", why="of each table, unless -n says otherwise")
DIFF_TEXT_ROWS = policy(
    "DIFF_TEXT_ROWS", 10, unit="rows", why="of each table in a terminal or in Markdown: one screen"
)
DIFF_HTML_ROWS = policy(
    "DIFF_HTML_ROWS", 100, unit="rows", why="of each table of the page, which can be searched"
)
DIFF_TEXT_WIDTH = policy(
    "DIFF_TEXT_WIDTH", 110, unit="characters", why="where the terminal does not say how wide it is"
)
DIFF_LONGEST_NAME = policy("DIFF_LONGEST_NAME", 90, unit="characters", why="of a name in Markdown")
DIFF_LONGEST_SHAPES = policy("DIFF_LONGEST_SHAPES", 60, unit="characters", why="of shapes in a cell")
LEAST_KERNELS_PER_CALL = policy(
    "LEAST_KERNELS_PER_CALL",
    4,
    unit="kernels",
    why="of which one alone differs per call: fewer leave nothing to compare it with",
)
COMMENT_ROWS = policy(
    "COMMENT_ROWS", 20, unit="rows", why="of each folded table in a comment on a pull request"
)
COMMENT_LINES = policy(
    "COMMENT_LINES", 6, unit="lines", why="of what changed, at the top of a comment: more is not read"
)
COMMENT_BYTES = policy(
    "COMMENT_BYTES", 60_000, unit="bytes", why="GitHub refuses comments of more than 65,536 characters"
)
DIFF_NAMES_PER_PART = policy(
    "DIFF_NAMES_PER_PART",
    100,
    unit="names",
    why="of the account, by rank: what is left out is far too small to explain anything",
)
DIFF_SCOPES = policy(
    "DIFF_SCOPES",
    200,
    unit="scopes",
    why="of one op with rows of their own: an op in thousands of scopes is a loop, and one row",
)
DIFF_FLAME_NODES = policy(
    "DIFF_FLAME_NODES", 2_000, unit="nodes", why="of the flame graph of a diff: the largest"
)
DIFF_FLAME_DEPTH = policy("DIFF_FLAME_DEPTH", 100, unit="levels", why="of scopes of untrusted files")
DIFF_PROBLEMS = policy(
    "DIFF_PROBLEMS", 4, unit="problems", why="of a side that are listed; its report has all"
)
DIFF_DEVICES = policy(
    "DIFF_DEVICES",
    4,
    unit="devices",
    why="with a row of their own for memory; of more only the fullest matters",
)
SHARE_AS_FACTOR = policy(
    "SHARE_AS_FACTOR",
    9,
    unit="relative change",
    why="larger ones are written as a factor: 11× reads better than +1000 %",
)
SHARE_WITHOUT_DIGITS = policy(
    "SHARE_WITHOUT_DIGITS", 0.1, unit="relative change", why="from here on a percentage has no decimals"
)

# The verdict.
NOTABLE_SPEED = policy(
    "NOTABLE_SPEED",
    0.03,
    unit="relative speed of host or device",
    why="from here on the verdict mentions that the machine was slower or faster",
)
NOTABLE_CHANGE = policy(
    "NOTABLE_CHANGE", 0.1, unit="relative change of the step", why="mentioned though it is within noise"
)
NOTABLE_SLOW_STEPS = policy(
    "NOTABLE_SLOW_STEPS",
    0.05,
    unit="share of the step",
    why="that slow steps cost more: mentioned though it is within noise",
)
FINDING_GROWN = policy(
    "FINDING_GROWN", 1.5, unit="×", why="what has grown, and not only crossed its threshold"
)

# Lines that explain the change.
DIFF_LINES = policy("DIFF_LINES", 8, unit="lines", why="one screen; the tables have the rest")
DIFF_LIKELY_LINES = policy(
    "DIFF_LIKELY_LINES", 3, unit="lines", why="where no single part of the change is significant"
)
DIFF_COUNT_LINES = policy(
    "DIFF_COUNT_LINES", 4, unit="lines", why="about ops that are called more or less often"
)
DIFF_NAMED_OPS = policy("DIFF_NAMED_OPS", 3, unit="ops", why="that such a line names")
DIFF_WHOLE_COUNTS = policy(
    "DIFF_WHOLE_COUNTS", 1_000, unit="calls", why="from here on counts are written without fractions"
)
NEARLY_ALL_OF_CHANGE = policy(
    "NEARLY_ALL_OF_CHANGE",
    0.8,
    unit="share of a row's change",
    why="a finer row that makes so much of it stands for it",
)
SAME_CAUSE = policy(
    "SAME_CAUSE",
    0.5,
    unit="share of the change",
    why="that a batch, a precision, a name or an op must explain to be named for it",
)
WHOLE_CHANGE = policy(
    "WHOLE_CHANGE",
    1.1,
    unit="share of the change",
    why="a line may be off by a little; calls that overlap sum to far more, and get no share",
)
PRECISION_ABSENT = policy(
    "PRECISION_ABSENT",
    0.01,
    unit="share of the time of matrix products",
    why="below, a run as good as does not use a number format",
)
PRECISION_PRESENT = policy(
    "PRECISION_PRESENT",
    0.2,
    unit="share of the time of matrix products",
    why="above, the other run clearly does",
)
WORK_BEFORE_WAITS = policy(
    "WORK_BEFORE_WAITS",
    1.25,
    unit="×",
    why="what the device computes for longer, others wait for as long, and a wait makes no op longer: of both the op comes first",
)
CAUSE_OF_CHANGE = policy(
    "CAUSE_OF_CHANGE",
    0.1,
    unit="share of the step's change",
    why="that changed work, or a rank's part, must be worth to be its cause",
)
WAIT_CAUSES_DISPATCH = policy(
    "WAIT_CAUSES_DISPATCH",
    0.1,
    unit="share of the concurrent dispatch",
    why="a smaller wait has not caused that",
)
DIFF_RANKS = policy(
    "DIFF_RANKS", 16, unit="ranks", why="whose parts changed most are compared one by one: bounds the time"
)
RANK_STANDS_OUT = policy(
    "RANK_STANDS_OUT",
    0.5,
    unit="share of the rank's change",
    why="by which it must differ from the others where the part changed on all ranks",
)
DIFF_RANK_NAMES = policy("DIFF_RANK_NAMES", 2, unit="names", why="of a rank's part that a line gives")

# Whether the two are comparable.
WORK_OUTSIDE_STEPS = policy(
    "WORK_OUTSIDE_STEPS",
    0.5,
    unit="share of the ops' time outside of steps",
    why="above, the steps do not wait for their work, and say nothing about its time",
)
SAME_CODE = policy(
    "SAME_CODE",
    0.5,
    unit="share of what a run does in every step",
    why="that the other must do as well, before what only one does is listed",
)
STEADY_SHAPES = policy(
    "STEADY_SHAPES",
    0.25,
    unit="share of all calls",
    why="that have the same shapes in all steps, before other shapes show another program: inputs of all lengths show nothing",
)
SAME_GRIDS = policy(
    "SAME_GRIDS",
    0.5,
    unit="share of the time of common kernels",
    why="launched alike, before kernels show the device's speed: else they do other work",
)
SAME_KERNELS = policy(
    "SAME_KERNELS",
    0.5,
    unit="share of the time of all kernels",
    why="that both must have, before kernels show the device's speed",
)
SAME_BYTES = policy(
    "SAME_BYTES",
    0.005,
    unit="relative difference of bytes per step",
    why="more are other copies, whose time differs for that reason",
)
SAME_TIMES_SHARE = policy(
    "SAME_TIMES_SHARE",
    0.6,
    unit="share of figures that agree to the nanosecond",
    why="two profiles of one recording: edited copies differ in some; two recordings agree in two of a hundred at most",
)
SAME_TIMES_NS = policy("SAME_TIMES_NS", 20_000, unit="ns", why="shorter figures agree by coincidence")
SLOWEST_SPEED = policy(
    "SLOWEST_SPEED",
    0.01,
    unit="× the usual speed",
    why="keeps a division finite where a step has next to no calls",
)
LEAST_SPEED_RATIO = policy("LEAST_SPEED_RATIO", 0.001, unit="ratio", why="keeps a logarithm finite")

# Another batch.
BATCH_SHARE = policy(
    "BATCH_SHARE",
    0.6,
    unit="share of the time of ops whose shapes differ",
    why="must differ by the same factor; " + _BENCH,
)
BATCH_SHARE_ODD = policy(
    "BATCH_SHARE_ODD",
    0.9,
    unit="share of the time of ops whose shapes differ",
    why="the same for factors such as 1065/1024: else lengths differ from step to step",
)
BATCH_SIMPLE = policy(
    "BATCH_SIMPLE", 8, unit="numerator or denominator", why="a batch is 3/2 or 8 times another"
)
BATCH_LARGEST = policy(
    "BATCH_LARGEST", 4096, unit="numerator or denominator", why="larger fractions are not a ratio of batches"
)
BATCH_OF_ALL_CALLS = policy(
    "BATCH_OF_ALL_CALLS", 0.2, unit="share of all calls", why="a batch is in every activation"
)
BATCH_FEWEST_OPS = policy(
    "BATCH_FEWEST_OPS",
    5,
    unit="names of ops",
    why="whose shapes differ by the factor are a batch however many calls an optimizer makes, whose shapes stay",
)
BATCH_STAGES_OFF = policy(
    "BATCH_STAGES_OFF",
    0.03,
    unit="relative difference",
    why="calls of stages of an input pipeline are off by a batch begun before the recording or ended after it",
)
BATCH_FEWEST_SAMPLES = policy(
    "BATCH_FEWEST_SAMPLES",
    2,
    unit="samples",
    why="a stage that is called no more often per batch does not count samples",
)
BATCH_TEXT = policy("BATCH_TEXT", 400, unit="characters of shapes", why="longer ones are lists of parameters")
BATCH_SHAPES = policy(
    "BATCH_SHAPES", 40, unit="shapes of an op", why="that are compared with each other: bounds the time"
)
DIFF_BRIEF_VERDICT = policy("DIFF_BRIEF_VERDICT", 4, unit="lines", why="of the verdict on one screen")
DIFF_BRIEF_CAVEATS = policy("DIFF_BRIEF_CAVEATS", 2, unit="caveats", why="that one screen has, a line each")
DIFF_BRIEF_LINES = policy(
    "DIFF_BRIEF_LINES", 4, unit="lines", why="of explanation: the parts of a step need room, too"
)
DIFF_BRIEF_FINDINGS = policy("DIFF_BRIEF_FINDINGS", 3, unit="findings", why="that changed, a line each")
DIFF_BRIEF_NAME = policy(
    "DIFF_BRIEF_NAME", 20, unit="characters", why="of a run's name that stay in any case"
)
