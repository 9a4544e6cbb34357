"""Whether the two runs have another batch: the shapes of the same ops differ by one factor, in some of their dimensions.

Where shapes were not recorded, an input pipeline that puts samples together tells: by how many of them it takes for a step.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import polars as pl

from stepscope.diffs.data.model import Batch
from stepscope.diffs.data.samples import Samples, Side

# Of the time (or calls) of ops whose shapes differ, so much must differ by the same factor.
ENOUGH = 0.6
# A batch is 3/2 or 8 times another; where shapes differ by 1065/1024, nearly all must, or they differ from step to step.
LARGEST, SIMPLE = 4096, 8
NEARLY_ALL = 0.9
OF_ALL_CALLS = 0.2  # a batch is in every activation
# Of an input pipeline: calls of stages are off by those of a batch that was begun before the recording or ended after it.
NEARLY = 0.03
FEWEST_SAMPLES = 2  # in a batch
LONGEST_TEXT = 400
MOST_SHAPES = 40
_NUMBER = re.compile(r"\d+")


def batch_of(a: Side, b: Side) -> Batch | None:
    """What shapes tell, else what the input pipelines do."""
    if all(side.samples.ops["shapes"].count() for side in (a, b)):
        return _by_shapes(a.samples, b.samples)
    return _by_input(a.report, b.report)


def _by_input(a: Mapping[str, Any], b: Mapping[str, Any]) -> Batch | None:
    """The factor between the samples of a step, if all stages before the batch have the same and it is a simple one."""
    ours, theirs = _samples_a_step(a), _samples_a_step(b)
    ratios = {name: theirs[name] / ours[name] for name in ours.keys() & theirs.keys()}
    if not ratios or max(ratios.values()) - min(ratios.values()) > NEARLY * min(ratios.values()):
        return None
    mean = sum(ratios.values()) / len(ratios)
    factor = Fraction(mean).limit_denominator(SIMPLE)
    if factor == 1 or not factor or abs(mean / factor - 1) > NEARLY:
        return None
    name = min(ratios)
    example = f"{name} is called {ours[name]:.0f} times a step in A, {theirs[name]:.0f} in B"
    return Batch(ratio=float(factor), share=1.0, example=example)


def _samples_a_step(report: Mapping[str, Any]) -> dict[str, float]:
    """Calls a step of the stages that make single samples: those of a pipeline with a batch stage, called far more often."""
    stages = report["input"]["stages"]
    steps = max(1, report["steps"]["count"])
    batches = [stage["calls"] for stage in stages if "Batch" in stage["name"]]
    if not batches:
        return {}
    return {
        stage["name"]: stage["calls"] / steps
        for stage in stages
        if stage["name"].startswith("Iterator::") and stage["calls"] > FEWEST_SAMPLES * max(batches)
    }


def _by_shapes(a: Samples, b: Samples) -> Batch | None:
    """The factor that most of the ops with other shapes have in common, or None."""
    ours, theirs = _shapes(a), _shapes(b)
    votes: Counter[Fraction] = Counter()
    examples: dict[Fraction, str] = {}
    all_weight = 0
    calls = sum(weight for shapes in ours.values() for weight in shapes.values())
    for name in ours.keys() & theirs.keys():
        gone = {shape: weight for shape, weight in ours[name].items() if shape not in theirs[name]}
        come = [shape for shape in theirs[name] if shape not in ours[name]]
        for shape, weight in list(gone.items())[:MOST_SHAPES]:
            all_weight += weight
            factors = {factor: other for other in come[:MOST_SHAPES] if (factor := _factor(shape, other))}
            for factor, other in factors.items():
                votes[factor] += weight
                examples.setdefault(factor, f"{name} {shape} → {other}")
    if not votes:
        return None
    factor, weight = max(votes.items(), key=lambda item: (item[1], item[0]))
    is_simple = min(factor.numerator, factor.denominator) <= SIMPLE
    if weight < max((ENOUGH if is_simple else NEARLY_ALL) * all_weight, OF_ALL_CALLS * calls):
        return None
    return Batch(ratio=float(factor), share=round(weight / all_weight, 4), example=examples[factor])


def _shapes(samples: Samples) -> dict[str, dict[str, int]]:
    """By op the shapes that it has in every step, with their calls, the most frequent first."""
    known = samples.ops.filter(
        pl.col("shapes").is_not_null(), pl.col("shapes").str.len_chars() < LONGEST_TEXT
    )
    in_every_step = pl.len() >= len(samples.cells)
    summed = known.group_by("name", "shapes", maintain_order=True).agg(
        pl.col("calls").sum(), every=in_every_step
    )
    summed = summed.filter("every").drop("every")
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for name, shapes, calls in summed.sort("calls", "shapes", descending=[True, False]).iter_rows():
        found[name][shapes] = calls
    return found


def _factor(a: str, b: str) -> Fraction | None:
    """By what dimensions differ, if all that differ do so by one factor and everything else is the same text."""
    if _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
        return None
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    factors = {Fraction(int(y), int(x)) for x, y in pairs if x != y and int(x)}
    if len(factors) != 1:
        return None
    (factor,) = factors
    return factor if factor and max(factor.numerator, factor.denominator) <= LARGEST else None
