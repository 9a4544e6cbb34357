"""The host waits for the device, and the queue runs dry."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.answers import answer_waits
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.copy_items import copy_items
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.findings.promise import left_by_replay, of_part
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.unbatched_loop import at_best, batched, held_up, in_loops, reading
from stepscope.analysis.findings.staging import uploads
from stepscope.analysis.host.functions import where
from stepscope.analysis.host.loops import Loops
from stepscope.analysis.replay.plan import USUAL
from stepscope.native.host import replay as native
from stepscope.registers.calibration.launches import SHORT_READ_NS
from stepscope.registers.calibration.profiler import WARM_DISPATCH_WORST
from stepscope.registers.policy.findings import (
    LOOP_ITERATIONS,
    MAJORITY,
    OPS_READ_WITH_A_WAIT,
    SURE_GAIN,
    TOP_NAMES,
)


def find(case: Case) -> Finding | None:
    """Waits that empty the queue, and what it takes to fill it again."""
    for_copies = pl.col("named_by").is_in(uploads(case).implode())  # of `exposed-copy`
    waits = case.free(pl.col("part") == "sync", ~for_copies)
    loops = case.loops if case.device is not None and not case.runs_programs else None
    frames = reading(case, loops) if loops is not None and len(loops.found) else set()
    answers = answer_waits(case) if case.device is not None else pl.Series(dtype=pl.Boolean)
    if loops is None or not frames:
        found = of_part(case, RULE, waits, lambda: without_waits(case, answers))
    else:
        found = _read_in_loops(case, waits, loops, frames, answers)
    return _told_of_answers(case, found) if found is not None and answers.any() else found


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
    mine = pl.lit(True) if answers is None else ~pl.lit(answers)
    waits = case.plan.items.filter((pl.col("kind") == native.WAIT) & mine)["item"].cast(pl.Int64)
    before = pl.concat([waits - back for back in range(1, OPS_READ_WITH_A_WAIT + 2)])
    read = pl.col("item").cast(pl.Int64).is_in(pl.concat([waits, before]).implode())
    short = pl.col("device_ns") < SHORT_READ_NS
    plan = case.plan.without_waits(mine)
    gone = plan.items.filter(read & short)["item"].implode()
    dispatch = pl.col("cause").is_in(["dispatch", "sync"])
    largest = plan.with_host(pl.col("item").is_in(gone) & dispatch).with_device(pl.col("item").is_in(gone))
    return Change(largest if _reads_one_by_one(case) else plan, largest)


def _reads_one_by_one(case: Case) -> bool:
    """Whether a step of compiled programs reads value after value, each made by a program of its own: they belong into the step's."""
    if not case.runs_programs:
        return False
    read = copy_items(case)["direction"].eq_missing(pl.Series(["DtoH"]))
    made = int((read & ~read.shift(1, fill_value=True)).sum())
    return made >= LOOP_ITERATIONS * len(case.lengths)


RULE: Rule[Case] = Rule(
    code="device-sync",
    title="The host waits for the device inside the step",
    turn=100,
    owns="`sync`",
    change="the host does not wait. At best, the ops that wait and up to three short ops that make the value disappear as well; even at worst if programs of JAX or TensorFlow make eight or more values that a step reads one by one. Values that a loop reads one by one are made together and read once; if one such loop takes most of the host's time in a step, the rest is dispatched from warm caches. Unless the job trains, the host still waits for the array that a step ends with; the gain from reading it one step later is mentioned, not promised",
    fix={
        "pytorch": "Do not read values back in every step: drop .item(), .cpu(), print(loss) and torch.cuda.synchronize(), or do it every 100 steps; keep metrics on the device. Copies to the host: non_blocking=True into pinned memory.",
        "tensorflow": "Do not call .numpy() in every step; log every 100 steps.",
        "jax": "Do not call block_until_ready, float(x) or print(x) in every step; fetch metrics every 100 steps.",
        ANY: "Do not wait for the device in every step.",
    },
    find=find,
)
