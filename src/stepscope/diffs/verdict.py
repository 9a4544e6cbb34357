"""The whole diff in one or two sentences."""

from __future__ import annotations

from stepscope import units
from stepscope.diffs.comparable import do_both_have_steps
from stepscope.diffs.data.model import Diff, Row, Speed, Tail
from stepscope.diffs.data.samples import HELD
from stepscope.diffs.explain.wording import (
    describe_slow_steps,
    describe_tail_cause,
    format_share_change,
    format_time_change,
)
from stepscope.registers.policy.diffs import NOTABLE_CHANGE, NOTABLE_SLOW_STEPS, NOTABLE_SPEED


def write_verdict(diff: Diff) -> str:
    """Whether the step is slower, whether that is significant, and the machine's part in it."""
    sentences = [_judge_step(diff), *_judge_tail(diff.tail, diff.step.b or 0.0)]
    speeds = [each for each in diff.speed if abs(each.ratio - 1) >= NOTABLE_SPEED]
    sentences += [_describe_speed(each) for each in speeds]
    if speeds:
        sentences.append("That is the machine, not the code: differences are judged at equal speed.")
    if diff.one_recording and diff.significant:
        sentences.append("Both are the same recording: every difference is real.")
    elif diff.one_recording:
        sentences.append("Both are the same recording, without any difference.")
    elif not diff.significant and _has_noise(diff):
        sentences.append("Nothing else differs significantly.")
    return " ".join(sentences)


def _judge_tail(tail: Tail | None, step_ns: float) -> list[str]:
    """What occasional slow steps do to it: the mean hardly shows them."""
    if tail is None:
        return []
    if tail.significant:
        cause = describe_tail_cause(tail)
        return [f"{describe_slow_steps(tail)}{f', {cause}' if cause else ''}."]
    if abs(tail.b_excess_ns - tail.a_excess_ns) < NOTABLE_SLOW_STEPS * step_ns:
        return []
    return [f"{describe_slow_steps(tail)}: too few to be significant."]


def _judge_snapshots(diff: Diff) -> str | None:
    """Memory snapshots have no steps; what they hold is compared. None for other recordings."""
    peaks = [row for row in diff.memory if HELD not in row.name and row.a is not None and row.b is not None]
    if not peaks or diff.parts or len(peaks) == len(diff.memory):
        return None
    row = peaks[0]
    change = f"{units.size(row.a or 0)} → {units.size(row.b or 0)}"
    if not row.significant:
        return f"The peak memory of {row.name} is the same: {change}."
    words = "higher" if row.difference > 0 else "lower"
    return f"The peak memory of {row.name} is {units.size(abs(row.difference))} {words}: {change}."


def _judge_step(diff: Diff) -> str:
    step = diff.step
    of_snapshots = _judge_snapshots(diff)
    if of_snapshots is not None:
        return of_snapshots
    if not do_both_have_steps(diff.a, diff.b):
        return f"Steps cannot be compared: {'A' if diff.a.step_source == 'none' else 'B'} has none."
    if step.a is None or step.b is None or step.relative is None:
        return "Steps cannot be compared."
    change = f"{units.duration(step.a)} → {units.duration(step.b)} ({format_share_change(step.relative)})"
    if not _has_noise(diff):
        return f"{_lead_with_device(diff)}: {change}."
    if step.significant:
        return f"The step is {_compare_pace(step)}: {change}{_append_noise(step)}."
    if diff.tail is not None and diff.tail.significant:
        return f"A few slow steps changed the mean step: {change}."
    if diff.one_recording:
        return f"The step is unchanged: {change}."
    return _judge_insignificant_step(step, f"{change}{_append_noise(step)}", step.relative)


def _has_noise(diff: Diff) -> bool:
    """Whether steps show their noise: one step on a side does not."""
    return diff.one_recording or diff.step.noise is not None


def _lead_with_device(diff: Diff) -> str:
    """What one step on a side shows: the time that the device computed, which is steady, before that of the step, which is not."""
    compute = next((row for row in diff.parts if row.name == "compute"), None)
    if compute is None or not compute.a or compute.b is None or compute.relative is None:
        return "Cannot say from one step whether it changed"
    device = (
        f"{units.duration(compute.a)} → {units.duration(compute.b)} ({format_share_change(compute.relative)})"
    )
    judged = "" if compute.significant else ", which may be noise"
    return f"The device computed {device}{judged}. Cannot say from one step whether the step changed"


def _judge_insignificant_step(step: Row, change: str, relative: float) -> str:
    """A change that may be noise, and how close it is to that."""
    if step.noise is not None and abs(step.difference) > step.noise:
        even = step.at_equal_speed or 0.0
        if abs(even) > step.noise:  # beyond the margin, but not beyond the stricter level of the test
            return f"The step is probably {_compare_pace(step)}, but not significantly: {change}."
        return f"The step changed with the speed of the machine: {change}. At equal speed it differs by {format_time_change(even)}, within noise."
    if abs(relative) > NOTABLE_CHANGE and step.noise is not None:
        return f"The step changed within noise: {change}."
    return f"The step is unchanged within noise: {change}."


def _compare_pace(step: Row) -> str:
    return "slower" if step.difference > 0 else "faster"


def _append_noise(step: Row) -> str:
    return f", noise ± {units.duration(step.noise)}" if step.noise else ""


def _describe_speed(speed: Speed) -> str:
    pace = "slower" if speed.ratio > 1 else "faster"
    return f"B's {speed.what} was {100 * abs(speed.ratio - 1):.0f} % {pace} throughout."
