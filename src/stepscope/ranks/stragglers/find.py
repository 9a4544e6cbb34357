"""Which ranks the others wait for, how often, and what makes them late.

No rank is named for noise or for less than a significant share of steps (see `late_steps`), nor for less than is worth showing. What a rank
costs is what the steps would have saved had it come with the next one. Three kinds:
always: late in four of five steps, or with more work in as many, which is a slower worker or a larger share; sometimes: late
now and then, while the work is the same; data-dependent: the late ones had more to compute in just those steps, most often in turn.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.stragglers.causes import At, Behind
from stepscope.ranks.stragglers.kernel_work import Ratios
from stepscope.ranks.stragglers.significance import LateSteps, late_steps
from stepscope.registers.levels import FEWEST_STEPS
from stepscope.registers.policy.ranks import ALWAYS_LATE, MOST_OF_LOSS

ALWAYS, SOMETIMES, DATA, UNCLEAR = "always", "sometimes", "data-dependent", "unclear"


@dataclass(frozen=True)
class Straggler:
    """Who is waited for; `share` is of the steps' time, `steps_late` of `steps` are those in which it was late.

    `rank` is the worst of `ranks`. `cause` is the part of the account that makes it late: `parts` has for each part what it took longer
    than on the other ranks, per late step, or, where that explains more, in the step before each of them (`in_step_before`); `late_in` are those. Instead of compute it is `work` if there was more of it, `clock` if the GPU ran slower.
    """

    rank: int
    ranks: tuple[int, ...]
    kind: str
    late_ns: int
    late_ns_per_step: int
    share: float
    steps_late: int
    steps: int
    cause: str | None = None
    parts: Mapping[str, int] = field(default_factory=dict)
    in_step_before: bool = False
    late_in: tuple[int, ...] = ()
    work_ratio: float | None = None
    kernels: Ratios = field(default_factory=Ratios)
    since: int | None = None  # the step from which on it is late, if not from the first

    @property
    def always(self) -> bool:
        """Late in nearly every step, which is more work or a slower machine, and not chance."""
        return self.kind == ALWAYS


def straggler(
    late: pl.DataFrame,
    steps: pl.DataFrame,
    parts: pl.DataFrame,
    clocks_mhz: Mapping[int, float | None] | None = None,
    did: pl.DataFrame | None = None,
) -> Straggler | None:
    """Who the others wait for, if that is much of the steps' time. `late` is of `lateness`, the others of `pace`."""
    if late.is_empty():
        return None
    found = late_steps(late)
    if not found.typical_ns or found.lost() < found.least_ns:
        return None
    behind = Behind(steps, parts, clocks_mhz or {}, did)
    return _always(found, behind) or _one(found, behind) or _uneven(found, behind) or _in_turn(found, behind)


def _always(found: LateSteps, behind: Behind) -> Straggler | None:
    ranks = [rank for rank in found.by_rank if found.share_late(rank) >= ALWAYS_LATE and found.steadily(rank)]
    if not ranks or found.saved(ranks) < found.worth_ns:
        return None
    worst = max(ranks, key=lambda rank: (sum(found.by_rank[rank]), -rank))
    if behind.uneven(worst):
        return _told(found, behind, worst, ranks, DATA, found.saved(ranks))
    return _told(found, behind, worst, ranks, ALWAYS, _usually(ranks, found))


def _usually(ranks: Collection[int], found: LateSteps) -> int:
    """What they would save if all steps were usual ones; if those hardly wait for them, what all steps would have saved."""
    usually = round(found.saved_usually(ranks) * found.total_ns)
    return usually if usually >= found.least_ns else found.saved(ranks)


def _one(found: LateSteps, behind: Behind) -> Straggler | None:
    """One rank that is late more often than noise explains, though not in every step."""
    worst = max(found.alone, key=lambda rank: (found.alone[rank], -rank), default=None)
    if worst is None:
        return None
    saved, work = found.alone[worst], behind.more_work_ns(worst) * found.steps
    # Of a few steps waits alone are not exact enough; what there is more to do is, where half of it was waited for.
    enough = saved >= found.least_ns or (work >= found.least_ns and 2 * saved >= work)
    if enough and 2 * work >= saved:
        return _told(found, behind, worst, [worst], ALWAYS, _usually([worst], found), cause="work")
    if saved < found.worth_ns:
        return None
    is_steady = found.steadily(worst) and found.often_last(worst)
    if not (is_steady or found.more_often_than_chance(worst) or _of_few(found, worst, saved)):
        return None
    at = {(step, worst) for step in found.late_in(worst)}
    kind = DATA if behind.computes_longer(at) and behind.had_more_work(at) else SOMETIMES
    return _told(found, behind, worst, [worst], kind, saved)


def _of_few(found: LateSteps, rank: int, saved: int) -> bool:
    """Few ranks and steps do not show what is noise: then it must be late again, and cost most of what is lost."""
    again = len(found.clearly_in(rank)) > 1 or found.steps < FEWEST_STEPS
    return found.too_few_to_tell and again and saved >= MOST_OF_LOSS * found.lost()


def _uneven(found: LateSteps, behind: Behind) -> Straggler | None:
    """Another rank in each step, and those had more to compute: however much all vary, that is not noise."""
    last = set(found.last.items())
    if found.steps < FEWEST_STEPS or not behind.had_more_work(last):
        return None
    return _several(found, behind, last, DATA, found.lost())


def _in_turn(found: LateSteps, behind: Behind) -> Straggler | None:
    """Another rank in each step, for no reason that shows: only what is beyond noise counts, and twice as much of it.

    No single rank can be named, and of many ranks one has a hiccup now and then.
    """
    last = {(step, rank) for step, rank in found.last.items() if found.by_step[step][rank] > found.clearly_ns}
    if found.steps < FEWEST_STEPS or len(last) < 2 or found.lost(found.noise_of_last_ns) < 2 * found.worth_ns:
        return None
    return _several(found, behind, last, SOMETIMES, sum(found.by_step[step][rank] for step, rank in last))


def _several(found: LateSteps, behind: Behind, last: At, kind: str, lost: float) -> Straggler:
    cost: dict[int, int] = {}
    for step, rank in last:
        cost[rank] = cost.get(rank, 0) + found.by_step[step][rank]
    ranks = sorted(cost, key=lambda rank: (-cost[rank], rank))
    return _told(found, behind, ranks[0], ranks, kind, round(lost), last)


def _reasons(
    found: LateSteps, behind: Behind, late_at: At, saved: int, is_usual: bool
) -> tuple[dict[str, int], At, int]:
    """What took longer, in which steps, and no more saved than that; all that shows, where what was done explains nothing.

    Waits alone may promise too much: ranks that wait do then what they would have had to do anyway. `is_usual`: what is saved
    is meant as if all steps were like these.
    """
    parts = behind.did_longer(late_at)
    if _sum(parts) * found.steps < found.worth_ns:
        parts, late_at = _longer(found, behind, late_at)
        if not behind.is_of_hosts or _sum(parts) * found.steps < found.worth_ns:
            return parts, late_at, saved
    steps = {step for step, _ in late_at}
    most: float = _sum(parts) * len(steps)
    if is_usual:
        most *= found.total_ns / max(1, sum(found.lengths[step] for step in steps))
    return parts, late_at, min(saved, round(max(most, found.worth_ns)))


def _longer(found: LateSteps, behind: Behind, late_at: At) -> tuple[dict[str, int], At]:
    """What took longer in these steps; or in those before them, after the last collective, where that explains more."""
    here = behind.longer(late_at)
    late_ns = sum(found.by_step[step].get(rank, 0) for step, rank in late_at) / max(1, len(late_at))
    if _sum(here) >= MOST_OF_LOSS * late_ns:
        return here, late_at
    order = sorted(found.by_step)
    previous = dict(zip(order[1:], order, strict=False))
    steps_before = {(previous[step], rank) for step, rank in late_at if step in previous}
    before = behind.longer(steps_before)
    if _sum(before) > max(_sum(here), MOST_OF_LOSS * late_ns):
        return before, steps_before
    return here, late_at


def _sum(parts: Mapping[str, int]) -> int:
    return sum(ns for ns in parts.values() if ns > 0)


def _told(
    found: LateSteps,
    behind: Behind,
    worst: int,
    ranks: Collection[int],
    kind: str,
    saved: int,
    at: At = (),
    cause: str | None = None,
) -> Straggler:
    late_at = at or {(step, rank) for rank in ranks for step in found.late_in(rank)}
    # Who is late by little each time is so in the steps in which it was the last.
    late_at = late_at or {(step, rank) for step, rank in found.last.items() if rank in ranks}
    parts, made_at, saved = _reasons(found, behind, late_at, saved, kind == ALWAYS)
    return Straggler(
        rank=worst,
        ranks=tuple(sorted(ranks)),
        kind=kind if found.steps >= FEWEST_STEPS else UNCLEAR,
        late_ns=saved,
        late_ns_per_step=saved // found.steps,
        share=saved / found.total_ns,
        steps_late=len(found.late_in(worst)),
        steps=found.steps,
        cause=cause or behind.cause(parts, made_at, worst),
        parts=parts,
        in_step_before=made_at is not late_at,
        late_in=tuple(sorted({step for step, _ in late_at})),
        work_ratio=behind.work_ratio(worst),
    )
