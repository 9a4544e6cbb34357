"""How far the ends of a promise are from its middle, by what a fix removes."""

from __future__ import annotations

from stepscope.registers.entry import measured

_H200 = "NVIDIA H200 and its host, PyTorch 2.11 and JAX 0.11"
_WHEN = "2026-11-17"
_LOOKS = (
    "gains of 63 jobs at the first look of four blind trials, before the rules were corrected by them, "
    "with those of 105 jobs of six trials against the rules of now"
)
_RIGHT = "of the 63, each trial left out in turn, 48 promises were right, with these values 50, and 42 with those before"
_LATER = (
    "gains of 59 host-bound recordings at the first look of three later blind trials (jobs 141 to 196), "
    "and of 61 against the rules of now, which they helped to correct"
)
_LATER_DEVICE = (
    "gains of 43 device-bound recordings at the first look of three later blind trials (jobs 141 to 196), "
    "and of 47 against the rules of now, which they helped to correct"
)
_ALL_LOOKS = "gains of 96 jobs at the first look of five blind trials (jobs 121 to 216), against the middle of the promise; the tables in docs/report/findings.md"
_TOGETHER = "share of the distance to that end, as a logarithm"
_UNFORESEEN = "share of the middle, times the root of what is saved"
_REMAINS = "share of the time that goes"


def _end(name: str, value: float, unit: str, seen: str, what: str = _LOOKS) -> float:
    when = "2026-11-18" if what is _ALL_LOOKS else _WHEN
    return measured(name, value, unit=unit, device=_H200, how=what, when=when, seen=seen)


# What is in doubt is hardly ever at its best or its worst at once.
BEST_TOGETHER = _end(
    "BEST_TOGETHER",
    0.5,
    _TOGETHER,
    "33 of 37 promises of two of the trials right with 0.8 and wider ends, as many with 0.5 and these",
    _LATER,
)
BEST_TOGETHER_OF_DEVICE = _end(
    "BEST_TOGETHER_OF_DEVICE",
    0.75,
    _TOGETHER,
    "all that were right with 0.8 are right with 0.6",
    _LATER_DEVICE,
)
WORST_TOGETHER = _end("WORST_TOGETHER", 0.3, _TOGETHER, _RIGHT)
WORST_TOGETHER_OF_DEVICE = _end("WORST_TOGETHER_OF_DEVICE", 0.5, _TOGETHER, _RIGHT)
BEST_TOGETHER_OF_LAUNCHES = _end(
    "BEST_TOGETHER_OF_LAUNCHES",
    0.8,
    _TOGETHER,
    "three jobs whose loops became one call gained what one graph does; two that halved their launches, what half of them do",
    "gains of three jobs with a planted bottleneck (benchmarks/diagnosis) and of two of blind trials",
)

# Of 333 promises at first looks on a GPU, 79 were too low and 32 too high, by whatever the fix removed.
_EVERY_LOOK = (
    "gains of 333 jobs at the first look of all blind trials on a GPU; the tables in docs/report/trials.md"
)
_POWER = "power of the share of the step that is left"
_LESS_WRONG = "249 of the 333 promises right, 239 without; a median width of 1.63, 1.56 without"


def _power(name: str, value: float, seen: str) -> float:
    return measured(name, value, unit=_POWER, device=_H200, how=_EVERY_LOOK, when="2026-11-19", seen=seen)


GAINS_AT_BEST = _power("GAINS_AT_BEST", 1.05, _LESS_WRONG)
GAINS_AT_WORST = _power("GAINS_AT_WORST", 1.02, _LESS_WRONG)

# What the device still has to do bounds any gain, but kernels run a little faster without the profiler.
BEYOND_WORK = measured(
    "BEYOND_WORK",
    1.04,
    unit="× the step by the device's work that is left",
    device=_H200,
    how="gains of 57 host-bound jobs of six blind trials against the unprofiled step by that work; above all but two of them",
    when=_WHEN,
    seen="more than that work allows in 9 of 57: seven by 0 to 4 %, one by 35 % and one by 40 %",
)

BEYOND_SHORTENED = measured(
    "BEYOND_SHORTENED",
    1.25,
    unit="× the step by the device's work that is left",
    device=_H200,
    how="the same where a fix shortens kernels, which may become shorter than foreseen: gains of device-bound jobs at first looks",
    when=_WHEN,
    seen="at most 0.24 above the middle in 19 of 31, more in the others",
)
BEYOND_WORK_OF_FALLBACKS = measured(
    "BEYOND_WORK_OF_FALLBACKS",
    1.25,
    unit="× the step by the device's work that is left",
    device=_H200,
    how="gains of two jobs whose op on the host became one on the device (benchmarks/diagnosis), against that work",
    when="2026-11-19",
    seen="more than that work allows by 17 and 30 %: copies and kernels around the op went as well",
)

BEYOND_WORK_OF_RESULTS = measured(
    "BEYOND_WORK_OF_RESULTS",
    1.15,
    unit="× the step by the device's work that is left",
    device=_H200,
    how="gains of two jobs of a blind trial whose results the host computed on in NumPy, against that work",
    when="2026-11-19",
    seen="more than that work allows by 10 %, where NumPy took a seventh longer when the gain was measured; less in the other",
)

# Kernels, copies on the device and all else where the device decides how long a step takes.
UNFORESEEN_ABOVE_OF_DEVICE = _end(
    "UNFORESEEN_ABOVE_OF_DEVICE",
    0.32,
    _UNFORESEEN,
    "at most 0.24 above in 19 of 31 first looks, 0.38 to 2.9 in the others; at most 0.25 in 31 of 37 now, 0.32 to 2.7 in the others",
    _LATER_DEVICE,
)
UNFORESEEN_BELOW_OF_DEVICE = _end(
    "UNFORESEEN_BELOW_OF_DEVICE",
    0.13,
    _UNFORESEEN,
    "at most 0.13 below in 24 of 25 first looks, 0.28 in jobs seen before",
)

# Fixes that few trials had: what they really take with them has not been seen often enough.
UNFORESEEN_ABOVE_OF_RARE = _end(
    "UNFORESEEN_ABOVE_OF_RARE",
    0.75,
    _UNFORESEEN,
    "0.71 above for work in a loop, 1.05 for rows that nothing reads; the other codes of this kind were never first",
    _ALL_LOOKS,
)
UNFORESEEN_BELOW_OF_RARE = _end(
    "UNFORESEEN_BELOW_OF_RARE",
    0.3,
    _UNFORESEEN,
    "not below for these two; 0.6 to 1.0 below in three jobs whose kind of program had not been tried before",
    _ALL_LOOKS,
)

# Compilers, allocators and dispatch op by op: time that goes as a whole.
UNFORESEEN_ABOVE_OF_RUNTIME = _end(
    "UNFORESEEN_ABOVE_OF_RUNTIME",
    0.3,
    _UNFORESEEN,
    "at most 0.32 above in all 7 of these; 0.22 in 6 of 7 earlier first looks, 0.51 in one",
    _LATER,
)
UNFORESEEN_BELOW_OF_RUNTIME = _end(
    "UNFORESEEN_BELOW_OF_RUNTIME",
    0.18,
    _UNFORESEEN,
    "0.01 to 0.18 below in three of 7, 0.55 in one; at most 0.23 in all 7 earlier first looks",
    _LATER,
)

# Waits, input and round trips: more goes with them than any profile shows.
UNFORESEEN_ABOVE = _end(
    "UNFORESEEN_ABOVE",
    0.4,
    _UNFORESEEN,
    "at most 0.44 above in 15 of 19 first looks, the others loaders with workers; now in 19 of 22, then 0.73 to 1.8; earlier 0.05 to 1.2 above in 9 of 12",
    _LATER,
)
UNFORESEEN_BELOW = _end(
    "UNFORESEEN_BELOW",
    0.18,
    _UNFORESEEN,
    "below in 8 of 19 first looks, by 0.05 to 0.47; now in 9 of 22, by 0.09 to 0.30; in 2 of 12 earlier first looks",
    _LATER,
)
REMAINS = _end(
    "REMAINS",
    0.038,
    _REMAINS,
    "large gains were up to a quarter below the middle in jobs seen before: 7 instead of 9, 15 instead of 18",
)

# Products in plain fp32, but for convolutions, on tensor cores.
UNFORESEEN_ABOVE_OF_PRODUCTS = _end(
    "UNFORESEEN_ABOVE_OF_PRODUCTS",
    0.2,
    _UNFORESEEN,
    "0.04 below to 0.11 above the middle of the fix that was made; a job of convolutions 0.35 to 0.64 above",
    "gains of four jobs, three of benchmarks/diagnosis and one of a blind trial, against the rules of now",
)

# Results that the host copies and searches: what it still does with them after the fix, no recording shows.
UNFORESEEN_ABOVE_OF_RESULTS = _end(
    "UNFORESEEN_ABOVE_OF_RESULTS",
    0.95,
    _UNFORESEEN,
    "0.03, 0.62 and 0.89 above in three of four jobs",
    _ALL_LOOKS,
)
UNFORESEEN_BELOW_OF_RESULTS = _end(
    "UNFORESEEN_BELOW_OF_RESULTS",
    0.3,
    _UNFORESEEN,
    "0.06 below in one; 0.95 below in a job whose host still counts, which the smallest set of changes leaves it since then",
    "gains of four jobs (two of a blind trial, two of benchmarks/diagnosis) against the rules of now, and first looks",
)

# Weights that are computed again: hooks, and slower calls of the modules that have them, go with that.
UNFORESEEN_ABOVE_OF_WEIGHTS = _end(
    "UNFORESEEN_ABOVE_OF_WEIGHTS",
    1.0,
    _UNFORESEEN,
    "0.8 and 1.0 above the middle",
    "gains of a vocoder whose weight norm was removed, in two recordings of one blind trial",
)

# A few launches among many, such as casts: the host's own speed differs more than they take.
UNFORESEEN_ABOVE_OF_FEW_LAUNCHES = _end(
    "UNFORESEEN_ABOVE_OF_FEW_LAUNCHES",
    0.66,
    _UNFORESEEN,
    "0.39 to 0.89 above the middle in two of three, 0.46 below in the third",
    "gains of three decoders of three blind trials whose casts of weights were removed",
)
UNFORESEEN_BELOW_OF_FEW_LAUNCHES = _end(
    "UNFORESEEN_BELOW_OF_FEW_LAUNCHES",
    0.6,
    _UNFORESEEN,
    "0.57 below the middle in one and 0.89 above it in the other; 0.95 to 1.9 in their rounds",
    "gains of two host-bound decoders of two blind trials whose casts of weights, a fourth of the launches and a seventh of the host's time, were removed",
)

# Loops that become one call: how fast that is depends on its sizes.
UNFORESEEN_ABOVE_OF_LOOPS = _end(
    "UNFORESEEN_ABOVE_OF_LOOPS",
    0.65,
    _UNFORESEEN,
    "0.07 below, then 0.29, 0.57 and 0.70 above; 3.2 in a job that is read in another way now",
    _ALL_LOOKS,
)
UNFORESEEN_ABOVE_OF_LAUNCHES = _end(
    "UNFORESEEN_ABOVE_OF_LAUNCHES",
    0.35,
    _UNFORESEEN,
    "0.48 below to 0.25 above in 5 of these; earlier above the middle in 3 of 5 first looks, by 0.23, 0.46 and 2.4",
    _LATER,
)
UNFORESEEN_BELOW_OF_LOOPS = _end("UNFORESEEN_BELOW_OF_LOOPS", 0.25, _UNFORESEEN, "by 0.17 to 0.36 in these")

# Python code: what replaces it, and what copies and launches go with it, no profile shows.
UNFORESEEN_ABOVE_OF_PYTHON = _end(
    "UNFORESEEN_ABOVE_OF_PYTHON",
    0.42,
    _UNFORESEEN,
    "at most 0.37 above in 11 of 13 first looks, 2.1 and 2.4 in a job that is round-trip-copy now; now at most 0.42 in all 11",
    _LATER,
)
UNFORESEEN_BELOW_OF_PYTHON = _end(
    "UNFORESEEN_BELOW_OF_PYTHON",
    0.26,
    _UNFORESEEN,
    "below in 5 of 13 first looks, by 0.01 to 0.47; with 0.18, 5 of 22 later first looks were below the interval, three of them by less than 0.15",
    _LATER,
)
REMAINS_OF_PYTHON = _end(
    "REMAINS_OF_PYTHON",
    0.05,
    _REMAINS,
    "0.00 and 0.07; functions beside the one that takes most are counted by themselves",
    "steps of two jobs after a replay buffer in Python became NumPy arrays with one index, against the replay without that code",
)
REMAINS_OF_LISTS = _end(
    "REMAINS_OF_LISTS",
    0.07,
    _REMAINS,
    "-0.01, 0.01 and 0.06",
    "steps of three jobs after lists of arrays that torch.tensor read item by item became arrays, stacked or picked with one index, against the replay without that code",
)
UNFORESEEN_ABOVE_OF_COPIES = _end(
    "UNFORESEEN_ABOVE_OF_COPIES",
    1.2,
    _UNFORESEEN,
    "1.2 to 2.1 times the middle",
    "gains of three jobs of five blind trials that sent the same arrays in every step, against the middle: the host's handling of each array goes with its copy",
)

# What decides is not in the profile: lengths of samples, zeros in a matrix; of rates of another type, bounds are known.
BEST_TOGETHER_OF_DATA = _end(
    "BEST_TOGETHER_OF_DATA", 1.0, _TOGETHER, "a sparse matrix gained what it does at best"
)
WORST_TOGETHER_OF_DATA = _end(
    "WORST_TOGETHER_OF_DATA", 0.7, _TOGETHER, "two others gained less than the middle by 0.45 times the root"
)
UNFORESEEN_ABOVE_OF_DATA = _end(
    "UNFORESEEN_ABOVE_OF_DATA", 1.0, _UNFORESEEN, "0.3 to 1.05 above in padded jobs"
)
UNFORESEEN_BELOW_OF_DATA = _end("UNFORESEEN_BELOW_OF_DATA", 0.1, _UNFORESEEN, "not seen in padded jobs")
UNFORESEEN_ABOVE_OF_TYPES = _end(
    "UNFORESEEN_ABOVE_OF_TYPES",
    0.4,
    _UNFORESEEN,
    "0.28 below to 0.34 above; 0.28 below to 0.80 above at first looks",
    "gains of three jobs in float64, of three blind trials in two recordings each, against the rules of now",
)
