"""Batches that are padded to one length for all: the capture counted short samples, or attention gets a mask per sample in steps of one shape."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.findings.batches.padded import Padded, padded
from stepscope.analysis.findings.batches.positions import on_batch
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import shorten_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.optimizer_loop import in_optimizer
from stepscope.analysis.findings.rules.kernels.unfused_attention import RULE as UNFUSED
from stepscope.analysis.findings.transfers.staging import is_staging, sends_weights, uploads
from stepscope.analysis.lengths import CountedLengths
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.shapes import held_shapes, recorded_strides, shapes_in
from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.masks import padded_length
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.registers.calibration.launches import STAGED_COPY_NS
from stepscope.registers.policy.findings import MAJORITY, STEPS_TO_KNOW_WARM_UP, WORTH_A_FINDING
from stepscope.registers.policy.useless_work import STRIDES_MOST, UNSURE_PADDING
from stepscope.trace.frames import take
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import at_or_inside

_ATTENTION = "aten::scaled_dot_product_attention"
_ON_SCORES = r"attention|softmax|bmm$"  # work that grows with the square of the length
_RECURRENT = r"^aten::_(cudnn|miopen)_(rnn|rnn_backward)$"
_COUNTED_TITLE = "Batches are padded to the longest sample of all"
_MIXED_TITLE = "Batches mix samples of all lengths, and are mostly padding"
_SORT = "Put samples of similar length together: a sampler that sorts by length (group_by_length=True in the Trainer of transformers), or batches of a fixed number of tokens instead of samples. Or pack samples into one sequence (torch.nested, varlen attention)."
_SORT_COMPILED = "Put samples of similar length together: sort texts by length before they are batched, and pad each batch to the next of a few lengths (buckets), each compiled once. Or pack samples into one sequence, with a mask of segments."
_COMPARES = ("aten::eq", "aten::ne")
_FILLS = ("aten::masked_fill", "aten::masked_fill_")


def find(case: Case) -> Finding | None:
    """A mask that differs between samples hides the padding; one length in all steps is that of the longest of all data."""
    compiled = _lengths_in_programs(case) if case.runs_programs else set()
    masked = _padded_length(case) if not case.runs_programs else min(compiled) if len(compiled) == 1 else None
    batches = padded(case, masked, compiled)
    if batches is None or (case.runs_programs and case.device is None and batches.counted is None):
        return None
    found = _on_device(case, batches) if case.has_device else _on_host(case, batches)
    if found is not None and batches.counted is not None:
        found.certainty = 1.0
    return found


def _on_device(case: Case, batches: Padded) -> Finding | None:
    kernels = case.compute.kernels.filter(pl.col("class") != "optimizer", pl.col("time_ns") > 0)
    if batches.counted is not None:
        kernels = _kernels_on_batch(case, kernels, batches)
    owned = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(kernels["event"].implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    # The work of attention grows with the square of the length.
    square = (pl.col("class") == "attention") | pl.col("event").is_in(_of_scores(case).implode())
    ends = zip(("least", "most"), batches.left(of_squares=False), batches.left(of_squares=True), strict=True)
    chosen = kernels.select(
        "event", **{end: pl.when(square).then(squared).otherwise(left) for end, left, squared in ends}
    )
    shortened = _with_recurrent_launches(case, shorten_kernels(case, chosen), batches)
    changed = _with_batch(case, shortened, batches)
    squares = kernels.filter(square)["event"]
    accounted = _left(
        case, batches, ns, case.per_step(owned.filter(pl.col("named_by").is_in(squares.implode())))
    )
    return _found(case, batches, owned, changed, accounted)


def _found(
    case: Case, batches: Padded, owned: pl.DataFrame, changed: Plan | Change, accounted: Interval
) -> Finding:
    words, evidence = _words(batches), _evidence(batches)
    found = timed(case, RULE, owned, changed, _describe(batches), evidence, accounted=accounted, **words)
    if batches.is_mixed:
        found.fix = _SORT_COMPILED if case.runs_programs else _SORT
    return found


def _left(case: Case, batches: Padded, ns: float, square_ns: float) -> Interval:
    """What is left of the step by the account, of which so much shrinks, a part of it by the square."""
    square = square_ns / case.step_ns
    linear = ns / case.step_ns - square
    ends = zip(batches.left(of_squares=False), batches.left(of_squares=True), strict=True)
    least, most = (1 - linear * (1 - left) - square * (1 - squared) for left, squared in ends)
    return Interval(least, (least * most) ** 0.5, most)


def _describe(batches: Padded) -> str:
    if batches.counted is None:
        return (
            f"Attention gets a mask per sample, and all steps have sequences of {batches.length:,}: batches seem to be padded to the "
            "longest sample of all, not of the batch. How much of them is padding a profile does not show."
        )
    counted = batches.counted
    lengths = [each.positions for each in batches.sizes]
    steps = (
        f"Steps have sequences of {min(lengths):,} to {max(lengths):,}"
        if lengths
        else f"All steps have sequences of {counted.positions:,}"
    )
    return (
        f"{steps}. As counted in the recorded steps, samples have {counted.mean:,.0f} of these on "
        f"average, and the longest of a batch has {counted.longest:,.0f}."
    )


def _evidence(batches: Padded) -> dict[str, Any]:
    if batches.counted is None:
        return {"length": batches.length}
    return {
        "length": batches.length,
        "mean_length": round(batches.counted.mean),
        "longest_length": round(batches.counted.longest),
    }


def _words(batches: Padded) -> dict[str, Any]:
    """Of batches whose lengths were counted."""
    if batches.counted is None:
        return {}
    title = _MIXED_TITLE if batches.is_mixed else _COUNTED_TITLE
    return {"title": title, "spread": batches.spread}


def _kernels_on_batch(case: Case, kernels: pl.DataFrame, batches: Padded) -> pl.DataFrame:
    """Those of the kernels that work on the counted positions of the samples: nothing else is less for shorter ones."""
    if case.runs_programs:
        return kernels.filter(~pl.col("event").is_in(_of_weights_alone(case, batches).implode()))
    ops = _ops_on_batch(case, batches)
    mine = case.trace.kernels.filter(pl.col("op").is_in(ops.implode()))["event"]
    return kernels.filter(pl.col("event").is_in(mine.implode()))


def _ops_on_batch(case: Case, batches: Padded) -> pl.Series:
    return pl.concat([on_batch(case.ops, each) for each in batches.all_counted]).unique()


def _of_weights_alone(case: Case, batches: Padded) -> pl.Series:
    """What compiled programs do on arrays without such positions; compilers join dimensions as they like, so any multiple will do."""
    ops = case.ops.select("event", shapes=pl.col("shapes").cast(pl.String)).drop_nulls()
    alone = [
        text
        for text in ops["shapes"].unique()
        if not any(_has_positions(text, each) for each in batches.all_counted)
    ]
    found: pl.Series = ops.filter(pl.col("shapes").is_in(alone))["event"]
    return found


def _has_positions(text: str, counted: CountedLengths) -> bool:
    """Whether a dimension is the length, or a multiple of the positions of all samples, or of a part of them; or nothing is known."""
    shapes = [shape for shape in shapes_in(text) if shape]
    samples, length = counted.shape
    parts = {length // times for times in range(1, STRIDES_MOST + 1) if length % times == 0}
    wholes = {samples * part for part in parts}
    sizes = [size for shape in shapes for size in shape if size]
    return not shapes or any(size in parts or any(size % whole == 0 for whole in wholes) for size in sizes)


def _on_host(case: Case, batches: Padded) -> Finding | None:
    """The same of ops that the host computes."""
    computed = case.free(pl.col("part") == "host_compute")
    owned = computed.filter(~take(in_optimizer(case.trace.events), computed["named_by"]))
    if case.runs_programs:
        owned = owned.filter(~pl.col("named_by").is_in(_of_weights_alone(case, batches).implode()))
    elif batches.counted is not None:
        owned = owned.filter(pl.col("named_by").is_in(_ops_on_batch(case, batches).implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    of_scores = owned["name"].cast(pl.String).str.contains(_ON_SCORES).fill_null(False)
    return _found(
        case, batches, owned, case.plan, _left(case, batches, ns, case.per_step(owned.filter(of_scores)))
    )


def _with_recurrent_launches(case: Case, change: Change, batches: Padded) -> Change:
    """A recurrent network launches kernels for each position: fewer positions, fewer launches."""
    recurrent = events_named(case.trace.events, lambda names: names.str.contains(_RECURRENT))
    if not recurrent.any():
        return change
    inside = at_or_inside(case.trace.events, recurrent)
    mine = pl.lit(inside.gather(case.plan.host["event"]).fill_null(False))
    return Change(
        change.smallest.with_host(mine, batches.most), change.largest.with_host(mine, batches.least)
    )


def _with_batch(case: Case, change: Change, batches: Padded) -> Change:
    """Shorter batches are sent in less time too, unless a step sends other things; at most, the host makes them in less time."""
    if sends_weights(case):
        return change
    sent = pl.col("event").is_in(uploads(case).implode())
    items = case.plan.items.filter(sent)["item"].implode()
    calls = (pl.col("item").is_in(items) & pl.col("cause").is_in(["dispatch", "sync", "copy"])) & (
        pl.col("recorded_ns") >= STAGED_COPY_NS
    )
    sending = calls | is_staging(case)
    smallest = change.smallest.with_host(sending, batches.most).with_device(sent, batches.most)
    largest = change.largest.with_host(sending | (pl.col("cause") == "input"), batches.least)
    return Change(smallest, largest.with_device(sent, batches.least))


def _of_scores(case: Case) -> pl.Series:
    """Kernels that another finding knows to work on tables of attention scores."""
    claims = [each for each in (case.owned or {}).get(UNFUSED.code, []) if len(each)]
    named: pl.Series = case.all_slices["named_by"]
    return named.gather(pl.concat(claims)).drop_nulls().unique() if claims else named.clear()


def _lengths_in_programs(case: Case) -> set[int]:
    """The same of compiled programs; where they are compiled for several lengths, batches are not padded to one."""
    if case.lengths["step"].n_unique() < STEPS_TO_KNOW_WARM_UP:
        return set()
    codes = {hlo for _, _, hlo in programs_that_ran(case.trace)}
    return {length for length in (padded_length(Module(hlo)) for hlo in codes) if length is not None}


def _padded_length(case: Case) -> int | None:
    """The one length of all sequences with a mask of their own; None where there is none, or several."""
    names = pl.col("name").cast(pl.String)
    ops = case.ops.filter(names.is_in([_ATTENTION, *_FILLS]), pl.col("step").is_not_null())
    if ops.is_empty() or ops["step"].n_unique() < STEPS_TO_KNOW_WARM_UP or _packs(case):
        return None
    calls = ops.select(op="event", name=names, shapes=pl.col("shapes").cast(pl.String)).join(
        recorded_strides(case.trace), on="op", how="left"
    )
    distinct = calls.drop("op").drop_nulls("shapes").unique()
    found = [_masked_length(*each) for each in distinct.iter_rows()]
    known = distinct.with_columns(length=pl.Series(found, dtype=pl.Int64))
    lengths = calls.join(known, on=["name", "shapes", "strides"], how="left", nulls_equal=True)
    attention = lengths.filter(pl.col("name") == _ATTENTION)["length"]
    masked = lengths["length"].drop_nulls()
    if masked.n_unique() != 1 or attention.is_not_null().sum() < MAJORITY * len(attention):
        return None
    return int(masked[0])


def _packs(case: Case) -> bool:
    """Whether a mask compares the documents of all positions with each other: several samples are packed into one sequence."""
    compared = case.ops.filter(pl.col("name").cast(pl.String).is_in(_COMPARES), pl.col("step").is_not_null())
    calls = compared.select(op="event", shapes=pl.col("shapes").cast(pl.String)).join(
        recorded_strides(case.trace), on="op", how="left"
    )
    return any(_are_pairs(*each) for each in calls.drop("op").drop_nulls("shapes").unique().iter_rows())


def _are_pairs(text: str, strides: str | None) -> bool:
    """Of [samples, length, 1] and [samples, 1, length], or the same with an axis for heads."""
    try:
        (first, *samples, rows, one), (second, *others, single, columns) = held_shapes(text, strides)[:2]
    except ValueError:
        return False
    if rows == 1:
        rows, one, single, columns = single, columns, rows, one
    return samples == others and first == second > 1 and one == single == 1 < rows == columns


def _masked_length(name: str, text: str, strides: str | None) -> int | None:
    """The length of sequences that attend to themselves, where each sample has a mask of its own."""
    shapes = held_shapes(text, strides)
    try:
        if name == _ATTENTION:
            (samples, _, queries, _), (_, _, keys, _), _, mask, *_ = shapes
        else:
            (samples, _, queries, keys), mask, *_ = shapes
        masked, _, _, columns = mask
    except ValueError:
        return None
    is_own = masked == samples > 1 and columns == keys == queries > 1
    return keys if is_own else None


RULE: Rule[Case] = Rule(
    code="padding",
    title="Batches seem to be padded to the longest sample of all",
    turn=212,
    turn_without_device=108,
    page="ops",
    certainty=UNSURE_PADDING,
    owns="the remaining `compute`, without a device the ops that the host computes, if all steps have sequences of the same length, and attention gets a mask per sample, or the capture counted how long samples are: by masks, by token ids that end in one value, or as a CTC loss is given them. Also if each step has a batch of another length, or four or more batches of several lengths, and they were counted to be mostly padding all the same: samples of all lengths come together. Nothing is found where they fill the batches, or where lengths grow by one with each batch, as texts do that are generated",
    change="all kernels except the optimizer's take 25 to 80 % of their time (if the capture counted lengths, the share of the longest sample of a batch, up to 1.2 times that, and where each length is compiled 0.75 to 1.2 times the next power of two; where that is more than three quarters, or batches have several lengths, what is left if the samples are sorted by their counted lengths and batched again: those of 16 to 128 batches together, or those of a step that has four or more, up to 1.5 times as many, and up to 1.1 times that; in older recordings, which say no more than the mean, 1 to 1.25 times the mean share; in PyTorch only kernels of ops that are given a tensor of the batch shrink, by its samples and positions, and in compiled programs those whose shapes have no such dimension stay, and launches of cuDNN's recurrent networks shrink, too), attention kernels the square of that share, or the mean square of the sorted lengths, and copies of the batch to the device shrink likewise; at best, the host also makes the batch faster by the same share, as for batches padded to their own longest sample. Without a device, the same of the ops that the host computes",
    fix={
        "pytorch": "Pad each batch to its own longest sample (in collate_fn), and put samples of similar length together (a sampler by length); or pack samples into one sequence (torch.nested, varlen attention).",
        "jax": "Pad batches to a few lengths (buckets), each compiled once, instead of to the longest sample of all.",
        ANY: "Pad each batch to its own longest sample, and put samples of similar length together.",
    },
    find=find,
)
