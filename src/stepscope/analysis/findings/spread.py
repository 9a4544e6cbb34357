"""How far apart the ends of a promise are: doubts do not all come true at once, and gains differ from what any rule foresees.

How much they differ depends on what a fix removes. A compiler's time goes as a whole; with a wait or a copy more goes than a
profile shows; and how much of a batch is padding no profile shows. Each code has one of a few spreads, by the gains of blind trials.
"""

from __future__ import annotations

from stepscope.analysis.findings.finding import Interval
from stepscope.lazy import dataclass
from stepscope.registers.calibration.promises import (
    BEST_TOGETHER,
    BEST_TOGETHER_OF_DATA,
    BEST_TOGETHER_OF_DEVICE,
    BEST_TOGETHER_OF_LAUNCHES,
    BEYOND_WORK,
    BEYOND_WORK_OF_FALLBACKS,
    BEYOND_WORK_OF_RESULTS,
    GAINS_AT_BEST,
    GAINS_AT_WORST,
    REMAINS,
    REMAINS_OF_LISTS,
    REMAINS_OF_PYTHON,
    UNFORESEEN_ABOVE,
    UNFORESEEN_ABOVE_OF_COPIES,
    UNFORESEEN_ABOVE_OF_DATA,
    UNFORESEEN_ABOVE_OF_DEVICE,
    UNFORESEEN_ABOVE_OF_FEW_LAUNCHES,
    UNFORESEEN_ABOVE_OF_LAUNCHES,
    UNFORESEEN_ABOVE_OF_LOOPS,
    UNFORESEEN_ABOVE_OF_PRODUCTS,
    UNFORESEEN_ABOVE_OF_PYTHON,
    UNFORESEEN_ABOVE_OF_RARE,
    UNFORESEEN_ABOVE_OF_RESULTS,
    UNFORESEEN_ABOVE_OF_RUNTIME,
    UNFORESEEN_ABOVE_OF_TYPES,
    UNFORESEEN_ABOVE_OF_WEIGHTS,
    UNFORESEEN_BELOW,
    UNFORESEEN_BELOW_OF_DATA,
    UNFORESEEN_BELOW_OF_DEVICE,
    UNFORESEEN_BELOW_OF_FEW_LAUNCHES,
    UNFORESEEN_BELOW_OF_LOOPS,
    UNFORESEEN_BELOW_OF_PYTHON,
    UNFORESEEN_BELOW_OF_RARE,
    UNFORESEEN_BELOW_OF_RESULTS,
    UNFORESEEN_BELOW_OF_RUNTIME,
    WORST_TOGETHER,
    WORST_TOGETHER_OF_DATA,
    WORST_TOGETHER_OF_DEVICE,
)


@dataclass(frozen=True)
class Spread:
    """`above`, `below`: by how much gains differ from the middle anyway. `best`, `worst`: how much of what is in doubt comes together.

    `remains`: the share of what goes that a fix may put in its place, which decides where little else is left.
    `beyond`: how many times the speed-up may be that what surely stays allows. `always`: also where the device decides how long a
    step takes; the others are of the host.
    """

    above: float
    below: float
    best: float = BEST_TOGETHER
    worst: float = WORST_TOGETHER
    remains: float = 0.0
    beyond: float = BEYOND_WORK
    always: bool = False

    def around(self, left: Interval, work: float = 0.0) -> Interval:
        """What a change leaves of a step, with the ends of the interval that should hold the truth.

        `work` surely stays: no job is faster than that, but for how far the recorded work of a device is from that of the job.
        """
        if not 0 < left.mid < 1:
            return left
        unforeseen = (1 - left.mid) ** 0.5
        low, high = (
            left.mid * (end / left.mid) ** share
            for end, share in ((left.low, self.best), (left.high, self.worst))
        )
        low = min(low, left.mid / (1 + self.above * unforeseen))
        low = max(low, min(left.mid, work / self.beyond))
        replaced = left.mid + self.remains * (1 - left.mid)
        high = max(high, left.mid * (1 + self.below * unforeseen), replaced)
        return self._moved(Interval(low, left.mid, min(1.0, high)), work)

    def _moved(self, left: Interval, work: float) -> Interval:
        """Most promises that were wrong at first looks were too low, whatever the fix removed; bounds stay."""
        if not self.above:
            return left
        least = min(left.low, work / self.beyond)
        return Interval(
            max(least, left.low**GAINS_AT_BEST), left.mid, max(left.mid, left.high**GAINS_AT_WORST)
        )


OF_DEVICE = Spread(
    UNFORESEEN_ABOVE_OF_DEVICE,
    UNFORESEEN_BELOW_OF_DEVICE,
    BEST_TOGETHER_OF_DEVICE,
    WORST_TOGETHER_OF_DEVICE,
)
# Matrix products whose arithmetic is known: tensor cores hardly do better than measured.
OF_PRODUCTS = Spread(
    UNFORESEEN_ABOVE_OF_PRODUCTS,
    UNFORESEEN_BELOW_OF_DEVICE,
    BEST_TOGETHER_OF_DEVICE,
    WORST_TOGETHER_OF_DEVICE,
)
# The same for fixes that have hardly been tried: small gains of theirs were twice as large as expected.
OF_RARE = Spread(
    UNFORESEEN_ABOVE_OF_RARE,
    UNFORESEEN_BELOW_OF_RARE,
    BEST_TOGETHER_OF_DEVICE,
    WORST_TOGETHER_OF_DEVICE,
)
OF_HOST = Spread(UNFORESEEN_ABOVE, UNFORESEEN_BELOW, remains=REMAINS)
# Sparse updates of tables: what these cost the host was measured and is in the promise, which gains no more than one of the device.
OF_UPDATES = Spread(UNFORESEEN_ABOVE_OF_DEVICE, UNFORESEEN_BELOW, remains=REMAINS)
# Which copies and kernels an op on the device makes unnecessary beside its own, no profile of one on the host shows.
OF_FALLBACKS = Spread(UNFORESEEN_ABOVE, UNFORESEEN_BELOW, remains=REMAINS, beyond=BEYOND_WORK_OF_FALLBACKS)
OF_RUNTIME = Spread(UNFORESEEN_ABOVE_OF_RUNTIME, UNFORESEEN_BELOW_OF_RUNTIME)
OF_WEIGHTS = Spread(UNFORESEEN_ABOVE_OF_WEIGHTS, UNFORESEEN_BELOW_OF_RUNTIME)
# Where a few launches of many go, the step may be as long as before: hosts differ more than that from one minute to the next.
OF_FEW_LAUNCHES = Spread(UNFORESEEN_ABOVE_OF_FEW_LAUNCHES, UNFORESEEN_BELOW_OF_FEW_LAUNCHES)
OF_LOOPS = Spread(UNFORESEEN_ABOVE_OF_LOOPS, UNFORESEEN_BELOW_OF_LOOPS)
# What computation can hide at least and at most: nothing is pulled in, nothing is unforeseen.
OF_BOUNDS = Spread(0.0, 0.0, 1.0, 1.0, always=True)
# What the host may still do with a small result stays in the smallest set of changes, so that the low end stays as well.
OF_RESULTS = Spread(
    UNFORESEEN_ABOVE_OF_RESULTS,
    UNFORESEEN_BELOW_OF_RESULTS,
    worst=OF_BOUNDS.worst,
    beyond=BEYOND_WORK_OF_RESULTS,
    always=True,
)
# Of values that are read one by one: the one read that replaces them is counted, at worst as it was.
OF_READS = Spread(UNFORESEEN_ABOVE, UNFORESEEN_BELOW, worst=OF_BOUNDS.worst)
# A small fix or a large one: which of them is possible depends on the program, so that both ends stay.
OF_CHOICE = Spread(UNFORESEEN_ABOVE_OF_LOOPS, UNFORESEEN_BELOW_OF_LOOPS, OF_BOUNDS.best, OF_BOUNDS.worst)
# A loop that ends by a value, or after a number of turns: which of them it becomes is up to the program, so that the low end stays.
OF_TURNS = Spread(UNFORESEEN_ABOVE_OF_RUNTIME, UNFORESEEN_BELOW_OF_RUNTIME, worst=OF_BOUNDS.worst)
# Of programs that were compiled in each step, only first runs were recorded: where hardly anything else is left, they decide, and at
# worst later runs are as long, of the largest shape. Beside a device, work that was not recorded decides in the same way.
OF_FIRST_RUNS = OF_TURNS
# From half of the launches to one graph: which of them people choose is not in doubt but up to them, so that the low end stays.
OF_LAUNCHES = Spread(
    UNFORESEEN_ABOVE_OF_LAUNCHES, UNFORESEEN_BELOW_OF_LOOPS, BEST_TOGETHER_OF_LAUNCHES, OF_BOUNDS.worst
)
# How much faster a step is that has all cores for itself differs from model to model, and by half of it on a busy machine.
OF_CACHES = Spread(UNFORESEEN_ABOVE, UNFORESEEN_BELOW, worst=WORST_TOGETHER_OF_DEVICE, remains=REMAINS)
OF_PYTHON = Spread(UNFORESEEN_ABOVE_OF_PYTHON, UNFORESEEN_BELOW_OF_PYTHON, remains=REMAINS_OF_PYTHON)
# Lists that are read item by item: the arrays that take their place are picked or stacked, which is not free.
OF_LISTS = Spread(UNFORESEEN_ABOVE_OF_PYTHON, UNFORESEEN_BELOW_OF_PYTHON, remains=REMAINS_OF_LISTS)
# Whether what Python prepares is then sent as fewer bytes, or only an index of what the device has already, no profile shows.
OF_UPLOADS = Spread(
    UNFORESEEN_ABOVE_OF_PYTHON, UNFORESEEN_BELOW_OF_PYTHON, BEST_TOGETHER_OF_DATA, remains=REMAINS_OF_PYTHON
)
# Bytes that Python turned into numbers: what the fix puts in its place, sending the bytes, is in the promise already.
OF_BYTES = Spread(UNFORESEEN_ABOVE_OF_PYTHON, UNFORESEEN_BELOW_OF_PYTHON)
OF_COPIES = Spread(UNFORESEEN_ABOVE_OF_COPIES, UNFORESEEN_BELOW_OF_PYTHON, remains=REMAINS)
OF_DATA = Spread(
    UNFORESEEN_ABOVE_OF_DATA,
    UNFORESEEN_BELOW_OF_DATA,
    BEST_TOGETHER_OF_DATA,
    WORST_TOGETHER_OF_DATA,
    always=True,
)
# How many entries are zeros no profile shows, nor whether the fix reads each edge once or writes a message for it: some jobs
# gained what this does at worst, others what it does at best.
OF_ZEROS = Spread(
    UNFORESEEN_ABOVE_OF_DATA,
    UNFORESEEN_BELOW_OF_DATA,
    BEST_TOGETHER_OF_DATA,
    OF_BOUNDS.worst,
    always=True,
)
# Which lengths are compiled, and so how long a batch of short samples becomes, is up to people.
OF_CHOSEN_SHAPES = Spread(
    UNFORESEEN_ABOVE_OF_DEVICE,
    UNFORESEEN_BELOW_OF_DEVICE,
    BEST_TOGETHER_OF_DEVICE,
    WORST_TOGETHER_OF_DATA,
)
# What a compiled program computes again it may compute for nothing: some became slower when it was kept, so that the low end stays.
OF_KEPT = Spread(
    UNFORESEEN_ABOVE_OF_DEVICE,
    UNFORESEEN_BELOW_OF_DEVICE,
    BEST_TOGETHER_OF_DEVICE,
    OF_BOUNDS.worst,
    always=True,
)
# How fast kernels of another type are at worst is a bound, which some jobs reach.
OF_TYPES = Spread(
    UNFORESEEN_ABOVE_OF_TYPES,
    UNFORESEEN_BELOW_OF_DATA,
    BEST_TOGETHER_OF_DEVICE,
    OF_BOUNDS.worst,
    always=True,
)

# All other codes are of the host where it decides, as waits and input are.
_BY_CODE = {
    "allocator-churn": OF_RUNTIME,
    "cpu-fallback": OF_FALLBACKS,
    "dense-zeros": OF_ZEROS,
    "double-precision": OF_TYPES,
    "eager-execution": OF_RUNTIME,
    "exposed-collective": OF_BOUNDS,
    "exposed-copy": OF_COPIES,
    "grad-in-inference": OF_RUNTIME,
    "host-offload": OF_BOUNDS,
    "host-python": OF_PYTHON,
    "launch-bound": OF_LAUNCHES,
    "optimizer-loop": OF_RUNTIME,
    "padding": OF_DATA,
    "recompilation": OF_RUNTIME,
    "recomputed-weights": OF_WEIGHTS,
    "retracing": OF_RUNTIME,
    "round-trip-copy": OF_RESULTS,
    "unbatched-loop": OF_LOOPS,
    "weight-casts": OF_FEW_LAUNCHES,
}


# Fewer than three blind trials had one of these first, with a promise.
_RARE = frozenset(
    (
        "dropout-in-inference",
        "edge-messages",
        "expanded-copies",
        "fft-length",
        "full-sort",
        "one-hot-product",
        "repeated-backward",
        "repeated-rows",
        "repeated-work",
        "sequential-scan",
        "sliced-gradients",
        "slow-op",
        "small-kernels-in-loop",
        "unrouted-experts",
        "unused-rows",
        "work-in-loop",
    )
)


def spread_of(code: str, device_decides: bool) -> Spread:
    """Of the gains that findings with this code promise; an empty code is for several fixes together."""
    own = _BY_CODE.get(code, OF_HOST)
    if own.always or not device_decides:
        return own
    return OF_RARE if code in _RARE else OF_DEVICE
