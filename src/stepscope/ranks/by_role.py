"""The straggler of a job whose ranks have different roles: by the replay of all ranks, and against ranks of its own role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from stepscope.ranks.job.answers import JobAnswers
from stepscope.ranks.job.changes import as_peers, changed
from stepscope.ranks.job.model import mean_ns
from stepscope.ranks.job.what_if import BATCHES, JITTER, RANK, Cause
from stepscope.ranks.stragglers.causes import Behind
from stepscope.ranks.stragglers.find import ALWAYS, DATA, SOMETIMES, UNCLEAR, Straggler
from stepscope.registers.levels import FEWEST_STEPS
from stepscope.registers.policy.job import SAME_GAIN


def straggler_by_role(
    job: JobAnswers,
    steps: pl.DataFrame,
    parts: pl.DataFrame,
    clocks_mhz: Mapping[int, float | None],
    did: pl.DataFrame,
) -> Straggler | None:
    """The rank that costs the job most, if one does; the tables are those of `pace`."""
    cause = next((each for each in job.causes if each.kind in (RANK, BATCHES)), None)
    if cause is None:
        return None
    is_data = cause.kind == BATCHES
    worst = cause.ranks[0]
    peers = _peers(job, cause, worst)
    steps, parts, did = (frame.filter(pl.col("rank").is_in(peers)) for frame in (steps, parts, did))
    behind = Behind(steps, parts, {rank: clocks_mhz.get(rank) for rank in peers}, did)
    every = sorted(steps["step"].unique().to_list())
    late = [step for step in every if cause.since is None or step >= cause.since]
    at = {(step, worst) for step in late}
    longer = behind.did_longer(at) or behind.longer(at)
    saved = max(0, round(cause.saves_ns[1]))
    kind = DATA if is_data else ALWAYS if cause.since is None else SOMETIMES
    return Straggler(
        rank=worst,
        ranks=cause.ranks,
        kind=kind if len(every) >= FEWEST_STEPS else UNCLEAR,
        late_ns=saved * len(every),
        late_ns_per_step=saved,
        share=saved / job.replayed_ns if job.replayed_ns else 0.0,
        steps_late=len(late),
        steps=len(every),
        cause="work" if is_data else behind.cause(longer, at, worst),
        parts=longer,
        late_in=tuple(late),
        work_ratio=behind.work_ratio(worst),
        since=cause.since,
    )


def by_replay(found: Straggler | None, job: JobAnswers | None, on_host: bool) -> Straggler | None:
    """The straggler with what the replay of the job says of it: which ranks, from which step on, and what they cost.

    None where it is one of many ranks that vary, which is a finding of its own. Where hosts communicate, arrivals show ranks and costs
    better: their processes share cores, and a replay does not know that.
    """
    if found is None or job is None:
        return found
    cause = next((each for each in job.causes if each.kind == RANK and found.rank in each.ranks), None)
    if cause is None:
        return None if not on_host and _is_jitter(found, job) else found
    found = replace(found, since=cause.since)
    if on_host or not job.replayed_ns:
        return found
    saved = max(0, round(cause.saves_ns[1]))
    return replace(
        found,
        ranks=tuple(sorted(cause.ranks)),
        late_ns=saved * found.steps,
        late_ns_per_step=saved,
        share=saved / job.replayed_ns,
    )


def _is_jitter(found: Straggler, job: JobAnswers) -> bool:
    """Whether ranks vary by more than this one does: it is late now and then, and without it the job gains only a part."""
    jitter = next((each for each in job.causes if each.kind == JITTER), None)
    if jitter is None or job.model is None or found.kind != SOMETIMES:
        return False
    if len(found.ranks) > 1:  # in turn
        return True
    left = job.model.lengths(changed(job.model.nodes["ns"], as_peers(job.model, found.ranks)))
    return job.replayed_ns - mean_ns(left) < SAME_GAIN * jitter.saves_ns[1]


def _peers(job: JobAnswers, cause: Cause, worst: int) -> list[int]:
    """The rank and those of its role that are not as slow."""
    stage = job.roles.stage
    return [
        rank for rank in stage if stage[rank] == stage[worst] and (rank == worst or rank not in cause.ranks)
    ]
