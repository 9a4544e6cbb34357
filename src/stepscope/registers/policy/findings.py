"""When a finding is worth showing."""

from __future__ import annotations

from stepscope.registers.entry import policy

# All findings.
WORTH_SHOWING = policy(
    "WORTH_SHOWING",
    0.03,
    unit="share of the step",
    why="less is within the accuracy of a promise; also what late ranks must cost",
)
WORTH_A_FINDING = policy(
    "WORTH_A_FINDING",
    0.05,
    unit="share of the step",
    why="of findings whose fix takes work: input, Python, compilation, kernels, the optimizer, collectives, slow steps",
)
WORTH_A_SENTENCE = policy(
    "WORTH_A_SENTENCE",
    0.01,
    unit="share of the step",
    why="what disappears along with a finding is mentioned from here on",
)
DECIDED_BY_DEVICE = policy(
    "DECIDED_BY_DEVICE",
    0.8,
    unit="share of the step",
    why="in which the device works: then it decides how long the step is",
)
REPLAY_FITS = policy(
    "REPLAY_FITS",
    0.3,
    unit="share of the step",
    why="where the replay of the unchanged steps is off by more, a promise rests on the account instead",
)
MOST_SAVED = policy(
    "MOST_SAVED",
    0.99,
    unit="share of the step",
    why="every fix leaves something: a speed-up of more than 100× is written as that",
)
TOP_NAMES = policy("TOP_NAMES", 3, unit="names", why="that a finding's evidence lists")
NAMED_STEPS = policy("NAMED_STEPS", 5, unit="steps", why="that a sentence lists by number")
MAJORITY = policy("MAJORITY", 0.5, unit="share", why="`most`, `mostly`: more than half")
NEARLY_ALL = policy(
    "NEARLY_ALL",
    0.9,
    unit="share",
    why="of the time of a finding in one step of several: then it did not happen in the others",
)
SURE_GAIN = policy(
    "SURE_GAIN",
    1.05,
    unit="speed-up, at least",
    why="of a finding about kernels that may have no better ones, before it is more than advice",
)
KNOWN_ENOUGH = policy(
    "KNOWN_ENOUGH",
    0.9,
    unit="share of kernel time",
    why="must have the figures (FLOPs, blocks per multiprocessor) before a sum over them is shown for all of it",
)

UNSURE_KERNELS = policy(
    "UNSURE_KERNELS",
    0.5,
    unit="certainty",
    why="of findings that ask for other kernels: often there are none",
)

TF32_WORK = policy(
    "TF32_WORK",
    0.3,
    unit="share of the step",
    why="in TF32 products, before other numbers are advised: they change the results",
)
UNSURE_PRECISION = policy(
    "UNSURE_PRECISION", 0.7, unit="certainty", why="some models need the digits of fp32"
)

DOUBLE_TO_SINGLE_MOST = policy(
    "DOUBLE_TO_SINGLE_MOST",
    0.6,
    unit="share of the time",
    why="that a kernel on float64 needs with float32 at most: half the bytes, and a start that stays",
)
DOUBLE_TO_SINGLE_LEAST = policy(
    "DOUBLE_TO_SINGLE_LEAST",
    0.45,
    unit="share of the time",
    why="that it needs at least: half the bytes fit into caches better",
)

# The host.
UNSURE_LAUNCHES = policy(
    "UNSURE_LAUNCHES",
    0.35,
    unit="certainty",
    why="slow launches are seen beside most other causes; over 33 recorded jobs any value of 0.2 to 0.42 ranks the cause best",
)
LONGEST_LAUNCH_NS = policy(
    "LONGEST_LAUNCH_NS",
    100_000,
    unit="ns of unprofiled host time per launch",
    why="more is not launching: something computes on the host",
)
WAITS_BEFORE_LAUNCHES = policy(
    "WAITS_BEFORE_LAUNCHES",
    10,
    unit="waits per step",
    why="while a step waits so often, faster launches are the second stage of the finding about waits",
)
OPS_READ_WITH_A_WAIT = policy(
    "OPS_READ_WITH_A_WAIT",
    3,
    unit="launches",
    why="that make the value which is waited for, and go with it at most",
)
LOOP_ITERATIONS = policy(
    "LOOP_ITERATIONS",
    8,
    unit="calls of one op or module in one call of a function",
    why="fewer are written out by hand, or a handful of terms of a loss",
)
LOOP_CALLS_OF_FUNCTION = policy(
    "LOOP_CALLS_OF_FUNCTION",
    24,
    unit="calls of one function in one call of another",
    why="a model written in functions calls one for each of its layers, which cannot be batched",
)
LOOP_BODY_SHARE = policy(
    "LOOP_BODY_SHARE",
    0.5,
    unit="share of a function's launches",
    why="then the time between its calls is the loop's, too",
)
LOOP_LEAST = policy(
    "LOOP_LEAST",
    0.1,
    unit="share of the step in which the device waits for the loop",
    why="a shorter loop is left to the findings about waits and launches",
)
LOOP_WORK_LEAST = policy(
    "LOOP_WORK_LEAST",
    0.1,
    unit="share of the replayed step in which the host works in the loop",
    why="a loop that hardly does more than wait is left to the finding about waits",
)
BATCHED_EFFICIENCY_LEAST = policy(
    "BATCHED_EFFICIENCY_LEAST",
    0.3,
    unit="share of the bound",
    why="what batched products and gathers of small pieces reach at least",
)
BATCHED_EFFICIENCY_MOST = policy(
    "BATCHED_EFFICIENCY_MOST",
    0.8,
    unit="share of the bound",
    why="what they reach at most: pieces of different lengths are padded",
)
BATCHED_OPS_MOST = policy(
    "BATCHED_OPS_MOST",
    4,
    unit="batched ops for each op of the loop",
    why="sorting, padding and gathering come with it",
)
LONG_WORK_OF_HOST = policy(
    "LONG_WORK_OF_HOST",
    0.3,
    unit="share of the host's time",
    why="that must go before the caches of what follows are taken to stay warm",
)
GAPS_TO_KNOW_QUEUE = policy(
    "GAPS_TO_KNOW_QUEUE", 20, unit="queued kernels", why="from which the gap between two of them is known"
)
LONG_PYTHON_NS = policy(
    "LONG_PYTHON_NS",
    300_000,
    unit="ns of Python",
    why="that makes an array which is worth sending; the same bound as for `python` itself",
)
UPLOADS_AFTER_PYTHON = policy(
    "UPLOADS_AFTER_PYTHON",
    4,
    unit="launches",
    why="after it, among which copies to the device take its result",
)
BYTES_BEFORE_FLOATS = policy(
    "BYTES_BEFORE_FLOATS",
    0.25,
    unit="of the bytes that are sent",
    why="images and tokens that the host turns into 32-bit numbers were bytes before: sent so, and turned into numbers on the device",
)
ARRAYS_OF_A_BATCH = policy(
    "ARRAYS_OF_A_BATCH",
    5,
    unit="arrays sent in a step",
    why="a batch has a few arrays; where more of them are sent from the host's memory in every step, they are weights",
)
MORE_WORKERS_LEAST = policy(
    "MORE_WORKERS_LEAST",
    6,
    unit="workers",
    why="that an input pipeline gets at least when it is moved off the loop, net of what they cost each other: the advice is eight",
)
COLLECTIVE_LEFT_MOST = policy(
    "COLLECTIVE_LEFT_MOST",
    0.5,
    unit="share of the exposed communication",
    why="that stays exposed at most: overlap is seldom complete",
)
LAUNCHES_LEAST = policy(
    "LAUNCHES_LEAST",
    5,
    unit="kernels and graphs launched in a step",
    why="that an eager step must launch before fewer launches are advised: what holds up three or four is not their number",
)
LAUNCH_BOUND_LEAST = policy(
    "LAUNCH_BOUND_LEAST",
    0.10,
    unit="share of the step in dispatch",
    why="a little dispatch shows in any healthy job",
)
LAUNCH_GAIN_LEAST = policy(
    "LAUNCH_GAIN_LEAST", 0.05, unit="share of the replayed step", why="faster launches must save this much"
)
LAUNCH_GAIN_AFTER_FIXES = policy(
    "LAUNCH_GAIN_AFTER_FIXES",
    0.1,
    unit="share of the replayed step",
    why="the same once waits and the optimizer are fixed: those are better fixed themselves",
)
UNEXPLAINED_LEAST = policy(
    "UNEXPLAINED_LEAST",
    0.10,
    unit="share of the step",
    why="it names no cause, so that less is not worth a reader's time",
)
OPTIMIZER_KERNELS = policy(
    "OPTIMIZER_KERNELS",
    100,
    unit="kernels per step",
    why="a fused or foreach optimizer launches a few for all parameters together",
)
EAGER_CALLS = policy(
    "EAGER_CALLS",
    10,
    unit="calls of programs or ops per step",
    why="JAX and TensorFlow compile whole steps: so many calls show that this one is not compiled",
)
EAGER_DISTINCT_CALLS = policy(
    "EAGER_DISTINCT_CALLS",
    5,
    unit="distinct programs or ops",
    why="fewer may be a few compiled programs that a step calls one after the other",
)
KERNELS_OF_EAGER_CALL = policy(
    "KERNELS_OF_EAGER_CALL",
    3,
    unit="kernels per call",
    why="an op of JAX that runs by itself is one kernel or two; a compiled program has more, and its elementwise ops are fused",
)
WARM_UP_STEPS = policy(
    "WARM_UP_STEPS", 3, unit="steps", why="more slow steps at the beginning are something else"
)
STEPS_TO_KNOW_WARM_UP = policy(
    "STEPS_TO_KNOW_WARM_UP",
    3,
    unit="steps",
    why="of which only the first compiles, before compilation counts as warm-up",
)
ELSEWHERE_TOO = policy(
    "ELSEWHERE_TOO",
    0.1,
    unit="share of a function's time in slow steps",
    why="a function that takes more than this in the other steps too does not set the slow ones apart",
)
LONGEST_WORTH_NAMING = policy(
    "LONGEST_WORTH_NAMING",
    1.2,
    unit="× the mean slow step",
    why="only then does the longest one add something to the sentence",
)
SILENCE_TIMES = policy(
    "SILENCE_TIMES",
    4,
    unit="silences",
    why="at one place that must end with the device's work before they count as waits that left no event",
)
SILENCE_SHARE = policy(
    "SILENCE_SHARE",
    0.85,
    unit="share of silences at one place",
    why="that must do so: user code that takes its own time does not end when the device does",
)
INPUT_HIGH = policy(
    "INPUT_HIGH",
    0.20,
    unit="share of the step waiting for input",
    why="`high`; the same bound as XProf, so that both say the same",
)
INPUT_MODERATE = policy(
    "INPUT_MODERATE",
    0.05,
    unit="share of the step waiting for input",
    why="`moderate`; the same bound as XProf",
)
LEAST_HOST_LEFT = policy(
    "LEAST_HOST_LEFT",
    0.15,
    unit="share of a host interval",
    why="no correction for the profiler takes more than the rest: costs per event are estimates",
)
STEP_DECIDED_BY_HOST = policy(
    "STEP_DECIDED_BY_HOST",
    0.1,
    unit="share of the step",
    why="that its length must vary with the host's speed before the host's speed is inferred from it",
)
DISPATCH_SEARCH_ROUNDS = policy(
    "DISPATCH_SEARCH_ROUNDS",
    7,
    unit="rounds",
    why="of that bisection: the share is then known to 0.75 / 2⁷ = 0.006",
)
PROMISE_NOISE = policy(
    "PROMISE_NOISE",
    0.04,
    unit="share of the speed-up, on either side",
    why="steps of one job differ by so much from minute to minute, before and after a change",
)
MOST_STEP_NOISE = policy(
    "MOST_STEP_NOISE",
    0.06,
    unit="share of the step",
    why="the spread of unprofiled steps that a promise takes over at most",
)
STEP_NOISE_SHARE = policy(
    "STEP_NOISE_SHARE",
    0.5,
    unit="share of their spread",
    why="that a promise takes over: blocks of four steps scatter more than the mean of twenty",
)
ACCOUNT_SAVES_LEAST = policy(
    "ACCOUNT_SAVES_LEAST",
    0.6,
    unit="share of the owned time",
    why="that goes in any case, where only the account can say what goes",
)
ACCOUNT_SAVES = policy(
    "ACCOUNT_SAVES", 0.85, unit="share of the owned time", why="that is expected to go there"
)

# Kernels and batches.
FUSING_GAIN_LEAST = policy(
    "FUSING_GAIN_LEAST", 0.05, unit="share of the step", why="that fusing formulas must save"
)
LOOP_ADVICE_LEAST = policy(
    "LOOP_ADVICE_LEAST",
    0.3,
    unit="share of the step",
    why="that small kernels of a loop inside a program must take: below that, what can leave the loop hardly changes the step",
)
TURNS_OF_LOOP = policy(
    "TURNS_OF_LOOP",
    64,
    unit="calls of one kernel in a step",
    why="layers of deep networks share a kernel some tens of times; sequences and rollouts have hundreds of turns",
)
FUSING_ADVICE_LEAST = policy(
    "FUSING_ADVICE_LEAST",
    0.1,
    unit="share of the step",
    why="that fusing everything must save before it is advised",
)
FORMULA_TRAFFIC = policy(
    "FORMULA_TRAFFIC",
    6.0,
    unit="× the bytes that enter and leave a chain",
    why="that its kernels move before it is a formula written op by op; layers as frameworks have them move less (15 healthy jobs)",
)
SURE_FUSION = policy(
    "SURE_FUSION",
    0.65,
    unit="certainty",
    why="compilers fuse most such chains, a break in the graph keeps some apart; of seven jobs with such chains it was the mistake of one: work for nothing comes first",
)
MEMORY_TO_KEEP_ACTIVATIONS = policy(
    "MEMORY_TO_KEEP_ACTIVATIONS",
    0.3,
    unit="share of the device's memory",
    why="that must be free before activations are advised to be kept",
)
DENSE_TABLE_LEAST = policy(
    "DENSE_TABLE_LEAST",
    0.2,
    unit="share of the step",
    why="sparse gradients change what an optimizer does: less is not worth it",
)
FEW_ROWS_OF_TABLE = policy(
    "FEW_ROWS_OF_TABLE",
    0.1,
    unit="share of a table's rows",
    why="a batch that touches more gains little from sparse gradients",
)
LIGHT_PASS = policy(
    "LIGHT_PASS",
    0.3,
    unit="share of the heaviest pass",
    why="a pass of an optimizer over all its parameters moves at least so much of that",
)
COPIES_ON_DEVICE_LEAST = policy(
    "COPIES_ON_DEVICE_LEAST",
    0.2,
    unit="share of the step",
    why="some copies are part of any healthy job: up to 12 % in 15 of them",
)
LONG_KERNEL_NS = policy(
    "LONG_KERNEL_NS", 50_000, unit="ns", why="shorter kernels are launch-bound, whatever their blocks"
)
LEAST_BLOCKS_FACTOR = policy(
    "LEAST_BLOCKS_FACTOR",
    0.05,
    unit="× the kernel's time",
    why="no promise that filling the device makes a kernel more than 20 times faster",
)
SCORES_LENGTH = policy(
    "SCORES_LENGTH",
    128,
    unit="rows of a table of attention scores",
    why="fusing the attention of shorter sequences saves little",
)
BATCH_TIMES = policy("BATCH_TIMES", 8, unit="× the batch", why="that `small-batch` promises for")
SMALL_BATCH_ROWS = policy(
    "SMALL_BATCH_ROWS",
    32,
    unit="rows of a product",
    why="up to here a product waits for its weights to be read",
)
WEIGHTS_OVER_BATCH = policy(
    "WEIGHTS_OVER_BATCH",
    16,
    unit="× the rows",
    why="weights that are so much larger than the batch decide how long a product takes",
)
SMALL_PRODUCTS_WORK = policy(
    "SMALL_PRODUCTS_WORK",
    0.3,
    unit="share of the device's work",
    why="in such products, before the batch is called small",
)
SMALL_PRODUCTS_SHARE = policy(
    "SMALL_PRODUCTS_SHARE",
    0.8,
    unit="share of the products",
    why="that must be small, so that one small layer does not count",
)
UPDATE_WORK = policy(
    "UPDATE_WORK",
    0.6,
    unit="share of the device's work",
    why="in the optimizer, before the batch is called small",
)

# Copies and memory.
OFFLOADED_BYTES = policy(
    "OFFLOADED_BYTES",
    16 << 20,
    unit="bytes of a copy",
    why="from which it may be the weights of a layer: batches have one or two arrays that are as large",
)
OFFLOADED_ARRAYS = policy(
    "OFFLOADED_ARRAYS",
    3,
    unit="copies from pinned memory in a step",
    why="of at least that size, from which they are taken for weights: a layer has several, a batch hardly more than two",
)
DETOUR_BYTES = policy(
    "DETOUR_BYTES", 64 << 10, unit="bytes", why="less is a figure that was read, not data that was moved"
)
MEMORY_PRESSURE = policy(
    "MEMORY_PRESSURE",
    0.9,
    unit="share of the device's memory",
    why="fragmentation and the next larger batch take the rest",
)
MEMORY_GROWTH_BYTES = policy(
    "MEMORY_GROWTH_BYTES", 1 << 20, unit="bytes per step", why="less is the allocator's rounding"
)
MEMORY_GROWTH_SHARE = policy(
    "MEMORY_GROWTH_SHARE", 0.001, unit="share of the peak per step", why="less fills no device within a run"
)
STEADY_GROWTH = policy(
    "STEADY_GROWTH",
    0.5,
    unit="least / largest growth of a step",
    why="what is kept by accident is kept in every step; a level that only drifts is no growth",
)
PEAK_KNOWN = policy(
    "PEAK_KNOWN",
    0.95,
    unit="share of the peak",
    why="below, the report says how much was allocated before the recording",
)
MXU_REACHED_LEAST = policy(
    "MXU_REACHED_LEAST",
    0.4,
    unit="share of the peak",
    why="that large products of a TPU reach at least in well-tuned models; below it tiles are padded or small",
)
MXU_REACHED_MOST = policy(
    "MXU_REACHED_MOST",
    0.7,
    unit="share of the peak",
    why="that large products of a TPU reach in the best of models",
)
