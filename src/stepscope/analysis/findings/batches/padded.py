"""How much of padded batches is left without padding: as counted by the capture, or guessed."""

from __future__ import annotations

import math

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
)

# Masks say what attention leaves out; ids may end in a value that means something; a loss is given lengths after subsampling.
_BY_TRUST = (OF_MASK, TOLD, OF_IDS)
_LOOKUP = "aten::embedding"
_LOSSES = ("aten::_ctc_loss", "aten::_cudnn_ctc_loss")


@dataclass(frozen=True)
class Padded:
    """Batches of this `length`: `least` and `most` are what is left of it. `counted` is None where that is a guess."""

    length: int
    least: float
    most: float
    counted: CountedLengths | None = None
    is_compiled: bool = False

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
    if counted is None:
        guess = masked_length is not None
        return Padded(masked_length or 0, NOT_PADDING_LEAST, NOT_PADDING_MOST) if guess else None
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
    wanted = [_LOOKUP] if of == OF_IDS else list(_LOSSES) if of == TOLD else []
    if case.runs_programs or not wanted:
        return set()
    names = case.ops["name"].cast(pl.String)
    ops = case.ops.filter(names.is_in(wanted), case.ops["step"].is_not_null()).select("step", "shapes")
    distinct = ops.with_columns(ops["shapes"].cast(pl.String)).drop_nulls().unique()
    steps: dict[int, set[int]] = {}
    for step, text in distinct.iter_rows():
        steps.setdefault(step, set()).update(_positions(text, of))
    found = set().union(*steps.values())
    is_known = len(steps) >= STEPS_TO_KNOW_WARM_UP and len(steps) >= MAJORITY * case.step_count
    return found if is_known and all(each == found for each in steps.values()) else set()


def _positions(text: str, of: str) -> set[int]:
    """Of ids that are looked up, which are samples by positions, or of scores, which are positions by samples by classes."""
    shapes = shapes_in(text)
    if of == TOLD:
        return {shape[0] for shape in shapes[:1] if len(shape) == 3}
    return {shape[1] for shape in shapes[1:2] if len(shape) == 2 and shape[1] >= POSITIONS_LEAST}
