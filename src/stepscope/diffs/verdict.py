"""The whole diff in one or two sentences."""

from __future__ import annotations

from stepscope import units
from stepscope.diffs.comparable import same_measure
from stepscope.diffs.data.model import Diff, Speed, Tail
from stepscope.diffs.explain.lines import caused_by, slow_steps
from stepscope.diffs.explain.slow_steps import NOTABLE

NOTABLE_SPEED = 0.03
NOTABLE_CHANGE = 0.1


def verdict(found: Diff) -> str:
    """Whether the step takes longer, whether that is more than noise, and what the machine had to do with it."""
    words = [_step(found), *_tail(found.tail, found.step.b or 0.0)]
    notable = [each for each in found.speed if abs(each.ratio - 1) >= NOTABLE_SPEED]
    words += [_speed(each) for each in notable]
    if notable:
        words.append("That is the machine rather than the code: differences are judged at equal speed.")
    if found.one_recording:
        words.append(
            "Both are one recording: nothing is chance."
            if found.significant
            else "Both are one recording, and nothing of it differs."
        )
    elif not found.significant:
        words.append("Nothing else differs by more than chance.")
    return " ".join(words)


def _tail(tail: Tail | None, step_ns: float) -> list[str]:
    """What rare slow steps make of it: the mean hardly tells of them."""
    if tail is None:
        return []
    if tail.significant:
        by = caused_by(tail)
        return [f"{slow_steps(tail)}{f', {by}' if by else ''}."]
    if abs(tail.b_excess_ns - tail.a_excess_ns) < NOTABLE * step_ns:
        return []
    return [f"{slow_steps(tail)}: too few to tell whether that is chance."]


def _step(found: Diff) -> str:
    step = found.step
    if not same_measure(found.a, found.b):
        without = "A" if found.a.step_source == "none" else "B"
        return f"The steps of the two cannot be compared: {without} has none."
    if step.a is None or step.b is None or step.relative is None:
        return "The steps of the two cannot be compared."
    change = f"{units.duration(step.a)} → {units.duration(step.b)} ({signed_share(step.relative)})"
    noise = f", ± {units.duration(step.noise)} by chance" if step.noise else ""
    if step.significant:
        return f"A step takes {'longer' if step.difference > 0 else 'less time'}: {change}{noise}."
    if found.tail is not None and found.tail.significant:
        return f"A step took {change} on average, by a few that are slow."
    if found.one_recording:
        return f"The step is the same: {change}."
    if step.noise is not None and abs(step.difference) > step.noise:
        even = step.at_equal_speed or 0.0
        if abs(even) > step.noise:  # beyond the margin, and yet not as sure as what is called a change
            return f"A step took {change}{noise}: likely more than chance, but not surely."
        signed = f"{'−' if even < 0 else '+'}{units.duration(abs(even))}"
        return f"A step took {change}, but at equal speed of host and device it differs by {signed}{noise}: no more than chance."
    if abs(step.relative) > NOTABLE_CHANGE and step.noise is not None:
        return f"A step took {change}, which may be chance ({noise[2:].removesuffix(' by chance')})."
    return f"The step is the same within its noise: {change}{noise}."


def _speed(speed: Speed) -> str:
    change = abs(speed.ratio - 1)
    return f"B's {speed.what} was {100 * change:.0f} % {'slower' if speed.ratio > 1 else 'faster'} in everything it did."


def signed_share(value: float) -> str:
    """+3.2 %, −12 %, or as a factor if it is large."""
    if value > 9:
        return f"{value + 1:.0f}×"
    digits = 0 if abs(value) >= 0.1 else 1
    text = f"{abs(100 * value):.{digits}f} %"
    return f"{'−' if value < 0 else '+'}{text}"
