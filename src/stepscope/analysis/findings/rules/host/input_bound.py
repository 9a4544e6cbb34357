"""The device waits for the next batch."""

from __future__ import annotations

import math
import re

import polars as pl

from stepscope.analysis.findings.batches.advice import advise
from stepscope.analysis.findings.batches.busy_cores import advise_less_work, waits_for_cores
from stepscope.analysis.findings.batches.eager_rows import advise_one_index, find_eager_rows
from stepscope.analysis.findings.batches.pipeline import (
    left_of_pipeline,
    spread_of_pipeline,
    tell_of_pipeline,
)
from stepscope.analysis.findings.batches.restarts import find_restarts, tell_of_starts
from stepscope.analysis.findings.batches.tf_data import find_tf_data
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import of_part
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.steps.slow_batches import is_garbage
from stepscope.analysis.findings.transfers.staging import (
    gaps_of,
    reads_bytes,
    send_beside,
    send_less,
    share_of_bytes,
    uploads,
)
from stepscope.analysis.input_facts import InputFacts, input_facts
from stepscope.analysis.ops.sent import samples_sent
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.calibration.launches import SAMPLE_ALONE_NS, SAMPLE_FROM_MEMORY_NS
from stepscope.registers.calibration.profiler import WARM_DISPATCH_BESIDE_WORKERS, WARM_DISPATCH_WORST
from stepscope.registers.policy.findings import BYTES_BEFORE_FLOATS, MORE_WORKERS_LEAST, WORTH_A_FINDING
from stepscope.units import duration

_IS_INPUT = pl.col("cause") == "input"
_FIX_OF_SAMPLES = "Pick whole batches with one index instead of sample by sample: keep the data as tensors, on the device if they fit, and take batch = data[order[start : start + size]]; or give the DataLoader batch_size=None and a BatchSampler, so that __getitem__ takes a list."

_FIX_OF_PIPELINE = "Do less for each batch: .cache() what is the same in every epoch (before shuffling and random changes), .batch() first and .map() whole batches, TensorFlow ops in place of tf.numpy_function and tf.py_function, of which only one runs at a time; or decode and resize the data once, before training."


def find(case: Case) -> Finding | None:
    """The loop waits for, or makes, its next batch."""
    facts = input_facts(case.trace)
    pipeline = find_tf_data(case.trace, case.steps)
    owned = case.free(pl.col("part") == "input")
    rows = None if _has_loader(facts) else find_eager_rows(case, owned)

    def left_on_host(case: Case, ns: float) -> Interval:
        return rows.left(case, ns) if rows else left_of_pipeline(case, ns, pipeline, facts)

    found = of_part(
        case,
        RULE,
        owned,
        lambda: loaded_beside(case, facts),
        # Where the job waits and the recorded steps did not, these need not have spent much on it.
        0.0 if case.had_ready_batches else WORTH_A_FINDING,
        account=None if case.device is not None else left_on_host,
        choose_spread=lambda _: None if case.device is not None else spread_of_pipeline(pipeline),
    )
    if found is not None and case.had_ready_batches:
        longer = duration(case.lacking_wait_ns)
        found.detail += f" Steps of the job wait {longer} longer than recorded ones: batches were ready when the recording began."
    if found is not None:
        _tell_of_slow_batches(case, found)
    usual = None if found is None else _with_workers(case, _advised(case, found, facts), facts)
    if usual is not None:
        tell_of_pipeline(usual, pipeline)
        tell_of_starts(case, usual)
        if rows is not None:
            advise_one_index(usual, rows)
        elif usual.fix != _FIX_OF_SAMPLES and waits_for_cores(case, facts):
            advise_less_work(case, usual, facts)
    again = find_restarts(case, RULE)
    if again is None or usual is None:
        return again or usual
    if again.saves_ns_per_step < usual.saves_ns_per_step:
        usual.detail += f" {again.detail}"
        return usual
    case.of_slow_steps.add(RULE.code)
    again.detail += f" Usual steps wait for data too: {usual.detail}"
    return again


def _tell_of_slow_batches(case: Case, found: Finding) -> None:
    """Says where making batches takes longer now and then."""
    rhythm = case.recorded.rhythm
    if rhythm is None or case.slow_batches_ns < WORTH_A_FINDING * case.basis_ns:
        return
    why = (
        "As often, Python looks for garbage among all of its objects, of which batches are made."
        if is_garbage(case.trace)
        else "Their batches take longer to make."
    )
    found.detail += f" Without the profiler one step in {rhythm.period} takes {duration(rhythm.slow_ns)}, the others {duration(rhythm.usual_ns)}. {why}"
    found.evidence = {**found.evidence, "slow_batches_ns": round(case.slow_batches_ns)}


def _with_workers(case: Case, found: Finding, facts: InputFacts) -> Finding:
    """Says how many workers the promise takes: one alone hides no more than the rest of the step. Samples in memory take none."""
    making = _making_ns(case)
    left = found.left_ns_per_step.mid if found.left_ns_per_step is not None else 0
    if not case.replay_fits or left <= 0:
        return found
    batch = _batch_ns(making, case.plan.with_host(_IS_INPUT).step_ns(), facts)
    samples = _count_in_memory(case, batch) if _has_loader(facts) else 0
    if samples:
        found.fix = _FIX_OF_SAMPLES
        found.detail += f" Each of {samples} samples takes {duration(batch / samples)}: they are in memory, and are picked one by one."
        return found
    if facts.workers:
        return found
    workers = math.ceil(making / left)
    if workers > 1:
        rest = max(1.0, case.played_ns - making)
        alone = max(1.0, case.played_ns / max(making, rest))
        otherwise = "" if _has_loader(facts) else ", or a function that makes whole batches at once"
        found.detail += (
            f" A batch takes {duration(making)} to make: the speed-up takes about {workers} workers{otherwise}; "
            f"a single one in the background would bring {alone:.2f}×."
        )
        found.evidence = {**found.evidence, "workers_needed": workers}
    return found


def _advised(case: Case, found: Finding, facts: InputFacts) -> Finding:
    """The finding with what the recording shows of the loader."""
    found.fix = advise(case, found, facts)
    evidence = {"workers": facts.workers, "cores": facts.cores, "prefetches": facts.prefetches}
    found.evidence = {
        **found.evidence,
        **{name: value for name, value in evidence.items() if value is not None},
    }
    if facts.slow is not None:
        place = facts.slow
        found.where = [place]
        found.detail += f" The slowest function{' of the workers' if facts.slow_in_worker else ''} is {place.function} ({place.file}:{place.line})."
    if facts.maps_in_parallel and facts.prefetches:
        found.detail += " Several threads make batches ahead already."
        found.fix = _FIX_OF_PIPELINE
    if facts.cores:
        found.fix = _fit_workers(found.fix, facts.cores)
    if facts.workers:
        of = f" of {facts.cores} cores" if facts.cores else ""
        found.detail += f" {facts.workers} worker{'s' if facts.workers > 1 else ''}{of} make batches already."
    return found


def _fit_workers(fix: str, cores: int) -> str:
    """The advice with no more workers than the machine has cores."""
    return re.sub(r"num_workers=(\d+)", lambda found: f"num_workers={min(int(found[1]), cores)}", fix)


def loaded_beside(case: Case, facts: InputFacts) -> Change:
    """Batches are made beside the step by several workers, or by a function that does it for all samples at once."""
    return _by_workers(case, facts) if _has_loader(facts) else _at_once(case)


def _has_loader(facts: InputFacts) -> bool:
    """Whether a loader makes the batches, which can be given workers; else a function of the job does."""
    return facts.has_workers is not None or facts.prefetches is not None


def _at_once(case: Case) -> Change:
    """Making them takes no time, with what joins the samples. They are sent as the bytes that they were made from if the ops say
    so, and at worst ops pick and pin these in the step, as before; else at most, and then from pinned memory."""
    gaps = gaps_of(case, _IS_INPUT)
    joins = pl.col("item").is_in(gaps.implode()) & (pl.col("cause") == "python")
    without = case.plan.with_host(_IS_INPUT | joins)
    known = reads_bytes(case)
    largest = send_less(case, without, _IS_INPUT | joins, BYTES_BEFORE_FLOATS, pinned=not known)
    smallest = without
    if known:
        bytes_alone = case.plan.with_host(joins).with_host(_IS_INPUT, share_of_bytes(case, _IS_INPUT))
        smallest = send_less(case, bytes_alone, _IS_INPUT | joins, BYTES_BEFORE_FLOATS)
    return Change(
        with_warm_caches(smallest, case.plan, WARM_DISPATCH_WORST), with_warm_caches(largest, case.plan)
    )


def _by_workers(case: Case, facts: InputFacts) -> Change:
    """What several workers cannot make in the time of a step is waited for."""
    without = case.plan.with_host(_IS_INPUT)
    rest = without.step_ns()
    making = _making_ns(case)
    batch = _batch_ns(making, rest, facts)
    if _count_in_memory(case, batch):
        return _picked_at_once(case, without)
    workers = max(1, facts.workers or 1)
    fewest = max(MORE_WORKERS_LEAST, workers * 2)
    if facts.cores:  # without a device, the step itself wants one
        most = max(1, facts.cores - (0 if case.has_device else 1))
        # Whoever has workers already does more than add some: batches are made by all cores, or in a cheaper way.
        fewest = max(workers, most) if facts.workers else min(fewest, most)
    # Batches that others make can be pinned and sent while the device computes.
    return Change(
        _waiting(case, batch / fewest - rest, making),
        with_warm_caches(send_beside(case, without), case.plan, WARM_DISPATCH_BESIDE_WORKERS),
    )


def _making_ns(case: Case) -> float:
    """How long a step makes its batch, or waits for it."""
    return float(case.plan.host.filter(_IS_INPUT)["ns"].sum()) / max(1, len(case.lengths))


def _batch_ns(making: float, rest: float, facts: InputFacts) -> float:
    """What a batch takes to make. With workers already, it costs as much of theirs as all of them together have in a step."""
    workers = max(1, facts.workers or 1)
    return making if workers == 1 else workers * (making + rest)


def _count_in_memory(case: Case, batch_ns: float) -> int:
    """The samples of a batch that a loader makes in this time, one by one; 0 if each takes longer than to pick what is in memory.

    If each takes less than Python needs for it, the data set makes whole batches.
    """
    samples = samples_sent(case.trace)
    return samples if SAMPLE_ALONE_NS * samples <= batch_ns < SAMPLE_FROM_MEMORY_NS * samples else 0


def _picked_at_once(case: Case, without: Plan) -> Change:
    """Samples that are in memory need no loader: one index picks all rows of a batch. At most the device has them already, and
    nothing is sent."""
    sent = case.plan.items.filter(pl.col("event").is_in(uploads(case).implode()))["item"]
    mine = pl.col("item").is_in(sent.implode())
    on_device = send_beside(case, without).with_host(mine).with_device(mine, 0.0)
    return Change(
        with_warm_caches(without, case.plan, WARM_DISPATCH_WORST), with_warm_caches(on_device, case.plan)
    )


def _waiting(case: Case, ns: float, before: float) -> Plan:
    left = min(1.0, max(0.0, ns) / before) if before else 0.0
    return case.plan.with_host(_IS_INPUT, left)


RULE: Rule[Case] = Rule(
    code="input-bound",
    title="The device waits for data",
    title_without_device="The step waits for data",
    turn=70,
    page="input",
    owns="`input`; in steps that restart loader workers, the time beyond the usual",
    change="a loader without workers gets six, one with workers as many as there are cores; the loop waits only for what they cannot produce in time. At best, it waits for no batch, and batches are transferred while the device computes. Where a sample takes 1 to 25 µs, it is in memory: whole batches are picked with one index and the loop waits for none; at best, the data is on the device and nothing is transferred. A function of the job that makes batches takes no time, nor does collating the samples; where ops read bytes, a quarter of the bytes is transferred, and at worst ops that pick the bytes stay, with a quarter of pinning what was made of them; otherwise only at best, from pinned memory. Where that function calls a program of JAX 10 times or more for each batch, on a CPU all of its time goes; at worst what these compute stays, and the rest of the step takes as long without the profiler as recorded. On a CPU where threads of tf.data make batches ahead already, between none of the wait and all of it goes, half of it most likely; but all of it as far as their work is the same in every epoch and nothing is cached, or a Python generator yields single samples, and what takes the cores and the profiler's time from the rest of the step goes too, half of it most likely. Where workers restart in each epoch, steps take as long as those in between; at worst, the wait for the first batch of an epoch remains",
    fix={
        "pytorch": "Load in worker processes: DataLoader(num_workers=8, pin_memory=True, persistent_workers=True, prefetch_factor=4). If workers are on already, move the slow stage to the GPU, or store data that is already decoded.",
        "tensorflow": "End the pipeline with .prefetch(tf.data.AUTOTUNE), use .map(…, num_parallel_calls=tf.data.AUTOTUNE), and .cache() what fits into memory.",
        "jax": "Make the next batches in several background workers (Grain with worker_count, tf.data) and hand them over with jax.device_put before they are needed.",
        ANY: "Make the next batches in the background, in several workers, while the step computes.",
    },
    fix_without_device={
        "pytorch": "Load in worker processes: DataLoader(num_workers=4, persistent_workers=True, prefetch_factor=4). If workers are on already, store data that is already decoded.",
        "jax": "Make the next batches in several background workers (Grain with worker_count, tf.data).",
    },
    find=find,
)
