"""How much of padded batches is left without padding: as counted by the capture, or guessed."""

from __future__ import annotations

import math

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.spread import OF_CHOSEN_SHAPES, OF_DEVICE, Spread
from stepscope.analysis.lengths import OF_IDS, OF_MASK, TOLD, CountedLengths, counted_lengths
from stepscope.analysis.shapes import shapes_in
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import MAJORITY, STEPS_TO_KNOW_WARM_UP
from stepscope.registers.policy.useless_work import (
    BUCKETS_MOST,
    COMPILED_BUCKETS_LEAST,
    COMPILED_BUCKETS_MOST,
    LONGEST_OF_BATCH_MOST,
    NOT_PADDING_LEAST,
    NOT_PADDING_MOST,
    PADDING_LEFT_MOST,
    POSITIONS_LEAST,
    SORTED_MOST,
)

# Masks say what attention leaves out; ids may end in a value that means something; a loss is given lengths after subsampling.
_BY_TRUST = (OF_MASK, TOLD, OF_IDS)
_LOOKUP = "aten::embedding"
_LOSSES = ("aten::_ctc_loss", "aten::_cudnn_ctc_loss")


@dataclass(frozen=True)
class Padded:
    """Batches of this `length`, or of several: `least` and `most` are what is left of it. `counted` is None where that is a guess."""

    length: int
    least: float
    most: float
    counted: CountedLengths | None = None
    is_compiled: bool = False
    sizes: tuple[CountedLengths, ...] = ()  # of batches of several lengths, of which `counted` is the mean

    @property
    def all_counted(self) -> tuple[CountedLengths, ...]:
        """Each size of batch that was counted."""
        return self.sizes or (() if self.counted is None else (self.counted,))

    @property
    def spread(self) -> Spread | None:
        """What was counted varies less than what is guessed; of lengths that are compiled, which ones there are is up to people."""
        if self.counted is None:
            return None
        return OF_CHOSEN_SHAPES if self.is_compiled and not self.is_mixed else OF_DEVICE

    @property
    def is_mixed(self) -> bool:
        """Whether batches have samples of all lengths, so that padding each to its own longest sample spares little."""
        return self.counted is not None and self.counted.longest_share > LONGEST_OF_BATCH_MOST


def padded(case: Case, masked_length: int | None) -> Padded | None:
    """By what was counted; else a guess, if attention has a mask per sample and one length.

    None where that is counted to be little.
    """
    counted = _counted(case, masked_length)
    if counted is None and masked_length is None:
        return _mixed(case)
    if counted is None:
        return Padded(masked_length or 0, NOT_PADDING_LEAST, NOT_PADDING_MOST)
    length = masked_length or counted.positions
    if counted.longest_share > LONGEST_OF_BATCH_MOST:
        least, most = counted.mean_share, counted.longest_share
    elif case.runs_programs:
        least, most = bucket_shares(counted)
    else:
        least, most = counted.longest_share, min(1.0, BUCKETS_MOST * counted.longest_share)
    return (
        Padded(length, least, most, counted, case.runs_programs)
        if (least * most) ** 0.5 <= PADDING_LEFT_MOST
        else None
    )


def _mixed(case: Case) -> Padded | None:
    """Batches that are padded to their own longest sample, where samples of all lengths come together: sorted, they are hardly padded."""
    if case.runs_programs:
        return None
    rows = counted_lengths(case.trace)
    for of in _BY_TRUST:
        by_step = _lengths_by_step(case, OF_IDS if of == OF_MASK else of)
        lengths = {length for each in by_step.values() for length in each}
        sizes = tuple(each for each in rows if each.of == of and each.positions in lengths)
        if len(lengths) > 1 and all(map(_is_one, by_step.values())) and _cover(sizes, lengths):
            return _sorted_by_length(sizes)
    return None


def _is_one(lengths: set[int]) -> bool:
    return len(lengths) == 1


def _cover(sizes: tuple[CountedLengths, ...], lengths: set[int]) -> bool:
    """Whether most lengths were counted, in enough batches to say how long samples are."""
    counted = {each.positions for each in sizes}
    return (
        len(counted) > MAJORITY * len(lengths) and sum(each.calls for each in sizes) >= STEPS_TO_KNOW_WARM_UP
    )


def _sorted_by_length(sizes: tuple[CountedLengths, ...]) -> Padded | None:
    counted = _mean_of(sizes)
    least, most = counted.mean_share, min(1.0, SORTED_MOST * counted.mean_share)
    if (least * most) ** 0.5 > PADDING_LEFT_MOST:
        return None
    return Padded(counted.positions, least, most, counted, sizes=sizes)


def _mean_of(sizes: tuple[CountedLengths, ...]) -> CountedLengths:
    """Of all batches together; its shape is that of a mean one."""
    samples = sum(each.calls * each.shape[0] for each in sizes)
    positions, mean, longest = (
        sum(each.calls * each.shape[0] * getattr(each, name) for each in sizes) / samples
        for name in ("positions", "mean", "longest")
    )
    calls = sum(each.calls for each in sizes)
    shape = round(samples / calls), round(positions)
    return msgspec.structs.replace(sizes[0], shape=shape, calls=calls, mean=mean, longest=longest)


def bucket_shares(counted: CountedLengths) -> tuple[float, float]:
    """Where each length is compiled: about the next power of two, but no less than the longest sample."""
    bucket = 2 ** math.ceil(math.log2(max(1.0, counted.longest))) / counted.positions
    least = max(counted.longest_share, COMPILED_BUCKETS_LEAST * bucket)
    return min(1.0, least), min(1.0, COMPILED_BUCKETS_MOST * bucket)


def _counted(case: Case, masked_length: int | None) -> CountedLengths | None:
    """Of the batches of all steps: those of attention, or those that all steps look up, or have a loss of."""
    rows = [each for each in counted_lengths(case.trace) if each.positions >= POSITIONS_LEAST]
    if masked_length is None:
        rows = [each for each in rows if each.positions in _lengths_of_all_steps(case, each.of)]
    else:
        alike = [each for each in rows if each.positions == masked_length]
        # Features may be shortened before attention, as those of speech are before a loss.
        rows = alike or [each for each in rows if each.of == TOLD]
    rows.sort(key=lambda each: (_BY_TRUST.index(each.of), -each.positions * each.shape[0]))
    return rows[0] if rows else None


def _lengths_of_all_steps(case: Case, of: str) -> set[int]:
    """The lengths of sequences that every step has; none where other steps have others."""
    steps = _lengths_by_step(case, of)
    found = set().union(*steps.values())
    return found if all(each == found for each in steps.values()) else set()


def _lengths_by_step(case: Case, of: str) -> dict[int, set[int]]:
    """The lengths of the sequences of each step; empty where too few steps have any."""
    wanted = [_LOOKUP] if of == OF_IDS else list(_LOSSES) if of == TOLD else []
    if case.runs_programs or not wanted:
        return {}
    names = case.ops["name"].cast(pl.String)
    ops = case.ops.filter(names.is_in(wanted), case.ops["step"].is_not_null()).select("step", "shapes")
    distinct = ops.with_columns(ops["shapes"].cast(pl.String)).drop_nulls().unique()
    steps: dict[int, set[int]] = {}
    for step, text in distinct.iter_rows():
        steps.setdefault(step, set()).update(_positions(text, of))
    steps = {step: lengths for step, lengths in steps.items() if lengths}
    is_known = len(steps) >= STEPS_TO_KNOW_WARM_UP and len(steps) >= MAJORITY * case.step_count
    return steps if is_known else {}


def _positions(text: str, of: str) -> set[int]:
    """Of ids that are looked up, which are samples by positions, or of scores, which are positions by samples by classes."""
    shapes = shapes_in(text)
    if of == TOLD:
        return {shape[0] for shape in shapes[:1] if len(shape) == 3}
    return {shape[1] for shape in shapes[1:2] if len(shape) == 2 and shape[1] >= POSITIONS_LEAST}
