"""The whole job: what is replayed, and when ranks, stages and links are called uneven."""

from __future__ import annotations

from stepscope.registers.entry import policy

MOST_REPLAYED_CALLS = policy(
    "MOST_REPLAYED_CALLS",
    1_000_000,
    unit="calls of all ranks",
    why="what one process can hold, some 300 MB; of jobs with more the last steps are replayed, at least one",
)
COURSES_AT_ONCE = policy(
    "COURSES_AT_ONCE",
    64,
    unit="ranks",
    why="whose tables are put together at once: a small table takes ten times the memory of its rows, some 30 kB",
)
SAME_END_NS = policy(
    "SAME_END_NS",
    1_000,
    unit="ns",
    why="moments within a microsecond of each other are one: the clock of a device cannot resolve less",
)
BETWEEN_CALLS_NS = policy(
    "BETWEEN_CALLS_NS",
    5_000,
    unit="ns",
    why="a call that begins so soon after another of its stream had waited for it: kernels of a busy stream are 1 to 2 µs apart",
)
JOB_REPLAY_ERROR = policy(
    "JOB_REPLAY_ERROR",
    0.1,
    unit="share of the step",
    why="by which the replay of the unchanged job may differ from the recording; beyond, nothing is concluded from it",
)
MOST_LATE_PEERS = policy(
    "MOST_LATE_PEERS",
    0.5,
    unit="share of a role's ranks",
    why="that may be slower than their peers: of more than half, the others are the unusual ones",
)
AS_SLOW = policy(
    "AS_SLOW",
    0.5,
    unit="× the excess of the slowest rank",
    why="from here on ranks are slow together, as those of one machine are",
)
BLOCKED_LAUNCH = policy(
    "BLOCKED_LAUNCH",
    10,
    unit="× the rank's median launch",
    why="that a launch takes at least which waits for room in the queue of the device: as long as a kernel or a collective, not a call",
)
SHOWS = policy(
    "SHOWS",
    0.1,
    unit="share of what a host does longer than its peers",
    why="that must show as gaps of its device: what is hidden costs nothing",
)
SAME_SET = policy(
    "SAME_SET",
    0.95,
    unit="× the gain of more ranks",
    why="from here on the fewer ranks explain as much: the others need not be named",
)
ORDINARY = policy(
    "ORDINARY",
    0.1,
    unit="× what a part of a step usually takes",
    why="by which it varies on healthy devices, at most: whatever is done about jitter, that stays",
)
STANDS_STILL = policy(
    "STANDS_STILL",
    0.9,
    unit="share of the calls of a role",
    why="that ranks wait for until they end: such calls divide the work of every rank alike, those beside the work do not",
)
SLOW_IN_STEPS = policy(
    "SLOW_IN_STEPS",
    0.75,
    unit="share of the steps",
    why="in which a slow rank is slow, from the step on in which it became so: less is jitter",
)
SLOW_THROUGHOUT = policy(
    "SLOW_THROUGHOUT",
    0.75,
    unit="share of the work of a step",
    why="in parts that are slow, for a device to be slower and not to have paused: a pause is in one part",
)
FEWEST_PARTS = policy(
    "FEWEST_PARTS",
    4,
    unit="parts of a step",
    why="of fewer, most can be slow because of one pause",
)
UNEVEN_STAGES = policy(
    "UNEVEN_STAGES",
    0.05,
    unit="× the mean stage",
    why="by which the slowest stage must exceed it: layers cannot be divided any finer",
)
UNEVEN_TOKENS = policy(
    "UNEVEN_TOKENS",
    1.1,
    unit="× the tokens of the idlest rank",
    why="that the busiest of an exchange has in the typical one: routers balance to within some percent",
)
WITH_SIZE = policy(
    "WITH_SIZE",
    0.5,
    unit="× the larger messages",
    why="by which a rank with a longer batch must compute longer: an optimizer does not, and attention does by more",
)
SLOWER_LINK = policy(
    "SLOWER_LINK",
    1.25,
    unit="× the transfer of equal groups",
    why="below, links of one kind differ by placement and traffic",
)
FEWEST_LINKS = policy(
    "FEWEST_LINKS",
    2,
    unit="groups",
    why="with the same operation and size; of two, the slower one is not what the other shows to be possible",
)
IN_EXPERTS = policy(
    "IN_EXPERTS",
    0.6,
    unit="share of a rank's excess",
    why="between the exchanges of tokens, from which on it is uneven experts and no slow rank",
)
REPLAY_SAVES_LEAST = policy(
    "REPLAY_SAVES_LEAST",
    0.85,
    unit="× the replayed saving",
    why="the lower bound of a promise about the whole job: hosts that waited hide work that shows afterwards",
)
MOST_JOB_CAUSES = policy(
    "MOST_JOB_CAUSES", 3, unit="findings", why="what comes after is small, and mixed with noise"
)
WORTH_A_BUBBLE = policy(
    "WORTH_A_BUBBLE",
    0.25,
    unit="share of the step",
    why="by the schedule alone: with three micro-batches for each stage, (p - 1) of (4 p - 1) is idle, always less",
)
BUBBLE_CERTAINTY = policy(
    "BUBBLE_CERTAINTY",
    0.5,
    unit="of the saving",
    why="more micro-batches need memory or smaller matrices; what is broken comes first",
)
HIDING_CERTAINTY = policy(
    "HIDING_CERTAINTY",
    0.5,
    unit="of the saving",
    why="calls between tensor-parallel ranks, experts or stages are needed by the next layer: few can be hidden",
)
WORTH_JITTER = policy(
    "WORTH_JITTER",
    0.04,
    unit="share of the step",
    why="what parts of a step vary by on healthy devices is left out of it, and costs nothing; chosen with benchmarks/ranks/physics",
)
SAME_GAIN = policy(
    "SAME_GAIN",
    0.8,
    unit="× the saving on the rank",
    why="from here on the job gains as much as the rank; the replay of the job is no more exact than that",
)
RANKS_OF_A_NODE = policy(
    "RANKS_OF_A_NODE",
    8,
    unit="ranks",
    why="of one machine, where the profile does not name machines: the usual number of GPUs",
)
