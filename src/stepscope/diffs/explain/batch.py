"""Whether the two runs differ in batch size: the shapes of the same ops differ by one factor, in some of their dimensions.

Where shapes were not recorded, an input pipeline that batches samples shows it: by how many of them it takes per step.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from fractions import Fraction

import polars as pl

from stepscope.diffs.data.model import Batch
from stepscope.diffs.data.samples import Samples, Side
from stepscope.registers.policy.diffs import (
    BATCH_FEWEST_OPS,
    BATCH_FEWEST_SAMPLES,
    BATCH_LARGEST,
    BATCH_OF_ALL_CALLS,
    BATCH_SHAPES,
    BATCH_SHARE,
    BATCH_SHARE_ODD,
    BATCH_SIMPLE,
    BATCH_STAGES_OFF,
    BATCH_TEXT,
)
from stepscope.reports.model.report import Report
from stepscope.trace.frames import conform

_NUMBER = re.compile(r"\d+")
# Ops by the shapes that they have in every step, with their calls.
SHAPES = {"name": pl.String, "shapes": pl.String, "calls": pl.Int64}


def detect_batch(a: Side, b: Side) -> Batch | None:
    """By shapes where both runs have them, else by the input pipelines."""
    if all(side.samples.ops["shapes"].count() for side in (a, b)):
        return _detect_by_shapes(a.samples, b.samples)
    return detect_by_input(a.report, b.report)


def detect_by_input(a: Report, b: Report) -> Batch | None:
    """The factor between the samples per step, if all stages before the batch agree on it and it is a simple one."""
    ours, theirs = _count_samples(a), _count_samples(b)
    ratios = {name: theirs[name] / ours[name] for name in ours.keys() & theirs.keys()}
    if not ratios or max(ratios.values()) - min(ratios.values()) > BATCH_STAGES_OFF * min(ratios.values()):
        return None
    mean = sum(ratios.values()) / len(ratios)
    factor = Fraction(mean).limit_denominator(BATCH_SIMPLE)
    if factor == 1 or not factor or abs(mean / factor - 1) > BATCH_STAGES_OFF:
        return None
    name = min(ratios)
    example = f"{name} is called {ours[name]:.0f} times per step in A, {theirs[name]:.0f} in B"
    return Batch(ratio=float(factor), share=1.0, example=example)


def _count_samples(report: Report) -> dict[str, float]:
    """Calls per step of the stages that make single samples: those of a pipeline with a batch stage, called far more often."""
    stages = report.input.stages
    steps = max(1, report.steps.count)
    batches = [stage.calls for stage in stages if "Batch" in stage.name]
    if not batches:
        return {}
    return {
        stage.name: stage.calls / steps
        for stage in stages
        if stage.name.startswith("Iterator::") and stage.calls > BATCH_FEWEST_SAMPLES * max(batches)
    }


def _detect_by_shapes(a: Samples, b: Samples) -> Batch | None:
    """The factor that most of the ops with other shapes have in common, or None."""
    ours, theirs = _collect_shapes(a), _collect_shapes(b)
    votes: Counter[Fraction] = Counter()
    names: dict[Fraction, set[str]] = defaultdict(set)
    examples: dict[Fraction, str] = {}
    all_weight = 0
    for name in sorted(ours.keys() & theirs.keys()):
        gone = {shape: weight for shape, weight in ours[name].items() if shape not in theirs[name]}
        come = [shape for shape in theirs[name] if shape not in ours[name]]
        for shape, weight in list(gone.items())[:BATCH_SHAPES]:
            all_weight += weight
            factors = {
                factor: other for other in come[:BATCH_SHAPES] if (factor := find_factor(shape, other))
            }
            for factor, other in factors.items():
                votes[factor] += weight
                names[factor].add(name)
                examples.setdefault(factor, f"{name} {shape} → {other}")
    if not votes:
        return None
    factor, weight = max(votes.items(), key=lambda item: (item[1], item[0]))
    calls = sum(weight for shapes in ours.values() for weight in shapes.values())
    if not _is_in_most(factor, weight, all_weight):
        return None
    if weight < BATCH_OF_ALL_CALLS * calls and len(names[factor]) < BATCH_FEWEST_OPS:
        return None
    return Batch(ratio=float(factor), share=round(weight / all_weight, 4), example=examples[factor])


def _is_in_most(factor: Fraction, weight: int, all_weight: int) -> bool:
    """Whether a factor of that weight is in most ops whose shapes differ."""
    is_simple = min(factor.numerator, factor.denominator) <= BATCH_SIMPLE
    return weight >= (BATCH_SHARE if is_simple else BATCH_SHARE_ODD) * all_weight


def _collect_shapes(samples: Samples) -> dict[str, dict[str, int]]:
    """By op the shapes that it has in every step, with their calls, the most frequent first."""
    by_op: dict[str, dict[str, int]] = defaultdict(dict)
    for name, shapes, calls in _sum_shapes(samples).iter_rows():
        by_op[name][shapes] = calls
    return by_op


def _sum_shapes(samples: Samples) -> pl.DataFrame:
    """SHAPES, the most frequent first."""
    known = samples.ops.filter(pl.col("shapes").is_not_null(), pl.col("shapes").str.len_chars() < BATCH_TEXT)
    in_every_step = pl.len() >= len(samples.cells)
    sums = known.group_by("name", "shapes", maintain_order=True).agg(
        pl.col("calls").sum(), every=in_every_step
    )
    return conform(sums.filter("every").sort("calls", "shapes", descending=[True, False]), SHAPES)


def find_factor(a: str, b: str) -> Fraction | None:
    """By what dimensions differ, if all that differ do so by one factor and everything else is the same text."""
    if _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
        return None
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    factors = {Fraction(int(y), int(x)) for x, y in pairs if x != y and int(x)}
    if len(factors) != 1:
        return None
    (factor,) = factors
    return factor if factor and max(factor.numerator, factor.denominator) <= BATCH_LARGEST else None
