"""Finding the steps of a recording that does not mark them, or marks them in part."""

from __future__ import annotations

from stepscope.registers.entry import policy

_CORPUS = "chosen on recordings whose steps are known"

ANNOTATION_FILLS = policy(
    "ANNOTATION_FILLS",
    0.8,
    unit="share of the time from its first to its last occurrence",
    why="that an annotation must fill to be the step",
)
PARTIAL_STEP = policy(
    "PARTIAL_STEP",
    0.5,
    unit="× the events of the other steps",
    why="with fewer, the first or last step was recorded in part",
)
SPINE_SHARE = policy(
    "SPINE_SHARE",
    0.5,
    unit="share of the recording",
    why="calls that come once and last longer hold the loop and are looked into",
)
SPINE_LEVELS = policy(
    "SPINE_LEVELS",
    4,
    unit="levels",
    why="of calls within calls that are looked into: `main`, `fit`, an epoch, a loop",
)
THREAD_CALLS = policy(
    "THREAD_CALLS", 0.05, unit="share of all calls", why="a thread with fewer does not run the loop"
)
STEP_THREADS = policy(
    "STEP_THREADS", 20, unit="threads", why="that are searched for steps: each costs a look at all events"
)
CALLS_AFTER_UPDATE = policy(
    "CALLS_AFTER_UPDATE",
    0.35,
    unit="share of a step's calls",
    why="that may come after the update of the weights: logging, schedules; " + _CORPUS,
)
SLIVER_OF_STEP = policy(
    "SLIVER_OF_STEP",
    0.1,
    unit="share of a step",
    why="what is left over at an end is not worth a step of its own",
)
EVEN_PERIODS = policy(
    "EVEN_PERIODS",
    0.8,
    unit="share of calls that all periods share",
    why="a cut that leaves more unevenly spread shows no repetition; " + _CORPUS,
)
AS_EVEN = policy(
    "AS_EVEN",
    0.02,
    unit="evenness",
    why="cuts that differ by less are equally good, and the shortest period is taken; " + _CORPUS,
)
ALIKE_PERIODS = policy(
    "ALIKE_PERIODS",
    0.87,
    unit="share of calls that a period shares with the typical one",
    why="from here on it is like it; " + _CORPUS,
)
FAR_MORE_ALIKE = policy(
    "FAR_MORE_ALIKE",
    0.35,
    unit="share of periods",
    why="this many more alike periods speak for two networks trained in turn; " + _CORPUS,
)
NETWORKS_IN_TURN = policy(
    "NETWORKS_IN_TURN", 3, unit="networks", why="that may be trained in turn in one step"
)
PERIOD_CANDIDATES = policy(
    "PERIOD_CANDIDATES", 40, unit="calls", why="that are tried as the beginning of a step: bounds the time"
)
MARKS_PER_PERIOD = policy(
    "MARKS_PER_PERIOD",
    8,
    unit="calls",
    why="of one kind that a step may have: updates of weights, batches fetched",
)
FEW_PERIODS = policy(
    "FEW_PERIODS",
    3,
    unit="periods",
    why="up to these, what is before the first and after the last counts as one more",
)
WHOLE_PERIOD = policy(
    "WHOLE_PERIOD",
    0.9,
    unit="share of the typical period",
    why="that the two ends must hold together to be a whole one",
)
WHOLE_PERIOD_MOST = policy(
    "WHOLE_PERIOD_MOST", 1.3, unit="× the typical period", why="more than this is not a single period"
)
WORK_OF_STEPS = policy(
    "WORK_OF_STEPS",
    0.9,
    unit="share of the recording's device time",
    why="that steps have to launch; less, and they are layers or leave the main work out: refuses 8 of 12 wrong periods "
    "and none of 24 right ones of public recordings",
)
WORK_OF_BARE_PERIODS = policy(
    "WORK_OF_BARE_PERIODS",
    0.99,
    unit="share of the recording's device time",
    why="that a period has to launch if nothing but repetition shows that it is a step: layers leave out what comes before "
    "the first and after the last, a loop does not",
)
EVEN_WORK = policy(
    "EVEN_WORK",
    0.1,
    unit="× an equal share of the work",
    why="that the typical period has to launch: with less, something repeats beside the work, such as a copy of the input",
)
SAMPLED_FROM_EVENTS = policy(
    "SAMPLED_FROM_EVENTS",
    400_000,
    unit="events",
    why="a shorter recording is analysed within two seconds, and findings look at all of its steps",
)
SAMPLE_EVENTS = policy(
    "SAMPLE_EVENTS",
    100_000,
    unit="events",
    why="in the steps that findings look at: fewer save no time that anyone would notice",
)
SAMPLE_STEPS = policy(
    "SAMPLE_STEPS",
    16,
    unit="steps",
    why="that findings look at, at least: enough for medians and for steps of two kinds",
)
SAMPLE_DIFFERS = policy(
    "SAMPLE_DIFFERS",
    0.02,
    unit="share of the step",
    why="by which the account of these steps may differ from that of all: less than a finding needs to be shown",
)

# Slow steps that come back.
SLOW_STEPS_RECUR = policy(
    "SLOW_STEPS_RECUR",
    2,
    unit="distances between slow steps",
    why="at least: two that are equal show a period, a single one does not",
)
UNKNOWN_PERIOD_TAIL = policy(
    "UNKNOWN_PERIOD_TAIL",
    0.1,
    unit="share of cases on either side of an interval",
    why="eight of ten promises should hold the truth: with a single start of workers in a window the chance of a period falls with its square",
)
FIRST_BATCH_STAYS = policy(
    "FIRST_BATCH_STAYS",
    0.5,
    unit="share of the wait for the first batch of an epoch",
    why="expected with workers that persist: they need not start, but still make that batch; none to all of it, which a profile does not show separately",
)
RESTART_LEAVES_MOST = policy(
    "RESTART_LEAVES_MOST",
    3,
    unit="× the time of what a restarted pipeline leaves",
    why="train_on_batch and predict_on_batch still go through Keras in each step, a function of one's own does not",
)
