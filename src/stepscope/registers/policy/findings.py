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
ALIKE_TURNS = policy(
    "ALIKE_TURNS",
    0.8,
    unit="share of the kernels of a step",
    why="that are in turns between two waits with about as many kernels each: each of these can be a graph. A prompt, or what a sampler computes between two tokens, may have the rest",
)
ALIKE_TURNS_DIFFER = policy(
    "ALIKE_TURNS_DIFFER",
    0.1,
    unit="share of the kernels of a turn",
    why="that turns of a loop differ by at most: a cache that grows changes which kernels run, and hardly how many",
)
TURN_KERNELS_LEAST = policy(
    "TURN_KERNELS_LEAST",
    50,
    unit="kernels between two waits",
    why="that are worth a graph, whose own launch takes about as long as ten kernels' do",
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
JOINED_MODULES = policy(
    "JOINED_MODULES",
    4,
    unit="modules of one class",
    why="that a function calls and joins the results of: heads of attention are six or twelve, and two or three are the keys and values, or the scales of a pyramid",
)
LOOP_CALLS_OF_FUNCTION = policy(
    "LOOP_CALLS_OF_FUNCTION",
    24,
    unit="calls of one function in one call of another",
    why="a model written in functions calls one for each of its layers, which cannot be batched",
)
STEPS_OF_ONE_CALL = policy(
    "STEPS_OF_ONE_CALL",
    2,
    unit="steps",
    why="that one call of a function may reach into, as the border between inferred steps may cut it; one in more is the loop over all steps",
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
ONE_PROGRAM_MOST = policy(
    "ONE_PROGRAM_MOST",
    1.5,
    unit="calls of compiled functions in a step of JAX",
    why="that a step has which is one program: in some steps there is another call, as to log",
)
LAUNCHES_LEAST = policy(
    "LAUNCHES_LEAST",
    5,
    unit="kernels and graphs launched in a step",
    why="that an eager step must launch before fewer launches are advised: what holds up three or four is not their number",
)
BLOCKING_LAUNCHES_LEAST = policy(
    "BLOCKING_LAUNCHES_LEAST",
    100,
    unit="launches of kernels",
    why="that a recording must have before they show whether launches wait for their kernels: single short kernels may end before their launch returns",
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
INSTRUCTIONS_OF_OP = policy(
    "INSTRUCTIONS_OF_OP",
    8,
    unit="instructions that compute",
    why="of 80 ops of JAX four have more by themselves (9 to 12: jnp.cross, hypot, median, allclose), and private ones that make random numbers: a program that has more, and one kernel, is a function whose ops were fused",
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
FIRST_CALL_TIMES = policy(
    "FIRST_CALL_TIMES",
    10,
    unit="× the longest later step",
    why="that something takes in the first step, before it counts as done once: the spread of steps is smaller",
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
    unit="share of silences at one place, or of their time",
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
WIDEST_PROMISE = policy(
    "WIDEST_PROMISE",
    15.0,
    unit="× the low end of a speed-up",
    why="a range from nothing to more than that says nothing: the finding is advice. The widest of benchmarks/diagnosis, which held the gain, is from 1.6 to 16",
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
