"""The words of a gate: what a verdict is called, what is said about a limit, and the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from stepscope.diffs.data.model import Diff, Row
from stepscope.diffs.explain.wording import format_share_change
from stepscope.diffs.render.cells import format_amount
from stepscope.gate.budget import SIZES
from stepscope.registers.policy.diffs import NOTABLE_CHANGE, NOTABLE_SPEED

OVER, NOISY, UNKNOWN, OK = "over", "noisy", "unknown", "ok"
TITLES = {OK: "met", OVER: "exceeded", NOISY: "inconclusive", UNKNOWN: "unknown"}
OTHER_FRAMEWORK = "A and B use different frameworks: the limits compare two different programs."
NO_STEPS = "The profile has no steps."
NO_STEPS_IN_BASELINE = "The baseline has no steps."
NO_MEMORY = "Memory was not recorded."
NO_MEMORY_IN_BOTH = "Memory was not recorded in both profiles."
NO_FIGURE = "One of the two profiles does not have this figure."
NO_DEVICE = "The job has a device, but no device events were recorded."
NO_FINDINGS = "The findings could not be computed."
ONE_STEP = "and one step on a side shows no noise: record at least five"
BEYOND_RECORDINGS = "more than the baseline's recordings vary by"
ONE_RANK = "Only one rank of the job was loaded."


def format_limit(value: float, unit: str, written: str) -> str:
    """An amount; bytes in the unit that the limit was written in: 22.4 GiB is hard to recognise as 24 GB."""
    word = written.split()[-1] if unit == "bytes" and written else ""
    return f"{value / SIZES[word]:,.4g} {word}" if word in SIZES else format_amount(value, unit)


def describe_excess(excess: float, unit: str, written: str) -> str:
    """By how much a limit is exceeded."""
    return f"{format_limit(excess, unit, written)} over the limit"


def describe_within_noise(over: str, row: Row | None = None, growth: float | None = None) -> str:
    """An excess that may be noise, with the figures of the comparison where there is one; `growth` by the recordings alone."""
    noise = growth or (row.noise if row is not None else None)
    if row is None or row.relative is None or not noise or not row.a:
        return f"{over}, within noise"
    amount = f"{100 * noise / row.a:.{0 if noise >= NOTABLE_CHANGE * row.a else 1}f} %"
    sign = "+" if growth else "±"
    return f"{over}, within noise ({format_share_change(row.relative)}, noise {sign} {amount})"


def describe_machine(over: str, diff: Diff) -> str:
    """An excess that a slower machine accounts for."""
    slower = [each for each in diff.speed if each.ratio > 1 + NOTABLE_SPEED]
    if not slower:
        return f"{over}, but not at equal machine speed"
    speeds = " and ".join(f"the {each.what} was {100 * (each.ratio - 1):.0f} % slower" for each in slower)
    return f"{over}, but {speeds} throughout"


def describe_inconclusive(verdicts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """What to do about limits (names and verdicts) that noise leaves open."""
    names = [name for name, verdict in verdicts if verdict == NOISY]
    if names:
        more = "more steps, or several recordings of each side," if _is_growth(names[0]) else "more steps"
        yield f"Inconclusive: {', '.join(names)}. Record {more} on an otherwise idle machine; --strict fails on this."


def _is_growth(name: str) -> bool:
    return name.startswith("baseline.")


def is_unknown(verdicts: Sequence[str]) -> bool:
    """Whether nothing is exceeded, but something could not be judged."""
    return UNKNOWN in verdicts and OVER not in verdicts


def summarise(verdicts: Sequence[str], passed: bool) -> str:
    """One line: how many limits are met, exceeded, inconclusive or not measured."""
    counts = Counter(verdicts)
    order = (OK, NOISY) if passed else (OVER, UNKNOWN, NOISY)
    word = "PASSED" if passed else "UNKNOWN" if is_unknown(verdicts) else "FAILED"
    total = f" of {len(verdicts)} limit{'' if len(verdicts) == 1 else 's'}"
    parts: list[str] = []
    for verdict in order:
        if counts[verdict]:
            parts.append(f"{counts[verdict]}{'' if parts else total} {TITLES[verdict]}")
    return f"{word}: {', '.join(parts)}."
