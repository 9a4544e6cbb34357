"""How much of padded batches is left without padding: as counted by the capture, or guessed."""

from __future__ import annotations

import math
from collections.abc import Collection

import msgspec
import polars as pl

from stepscope.analysis.findings.batches.by_length import Share, is_counted, share_if_sorted
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
    LOOP_OF_BATCHES_LEAST,
    NOT_PADDING_LEAST,
    NOT_PADDING_MOST,
    PADDING_LEFT_MOST,
    POSITIONS_LEAST,
    SORTED_MORE_MOST,
    SORTED_MOST,
    SORTED_SLOWER_MOST,
    SORTED_TOGETHER_LEAST,
    SORTED_TOGETHER_MOST,
)

# Masks say what attention leaves out; ids may end in a value that means something; a loss is given lengths after subsampling.
_BY_TRUST = (OF_MASK, TOLD, OF_IDS)
_LOOKUP, _ATTENTION = "aten::embedding", "aten::scaled_dot_product_attention"
_LOSSES = ("aten::_ctc_loss", "aten::_cudnn_ctc_loss")


@dataclass(frozen=True)
class Padded:
    """Batches of this `length`, or of several: `least` and `most` are what is left of it. `counted` is None where that is a guess.

    `squares`: the least and the most that is left of attention, where that is known to be other than the square of it.
    """

    length: int
    least: float
    most: float
    counted: CountedLengths | None = None
    is_compiled: bool = False
    sizes: tuple[CountedLengths, ...] = ()  # of batches of several lengths, of which `counted` is the mean
    squares: tuple[float, float] | None = None

    def left(self, *, of_squares: bool) -> tuple[float, float]:
        """The least and the most that is left, of attention or of all else."""
        if not of_squares:
            return self.least, self.most
        return self.squares or (self.least**2, self.most**2)

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
        if self.counted is None:
            return False
        return bool(self.sizes) or self.counted.longest_share > LONGEST_OF_BATCH_MOST


def padded(case: Case, masked_length: int | None, compiled_lengths: Collection[int] = ()) -> Padded | None:
    """By what was counted; else a guess, if attention has a mask per sample and one length.

    `compiled_lengths` are those of programs that mask samples. None where padding is counted to be little.
    """
    counted = None if masked_length is None and _is_loop(case) else _counted(case, masked_length)
    if counted is None and masked_length is None:
        return _mixed_programs(case, compiled_lengths) if case.runs_programs else _mixed(case)
    if counted is None:
        return Padded(masked_length or 0, NOT_PADDING_LEAST, NOT_PADDING_MOST)
    length = masked_length or counted.positions
    if counted.longest_share > LONGEST_OF_BATCH_MOST:
        return _if_sorted(length, (counted,), case.runs_programs)
    if case.runs_programs:
        least, most = bucket_shares(counted)
    else:
        least, most = counted.longest_share, min(1.0, BUCKETS_MOST * counted.longest_share)
    return _if_worth(Padded(length, least, most, counted, case.runs_programs))


def _if_worth(found: Padded) -> Padded | None:
    return found if (found.least * found.most) ** 0.5 <= PADDING_LEFT_MOST else None


def _mixed(case: Case) -> Padded | None:
    """Batches that are padded to their own longest sample, where samples of all lengths come together: sorted, they are hardly padded."""
    rows = counted_lengths(case.trace)
    for of in _BY_TRUST:
        by_step = _lengths_of_batches(case, of)
        lengths = {length for each in by_step.values() for length in each}
        sizes = tuple(each for each in rows if each.of == of and each.positions in lengths)
        counts = [sum(each.values()) for each in by_step.values()]
        if len(lengths) > 1 and _are_of_one_kind(counts, lengths) and _cover(sizes, lengths):
            return _if_sorted(_mean_of(sizes).positions, sizes, False, sum(counts) / len(counts))
    return None


def _mixed_programs(case: Case, lengths: Collection[int]) -> Padded | None:
    """The same of programs for several lengths."""
    rows = counted_lengths(case.trace)
    for of in _BY_TRUST:
        sizes = tuple(each for each in rows if each.of == of and each.positions in lengths)
        batches = sum(each.calls for each in sizes) / max(1, case.step_count)
        if len(lengths) > 1 and _are_of_one_kind([round(batches)], lengths) and _cover(sizes, lengths):
            return _if_sorted(_mean_of(sizes).positions, sizes, True, batches)
    return None


def _is_loop(case: Case) -> bool:
    """Whether each step has many batches, of several lengths."""
    by_step = _lengths_of_batches(case, OF_IDS).values()
    return bool(by_step) and all(
        len(each) > 1 and sum(each.values()) >= LOOP_OF_BATCHES_LEAST for each in by_step
    )


def _are_of_one_kind(counts: list[int], lengths: Collection[int]) -> bool:
    """Whether each step has one batch, or many, and not one of each of several kinds; nor texts that grow by what is generated."""
    is_loop = min(counts) >= LOOP_OF_BATCHES_LEAST and max(lengths) - min(lengths) >= len(lengths)
    return max(counts) <= 1 or is_loop


def _cover(sizes: tuple[CountedLengths, ...], lengths: Collection[int]) -> bool:
    """Whether most lengths were counted, in enough batches to say how long samples are."""
    counted = {each.positions for each in sizes}
    return (
        len(counted) > MAJORITY * len(lengths) and sum(each.calls for each in sizes) >= STEPS_TO_KNOW_WARM_UP
    )


def _if_sorted(
    length: int, sizes: tuple[CountedLengths, ...], is_compiled: bool, batches: float = 1
) -> Padded | None:
    """By how many samples have which length; `batches`: of a step, which are sorted together."""
    counted = _mean_of(sizes)
    several = sizes if len(sizes) > 1 else ()
    if not is_counted(sizes):
        if batches >= LOOP_OF_BATCHES_LEAST:
            return None  # how long the longest batch of a step stays is not known
        fullest = SORTED_MOST * counted.mean_share if several else counted.longest_share
        return _if_worth(Padded(length, counted.mean_share, min(1.0, fullest), counted, is_compiled, several))
    least, most = _shares_if_sorted(sizes, batches)
    squares = least.square, most.square
    return _if_worth(Padded(length, least.linear, most.linear, counted, is_compiled, several, squares))


def _shares_if_sorted(sizes: tuple[CountedLengths, ...], batches: float) -> tuple[Share, Share]:
    """The least and the most: a step with a list of texts sorts those, and a sampler many more."""
    if batches < LOOP_OF_BATCHES_LEAST:
        return (
            share_if_sorted(sizes, SORTED_TOGETHER_MOST, is_rounded=False),
            share_if_sorted(sizes, SORTED_TOGETHER_LEAST, is_rounded=True),
        )
    own = share_if_sorted(sizes, batches, is_rounded=True)
    slower = Share(*(min(1.0, SORTED_SLOWER_MOST * each) for each in (own.linear, own.square)))
    return share_if_sorted(sizes, SORTED_MORE_MOST * batches, is_rounded=False), slower


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
    """The lengths of the sequences of each step, by what is looked up or has a loss; empty where too few steps have any."""
    wanted = {OF_IDS: (_LOOKUP,), TOLD: _LOSSES}.get(of, ())
    return {step: set(lengths) for step, lengths in _counted_by_step(case, wanted).items()}


def _lengths_of_batches(case: Case, of: str) -> dict[int, dict[int, int]]:
    """For each step, how many batches have which length; features that are not looked up are seen by attention, once for all layers."""
    found = _counted_by_step(case, _LOSSES if of == TOLD else (_LOOKUP,))
    if found or of != OF_MASK:
        return found
    by_attention = _counted_by_step(case, (_ATTENTION,))
    return {step: dict.fromkeys(lengths, 1) for step, lengths in by_attention.items()}


def _counted_by_step(case: Case, wanted: tuple[str, ...]) -> dict[int, dict[int, int]]:
    """For each step, how often these ops have which length; of several tables, the one that is looked up most often."""
    if case.runs_programs or not wanted:
        return {}
    names = case.ops["name"].cast(pl.String)
    ops = case.ops.filter(names.is_in(wanted), case.ops["step"].is_not_null()).select(
        "step", "name", "shapes"
    )
    texts = ops.with_columns(pl.col("name", "shapes").cast(pl.String)).drop_nulls()
    steps: dict[int, dict[int, int]] = {}
    for step, name, text, count in texts.group_by("step", "name", "shapes").len().sort("step").iter_rows():
        lengths = steps.setdefault(step, {})
        for length in _positions(text, name):
            lengths[length] = max(count, lengths.get(length, 0))
    steps = {step: lengths for step, lengths in steps.items() if lengths}
    is_known = len(steps) >= STEPS_TO_KNOW_WARM_UP and len(steps) >= MAJORITY * case.step_count
    return steps if is_known else {}


def _positions(text: str, name: str) -> set[int]:
    """Of ids that are looked up, which are samples by positions, of scores, which are positions by samples by classes, or of attention."""
    shapes = shapes_in(text)
    if name in _LOSSES:
        return {shape[0] for shape in shapes[:1] if len(shape) == 3}
    if name == _ATTENTION:
        queries, keys = shapes[:2] if len(shapes) > 1 else ((), ())
        return {queries[2]} if len(queries) == len(keys) == 4 and queries[2] == keys[2] else set()
    return {shape[1] for shape in shapes[1:2] if len(shape) == 2 and shape[1] >= POSITIONS_LEAST}
