"""How often ops are called in a step, and whether the profile can tell."""

from __future__ import annotations

import re
from collections.abc import Collection

from stepscope.diffs.data.model import Row
from stepscope.diffs.noise.judge import Ground, Vectors, mean, row_of, vectors
from stepscope.diffs.noise.machine_speed import HOST

# TensorFlow records an op of the host while it thinks that it is expensive: which of the short ones it does is chance.
SHORT_NS = 100_000
# Not what anybody wrote: a compiler and the derivatives that a framework takes put these in.
_MADE = re.compile(r"(copy|bitcast|tuple|while|add_any|wrapped_.*|.*fusion)(\.\d+)?")
# Libraries clear their workspace or not, by the algorithm that was quickest in a trial when the program was compiled.
_BY_TRIAL = ("memset",)


def now_and_then(ground: Ground, framework: str | None, measure: str) -> set[str]:
    """Names of ops that TensorFlow recorded in one run more often than in the other, and that are so short that this says nothing."""
    if framework != "tensorflow" or measure != HOST:
        return set()
    calls, times = _by_name(ground, "calls"), _by_name(ground, "host_ns")
    found = set()
    for key in {**calls[0], **calls[1]}:
        counts = [mean(each.get(key, [])) for each in calls]
        # By the quickest step: in others the machine may have been busy with something else.
        quickest = min(
            time / count
            for counted, timed in zip(calls, times, strict=True)
            for count, time in zip(counted.get(key, []), timed.get(key, []), strict=True)
            if count
        )
        if counts[0] != counts[1] and quickest < SHORT_NS:
            found.add(str(key[0]))
    return found


def waits_that_differ(ground: Ground) -> list[Row]:
    """Calls that wait for the device, more or less often in each step: by the time that the host spends in them."""
    often = {row.name: row for row in _calls_that_differ(ground, (), "waits")}
    times = _by_name(ground, "ns", "waits")
    rows = []
    for name in sorted(often):
        values = [found.get((name,)) for found in times]
        rows.append(row_of(name, values[0], values[1]))
        rows[-1].a_calls, rows[-1].b_calls = often[name].a, often[name].b
        rows[-1].matched_by = "b" if values[0] is None else "a" if values[1] is None else "name"
    return sorted(rows, key=lambda row: -abs(row.difference))


def calls_that_differ(ground: Ground, passing: Collection[str], measure: str) -> list[Row]:
    """Ops called equally often in each step of a run, and not as often in those of the other; first those of one run, by what they take."""
    rows = _calls_that_differ(ground, passing, "ops")
    times = _by_name(ground, f"{measure}_ns")

    def worth(row: Row) -> float:
        taken = sum(mean(each.get((row.name,), [])) for each in times)
        return abs(row.difference) * taken / ((row.a or 0) + (row.b or 0))

    return sorted(
        rows,
        key=lambda row: (bool(row.a and row.b), bool(_MADE.fullmatch(row.name)), -worth(row), row.name),
    )


def _calls_that_differ(ground: Ground, passing: Collection[str], table: str) -> list[Row]:
    counted = _by_name(ground, "calls", table)
    sides = ground.a, ground.b
    rows = []
    for key in {**counted[0], **counted[1]}:
        values = [found.get(key, [0.0] * len(side.cells)) for found, side in zip(counted, sides, strict=True)]
        steady = all(len(each) > 1 and min(each) == max(each) for each in values)
        ours, theirs = values[0][:1], values[1][:1]
        if steady and ours != theirs and key[0] not in passing and str(key[0]).lower() not in _BY_TRIAL:
            difference = theirs[0] - ours[0]
            rows.append(
                Row(
                    name=str(key[0]),
                    a=ours[0],
                    b=theirs[0],
                    difference=difference,
                    unit="calls",
                    significant=True,
                )
            )
    return sorted(rows, key=lambda row: (bool(row.a and row.b), -abs(row.difference), row.name))


def _by_name(ground: Ground, what: str, table: str = "ops") -> list[Vectors]:
    return [vectors(getattr(side, table), ["name"], what, side.cells) for side in (ground.a, ground.b)]
