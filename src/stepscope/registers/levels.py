"""Statistics: one definition each of a slow step, of noise and of significance, and the parameters of the methods.

The definitions themselves are functions in `stepscope.statistics`; report, findings, diff and gate all use those.
"""

from __future__ import annotations

from stepscope.registers.entry import level

# A slow step (an outlier): see stepscope.statistics.slow_steps.
SLOW_STEP_TIMES = level(
    "SLOW_STEP_TIMES",
    1.5,
    unit="× the median step",
    why="at least: a slow step must matter, and the deviation of few steps is uncertain; chosen, and the same in findings and diff before they shared it",
)
SLOW_STEP_DEVIATIONS = level(
    "SLOW_STEP_DEVIATIONS",
    5,
    unit="median absolute deviations above the median",
    why="at least (3.4 σ of normal noise): keeps ordinary spread out where steps vary much; 8 mark the same steps in all 179 recordings that were looked at",
)
SLOW_STEP_FEWEST = level("SLOW_STEP_FEWEST", 5, unit="steps", why="fewer do not show which is usual")
RARE_STEPS = level(
    "RARE_STEPS",
    0.25,
    unit="share of steps",
    why="if more steps are slow, that is how the job runs, and not a rare event: the diff then compares the means",
)

# Noise: see stepscope.statistics.noise.
MAD_TO_SIGMA = level(
    "MAD_TO_SIGMA",
    1.4826,
    unit="σ per median absolute deviation",
    why="of a normal distribution; noise is the standard deviation by the median absolute deviation, which outliers do not move",
)
ORDINARY_SIGMAS = level(
    "ORDINARY_SIGMAS",
    5,
    unit="σ of a part of a step on ranks of its role",
    why="what is within that is noise and not a pause: of a thousand parts, hardly one is beyond",
)
MEDIAN_ERROR = level(
    "MEDIAN_ERROR",
    1.2533,
    unit="× the standard error of the mean",
    why="the standard error of a median, of normal noise",
)
FOUR_FIFTHS_SIGMA = level(
    "FOUR_FIFTHS_SIGMA",
    1.2816,
    unit="σ",
    why="four of five values of a normal distribution are closer to its mean",
)
FOUR_FIFTHS = level(
    "FOUR_FIFTHS",
    0.8,
    unit="quantile",
    why="where the tail of the scatter of names is read, beside its middle: one changed op does not move it",
)
SCATTER_FREEDOM = level(
    "SCATTER_FREEDOM",
    5.0,
    unit="degrees of freedom",
    why="the scatter of names has heavy tails: a few differ by far more than most",
)
PRIOR_FREEDOM = level(
    "PRIOR_FREEDOM",
    4.0,
    unit="degrees of freedom",
    why="what is known of runs in general counts as this many more recordings",
)
BOOTSTRAP_SEED = level("BOOTSTRAP_SEED", 20_261_115, unit="seed", why="fixed, so that a diff repeats itself")
BOOTSTRAP_RESAMPLES = level(
    "BOOTSTRAP_RESAMPLES", 400, unit="resamples", why="standard errors are then off by 1/√800, about 4 %"
)
BOOTSTRAP_FEWEST_RESAMPLES = level(
    "BOOTSTRAP_FEWEST_RESAMPLES",
    50,
    unit="resamples",
    why="standard errors off by 10 %, however many steps there are",
)
BOOTSTRAP_MOST_DRAWN = level(
    "BOOTSTRAP_MOST_DRAWN",
    400_000,
    unit="values",
    why="drawn for one figure: with more steps than 1,000 the resamples are fewer, and need not be many",
)
FEW_RANKS = level(
    "FEW_RANKS",
    3,
    unit="ranks",
    why="up to these, the differences of the same ranks of two runs agree by coincidence: then what ranks of one run differ by counts as noise, too (false alarms of simulated equal runs of 2 ranks: 7 % instead of 15 %)",
)

# Significance: see stepscope.statistics.significance.
SIGNIFICANCE = level(
    "SIGNIFICANCE",
    0.05,
    unit="probability",
    why="the risk of calling a difference of noise significant; noise margins are 95 % intervals for the same reason",
)
FAMILIES = level(
    "FAMILIES",
    6,
    unit="kinds of rows",
    why="of a diff, each of which gets an equal part of the risk, so that two equal runs show any significant difference in at most 5 % of pairs",
)
PAIRING_SIGNIFICANCE = level(
    "PAIRING_SIGNIFICANCE",
    0.01,
    unit="probability",
    why="steps of one number are compared as pairs only if their correlation is this unlikely in noise: a wrong pairing makes noise look small",
)
TURNS_SIGNIFICANCE = level(
    "TURNS_SIGNIFICANCE",
    0.1,
    unit="probability",
    why="that a healthy rank is late this often, in jobs that lose by late ranks in turn what is worth showing: those are few, so that a weaker test does little harm",
)

# How much is enough to judge by.
FEWEST_STEPS = level("FEWEST_STEPS", 3, unit="steps", why="fewer do not show what a job does in every step")
FEWEST_PAIRS = level("FEWEST_PAIRS", 4, unit="pairs of steps", why="the correlation of fewer shows nothing")
FEWEST_SCATTERED_NAMES = level(
    "FEWEST_SCATTERED_NAMES",
    5,
    unit="names",
    why="of fewer the scatter between two recordings cannot be estimated",
)
FEWEST_SPEED_KINDS = level(
    "FEWEST_SPEED_KINDS",
    8,
    unit="kinds of calls",
    why="whose median is the speed of host or device: one slow op must not move it",
)
FEWEST_SPEED_NAMES = level(
    "FEWEST_SPEED_NAMES",
    3,
    unit="names",
    why="that calls of fewer kinds must have for their median to be a speed",
)
FEWEST_SAME_TIMES = level(
    "FEWEST_SAME_TIMES",
    16,
    unit="figures",
    why="that must agree to the nanosecond before two profiles are taken for one recording",
)

# Clocks of ranks, fitted by the ends of collectives.
EARLY_QUANTILE = level(
    "EARLY_QUANTILE",
    0.2,
    unit="quantile",
    why="most noise makes ends late and never early: the earliest fifth shows most, and is not a single outlier",
)
EARLY_QUANTILE_LOW = level(
    "EARLY_QUANTILE_LOW",
    0.05,
    unit="quantile",
    why="from here to the next the residuals show how dense they are at the earliest fifth",
)
EARLY_QUANTILE_HIGH = level(
    "EARLY_QUANTILE_HIGH",
    0.6,
    unit="quantile",
    why="see EARLY_QUANTILE_LOW; between closer ones there are too few residuals",
)
NEAR_SIGMA = level(
    "NEAR_SIGMA",
    0.1,
    unit="σ",
    why="residuals closer to the line weigh alike, so that none weighs infinitely much",
)
HUBER_SIGMA = level(
    "HUBER_SIGMA",
    1.5,
    unit="σ",
    why="Huber's loss: residuals farther away count as if they were at this distance",
)
DRIFT_SIGMA = level(
    "DRIFT_SIGMA",
    2.0,
    unit="standard errors of a variance",
    why="slopes must vary by more before clocks are believed to drift apart",
)
OFFSET_SIGMA = level(
    "OFFSET_SIGMA", 3.0, unit="standard errors", why="an offset below is taken for none where most are"
)
FIT_ROUNDS = level(
    "FIT_ROUNDS",
    20,
    unit="rounds",
    why="of fitting ends and lines in turn; chosen with benchmarks/ranks, whose clocks are within 20 µs",
)
FIT_ROUNDS_AGAIN = level(
    "FIT_ROUNDS_AGAIN", 10, unit="rounds", why="with the drifts given the offsets are nearly there"
)
FEWEST_ENDS_FOR_DRIFT = level(
    "FEWEST_ENDS_FOR_DRIFT",
    5,
    unit="ends",
    why="a line takes two; of fewer left over its error cannot be estimated",
)
MOST_ANCHORS = level(
    "MOST_ANCHORS",
    400,
    unit="ends of a rank",
    why="more make the error no smaller than the noise of the rest",
)

# Process groups that the profile does not name, told apart by the ends of their calls.
FEWEST_GROUP_CALLS = level(
    "FEWEST_GROUP_CALLS", 3, unit="calls", why="of two ranks; the spread of fewer differences shows nothing"
)
MOST_GROUP_CALLS = level(
    "MOST_GROUP_CALLS", 64, unit="calls of a stream", why="more do not change the result"
)
GROUP_GAP = level(
    "GROUP_GAP", 4.0, unit="×", why="noise of one size leaves no such gap between neighbours of a sorted list"
)
GROUP_QUANTILE = level(
    "GROUP_QUANTILE", 0.75, unit="quantile", why="of the calls of a group agree; the others may be outliers"
)

# Ranks that are late.
AS_LATE = level(
    "AS_LATE",
    0.5,
    unit="× its own typical lateness",
    why="what is far less has another cause, and is not counted as the rank being late again",
)

# Quantiles.
TAIL_QUANTILE = level("TAIL_QUANTILE", 0.9, unit="quantile", why="p90: the tail that reports show")
HEAD_QUANTILE = level("HEAD_QUANTILE", 0.1, unit="quantile", why="p10: the other end of the spread")
IDLE_LAUNCH_QUANTILE = level(
    "IDLE_LAUNCH_QUANTILE",
    0.1,
    unit="quantile",
    why="of the recorded launch delays: those of launches that met an idle device; longer ones come from the queue",
)

# Trials: see stepscope.trial.estimate.
TRIAL_ALPHA = level(
    "TRIAL_ALPHA",
    0.05,
    unit="two-sided",
    why="the interval of a trial without a change contains 1 in 19 of 20",
)

# The whole job: see stepscope.ranks.job.what_if.
LASTING_SIGMAS = level(
    "LASTING_SIGMAS",
    2.5,
    unit="standard errors",
    why="by which a rank's excess over its peers must exceed 0 over the steps: noise alone does that on one of 160 healthy ranks",
)
JOB_GAIN_SIGMAS = level(
    "JOB_GAIN_SIGMAS",
    1.28,
    unit="standard errors",
    why="of the gain over steps, to each side: eight of ten, as for every promise",
)
