"""The host waits for the device, and the queue runs dry."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import polars as pl

from stepscope.analysis.findings.answers import answer_waits, infers
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.findings.programs.own_reads import own_reads
from stepscope.analysis.findings.programs.program_runs import program_runs
from stepscope.analysis.findings.programs.read_loops import acts_on_reads, goes_on_between_reads
from stepscope.analysis.findings.programs.silent_waits import say_silence, with_silence
from stepscope.analysis.findings.promise import left_by_replay, of_part
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.unbatched_loop import at_best, batched, held_up, in_loops, reading
from stepscope.analysis.findings.spread import OF_READS
from stepscope.analysis.findings.transfers.copy_items import copy_items
from stepscope.analysis.findings.transfers.staging import uploads
from stepscope.analysis.findings.transfers.waits import (
    TO_DEVICE,
    TO_HOST,
    acts_on_values,
    ended_by_exchanges,
    mostly_waits_for,
)
from stepscope.analysis.findings.waits_of_libraries import name_library
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.functions import where
from stepscope.analysis.host.loops import Loops
from stepscope.analysis.replay.plan import USUAL, Plan
from stepscope.native.host import replay as native
from stepscope.native.host.lineage import FRAMEWORK
from stepscope.registers.calibration.launches import SHORT_READ_NS
from stepscope.registers.calibration.profiler import WARM_DISPATCH_WORST
from stepscope.registers.policy.findings import (
    LOOP_ITERATIONS,
    MAJORITY,
    OPS_READ_WITH_A_WAIT,
    SURE_GAIN,
    TOP_NAMES,
    WORTH_A_FINDING,
    WORTH_A_SENTENCE,
    WORTH_SHOWING,
)
from stepscope.trace.frames import take
from stepscope.units import duration

VALUES_READ = "values_read_per_step"  # in the evidence
_READ_ONCE = "Fetch the arrays that the values are from with one jax.device_get, and index the NumPy arrays: each index into an array of JAX is a program of its own, and each float(x), int(x) or .tolist() a wait."
_LOOP_ON_DEVICE = "Put the loop under one jax.jit, with what changes from turn to turn as its carry: jax.lax.while_loop tests on the device whether another turn follows, jax.lax.scan makes a known number of them. Read what they made once, after the loop."
_SEND_PINNED = "Do not wait for what is sent: a copy from pageable memory, such as .to(device) of a tensor of the host, waits for all work before it. Pin it (pin_memory=True in the DataLoader, .pin_memory()) and copy with non_blocking=True; create indexes, masks and constants on the device (device=…), or send them once before the loop."
ACT_TOGETHER = "Read several values at once: where the loop acts on each, as in reinforcement learning, run several environments in one batch, send their observations in one copy and read all actions together."
_DISPATCH = pl.col("cause").is_in(["dispatch", "sync"])


def find(case: Case) -> Finding | None:
    """Waits that empty the queue, and what it takes to fill it again."""
    if _are_of_programs(case):
        return None  # their own, inside of them: nothing that the job reads less often changes them
    for_copies = pl.col("named_by").is_in(uploads(case).implode())  # of `exposed-copy`
    waits = case.free(pl.col("part") == "sync", ~for_copies)
    loops = case.loops if case.device is not None and not case.runs_programs else None
    frames = reading(case, loops) if loops is not None and len(loops.found) else set()
    if frames and acts_on_values(case):
        frames = set()  # each turn needs the values of its own: nothing can read them all at once
    answers = answer_waits(case) if case.device is not None else pl.Series(dtype=pl.Boolean)
    if loops is None or not frames:
        found = _of_waits(case, waits, answers)
    else:
        found = _read_in_loops(case, waits, loops, frames, answers)
    return _told_of_answers(case, found) if found is not None and answers.any() else found


def _are_of_programs(case: Case) -> bool:
    """Whether compiled programs make most of the waits themselves, turn by turn of a loop inside of them."""
    if not case.runs_programs or case.device is None:
        return False
    waits = case.plan.items["kind"] == native.WAIT
    return int((waits & own_reads(case)).sum()) > MAJORITY * int(waits.sum())


def _of_waits(case: Case, waits: pl.DataFrame, answers: pl.Series) -> Finding | None:
    together = _are_of_results(case)
    spread = OF_READS if together and _first_reads(case).any() else None
    change = cache(lambda: without_waits(case, answers))
    least = _least(case, case.per_step(waits), change)
    found = of_part(case, RULE, waits, change, least, choose_spread=lambda _: spread)
    if found is not None and case.device is not None:
        _name_what_is_waited_for(case, found, waits, answers)
        name_library(case, found, waits)
    if found is not None:
        say_silence(case, found)
    if found is not None and together:
        found.detail += " A step reads values one by one: fetch them together, with one jax.device_get of the arrays that they are from."
        _count_values(case, found)
        if infers(case):
            found.fix = _READ_ONCE
    elif found is not None and _is_loop_of_programs(case):
        _count_values(case, found)
        found.fix = _LOOP_ON_DEVICE
    return found


def _count_values(case: Case, found: Finding) -> None:
    read = round(_values_read(case) / max(1, len(case.lengths)))
    found.evidence = {**found.evidence, VALUES_READ: read}


def _name_what_is_waited_for(case: Case, found: Finding, waits: pl.DataFrame, answers: pl.Series) -> None:
    """Copies to the device do not read values; a loop that acts on values can do so for several at once; exchanges end elsewhere."""
    if case.runs_programs:
        return
    direction = mostly_waits_for(case, waits)
    if direction == TO_DEVICE and case.trace.info.framework == "pytorch":
        found.evidence = {**found.evidence, "copies": direction}
        found.detail += " Most of these waits are for copies to the device."
        found.fix = _SEND_PINNED
    if acts_on_values(case):
        found.detail += " The loop acts on the values that it reads, so the ops that make them stay."
        found.fix = f"{ACT_TOGETHER} {found.fix}"
    _say_exchanges(case, found, ended_by_exchanges(case) & ~answers)


def _say_exchanges(case: Case, found: Finding, ended: pl.Series) -> None:
    waits = case.plan.items.filter(ended)["event"]
    ns = int(case.trace.events["dur_ns"].gather(waits).sum()) / max(1, len(case.lengths))
    if ns >= WORTH_A_SENTENCE * case.step_ns:
        found.evidence = {**found.evidence, "waits_for_exchanges_ns_per_step": int(ns)}
        found.detail += f" Waits of {duration(ns)} end with an exchange, when the last rank has come: at worst, they stay."


def _least(case: Case, ns: int, change: Callable[[], Change]) -> float:
    """What share of a step waits must take: many short ones take little themselves, and ops that only make what is read go with them."""
    if not WORTH_A_SENTENCE * case.step_ns <= ns < WORTH_SHOWING * case.step_ns or not case.replay_fits:
        return WORTH_SHOWING
    goes = 1 - left_by_replay(case, change()).mid
    return WORTH_A_SENTENCE if goes >= WORTH_A_FINDING else WORTH_SHOWING


def _are_of_results(case: Case) -> bool:
    """Whether values that a step reads one by one are there before the first is read: a loop over a program needs each before its next turn."""
    runs = program_runs(case) if _reads_one_by_one(case) else None
    return runs is not None and not acts_on_reads(case, runs)


def _is_loop_of_programs(case: Case) -> bool:
    """Whether a step goes through the turns of a loop, and reads a value in each that decides about the next."""
    runs = program_runs(case) if _reads_one_by_one(case) else None
    return runs is not None and goes_on_between_reads(case, runs)


def _told_of_answers(case: Case, found: Finding) -> Finding:
    """Results that were asked for are waited for, at the latest when the next step has begun: how much that is worth is said, not promised."""
    change = case.changes.get(RULE.code)
    if change is None:
        return found
    behind = case.gain(left_by_replay(case, change.combined(without_waits(case)))).speedup
    if found.speedup.mid < SURE_GAIN:
        case.changes.pop(RULE.code)
        withdraw(found)
    if behind.mid > max(SURE_GAIN, found.speedup.mid):
        found.detail += (
            f" Steps end with a result that the host reads; read a step behind, it would not hold up the next one: {behind.mid:.1f}×, "
            "where steps need not be answered one by one."
        )
    return found


def _read_in_loops(
    case: Case, waits: pl.DataFrame, loops: Loops, frames: set[int], answers: pl.Series
) -> Finding | None:
    """Values that a loop reads one by one can be made together and read once: the loop goes with its waits."""
    read = Loops(
        loops.found.filter(pl.col("frame").is_in(list(frames))),
        pl.select(pl.when(loops.loop_of.is_in(list(frames))).then(loops.loop_of)).to_series(),
    )
    owned = pl.concat([waits, held_up(case, in_loops(case, read))]).unique("slice", maintain_order=True)
    together, apart = batched(case, read), without_waits(case, answers)
    change = Change(
        together.smallest.without_waits(~pl.lit(answers)), together.largest.combined(apart.largest)
    )
    if _is_one_long_stretch(case, read):
        surely = with_warm_caches(change.smallest, case.plan, WARM_DISPATCH_WORST)
        change = Change(surely, at_best(case, change.largest))
    found = of_part(case, RULE, owned, lambda: change)
    if found is not None:
        found.where = where(case.trace, read.found.sort("launches", descending=True)["frame"])[:TOP_NAMES]
        found.detail += " A loop reads values one by one: make them together (torch._foreach_norm, torch.stack) and read them once."
    return found


def _is_one_long_stretch(case: Case, loops: Loops) -> bool:
    """Whether loops take most of the host's time, no more than one in each step: what follows has to be fetched into the caches again."""
    mine = in_loops(case, loops).gather(case.plan.host["event"]).fill_null(False)
    ns = case.plan.host[USUAL]
    return len(loops.found) <= len(case.lengths) and int(ns.filter(mine).sum()) > MAJORITY * int(ns.sum())


def without_waits(case: Case, answers: pl.Series | None = None) -> Change:
    """The host does not wait, but for answers: at least that goes, and often what was only launched to be read with it."""
    waits = (case.plan.items["kind"] == native.WAIT) & ~own_reads(case)
    mine = waits if answers is None else waits & ~answers
    if not _reads_one_by_one(case):
        plan = case.plan.without_waits(pl.lit(mine))
        # What another rank's arrival ends, a change on this one need not shorten: it may wait as long in the exchange itself.
        surely = case.plan.without_waits(pl.lit(mine & ~ended_by_exchanges(case)))
        # A loop that acts on what it reads cannot do without the ops that make it.
        made = mine & (not acts_on_values(case))
        return Change(with_silence(case, surely), _without_reads(plan, _read_with(plan, made), _DISPATCH))
    first = waits & False if answers is None else _first_reads(case)
    plan = case.plan.without_waits(pl.lit(mine & ~first))
    framework = pl.lit(take(host_codes(case.trace) == FRAMEWORK, plan.host["named_by"]).fill_null(False))
    goes = _DISPATCH | ((pl.col("cause") == "python") & framework)
    read = _read_with(plan, mine) | _between_reads(case)
    once = _without_reads(plan, read & ~_read_with(plan, first), goes)
    most = with_warm_caches(_without_reads(plan, read, goes), case.plan)
    return Change(with_silence(case, once), most)


def _read_with(plan: Plan, waits: pl.Series) -> pl.Series:
    """For each item of the plan whether it is one of these waits, or a short op before one, which may make the value."""
    read = plan.items["item"].cast(pl.Int64).filter(waits)
    near = pl.concat([read - back for back in range(OPS_READ_WITH_A_WAIT + 2)])
    is_near = pl.col("item").cast(pl.Int64).is_in(near.implode())
    return plan.items.select(is_near & (pl.col("device_ns") < SHORT_READ_NS)).to_series()


def _between_reads(case: Case) -> pl.Series:
    """For each item of the plan whether it is between the first and the last value that its step reads of results.

    All that is launched there takes values out of arrays, but for compiled functions and long work: an index is a copy, a program
    and some more items of the runtime.
    """
    items = case.plan.items
    runs = program_runs(case) if infers(case) else None
    if runs is None or acts_on_reads(case, runs):
        return pl.repeat(False, len(items), dtype=pl.Boolean, eager=True)
    compiled = runs.work.filter("is_compiled")["event"]
    read = pl.col("item").is_in(_items_read(case).implode())
    known = items.with_columns(place=pl.col("last").cum_sum().shift(1, fill_value=0), read=read)
    between = pl.col("read").cum_max().over("place") & pl.col("read").cum_max(reverse=True).over("place")
    short = (pl.col("device_ns") < SHORT_READ_NS) & ~pl.col("event").is_in(compiled.implode())
    return known.select((between & short).fill_null(False)).to_series()


def _without_reads(plan: Plan, read: pl.Series, goes: pl.Expr) -> Plan:
    """The plan without these items, and without such work of the host for them."""
    gone = pl.col("item").is_in(plan.items["item"].filter(read).implode())
    return plan.with_host(gone & goes).with_device(gone)


def _first_reads(case: Case) -> pl.Series:
    """For each item of the plan whether it waits for the first value that its step reads: of results, which are then read together.

    Training can do without what it reads.
    """
    items = case.plan.items.with_columns(place=pl.col("last").cum_sum().shift(1, fill_value=0))
    if not infers(case):
        return pl.repeat(False, len(items), dtype=pl.Boolean, eager=True)
    read = _items_read(case)
    begun = pl.col("item").is_in(read.implode()).cum_max().over("place")
    waits = begun & (pl.col("kind") == native.WAIT)
    return items.select(waits & (waits.cum_sum().over("place") == 1)).to_series()


def _reads_one_by_one(case: Case) -> bool:
    """Whether a step of compiled programs reads value after value, each made by a program of its own: they belong into the step's."""
    if not case.runs_programs or case.device is None:
        return False
    return _values_read(case) >= LOOP_ITERATIONS * len(case.lengths)


def _values_read(case: Case) -> int:
    """How many values are copied to the host behind work that made them."""
    read = copy_items(case)["item"].is_in(_items_read(case).implode())
    return int((read & ~read.shift(1, fill_value=True)).sum())


def _items_read(case: Case) -> pl.Series:
    """The items of the plan that are copies to the host, but those that a program reads by itself."""
    copies = copy_items(case).filter(direction=TO_HOST)["item"]
    found: pl.Series = copies.filter(~take(own_reads(case), copies))
    return found


RULE: Rule[Case] = Rule(
    code="device-sync",
    title="The host waits for the device inside the step",
    turn=100,
    owns="`sync`",
    change="the host does not wait. At best, the ops that wait and up to three short ops that make the value disappear as well, unless steps send something after a number was read, as loops do that act on it; even at worst if programs of JAX or TensorFlow make eight or more values that a step reads one by one; then the framework's Python code for each of them disappears too, and unless the job trains, all that is launched between the first and the last of them but compiled functions and long work; the host still waits for the first. Values that a loop reads one by one, and does not act on, are made together and read once; if one such loop takes most of the host's time in a step, the rest is dispatched from warm caches. Unless the job trains, the host still waits for the array that a step ends with; the gain from reading it one step later is mentioned, not promised. At worst, waits during which the device mostly communicates remain: other ranks end these. Where a wait of JAX or TensorFlow goes on for more than 1 ms after all devices are done, no more than that surely disappears; nothing is promised if such silence is most of what the finding owns. Waits in which a compiled program itself reads whether its loop goes on are not touched, and if most are of this kind, nothing is found",
    fix={
        "pytorch": "Do not read values back in every step: drop .item(), .cpu(), print(loss) and torch.cuda.synchronize(), or do it every 100 steps; keep metrics on the device. Copies to the host: non_blocking=True into pinned memory.",
        "tensorflow": "Do not call .numpy() in every step; log every 100 steps.",
        "jax": "Do not call block_until_ready, float(x) or print(x) in every step; fetch metrics every 100 steps.",
        ANY: "Do not wait for the device in every step.",
    },
    find=find,
)
