"""What makes the job slow, each cause with what the job would gain without it: replays of all ranks with one change each.

Causes compete: the one that gains most is taken, and the others are asked again about what is left. Ranks are compared with
their peers, the ranks of the same stage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from math import sqrt
from statistics import mean, median, stdev
from typing import Any

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.job.batches import uneven_batches
from stepscope.ranks.job.changes import (
    Change,
    as_peers,
    changed,
    expert_work,
    with_even_experts,
    with_even_stages,
    without_jitter,
)
from stepscope.ranks.job.course import BY_HOST, TIMES
from stepscope.ranks.job.links import slow_links
from stepscope.ranks.job.model import JobModel, mean_ns
from stepscope.ranks.stragglers.lateness import others_median
from stepscope.registers.levels import FEWEST_STEPS, JOB_GAIN_SIGMAS, LASTING_SIGMAS
from stepscope.registers.policy.findings import WORTH_SHOWING
from stepscope.registers.policy.job import (
    AS_SLOW,
    FEWEST_PARTS,
    IN_EXPERTS,
    MOST_JOB_CAUSES,
    MOST_LATE_PEERS,
    ORDINARY,
    REPLAY_SAVES_LEAST,
    SAME_SET,
    SHOWS,
    SLOW_IN_STEPS,
    SLOW_THROUGHOUT,
    UNEVEN_STAGES,
    UNEVEN_TOKENS,
    WORTH_JITTER,
)
from stepscope.trace.frames import take_mean

RANK, LINK, STAGES, EXPERTS, JITTER, BUBBLE = "rank", "link", "stages", "experts", "jitter", "bubble"
BATCHES = "batches"
_PAIRED = ("send", "recv", "send_recv")
_OF_PARTS = ("stage", "step", "segment", "rank", "compute_ns")


@dataclass(frozen=True)
class Cause:
    """`saves_ns` of the mean step (low, expected, high); `since` is the step from which on it is there, if not from the first."""

    kind: str
    ranks: tuple[int, ...]
    saves_ns: tuple[float, float, float]
    facts: Mapping[str, Any] = field(default_factory=dict)
    since: int | None = None


@dataclass(frozen=True)
class _Candidate:
    kind: str
    ranks: tuple[int, ...]
    change: Change
    facts: Mapping[str, Any] = field(default_factory=dict)
    since: int | None = None


@dataclass(frozen=True)
class Bubble:
    """Shares of the mean step in which ranks of a pipeline have nothing to do: in all, and by the schedule, with stages that are even."""

    share: float
    even_share: float
    micro_batches: int | None


@dataclass(frozen=True)
class Explained:
    """The causes that are worth showing, the costliest first, and the bubble of a pipeline.

    `transfers_ns`: of the mean step, what the job would gain if nothing waited for transfers, once the causes are gone.
    """

    causes: list[Cause]
    bubble: Bubble | None
    transfers_ns: float = 0.0


def explain(model: JobModel) -> Explained:
    """Of a model whose unchanged replay takes as long as the job did."""
    search = _Search(model)
    search.take(list(_specific(model)))
    # Jitter is whatever varies: it also holds what the others explain, and is asked for what they leave.
    search.take(list(_general(model)))
    is_even = any(each.kind == STAGES for each in search.found)
    bubble = _bubble(model, search.left_over, is_even)
    return Explained(search.found, bubble, _transfers_ns(model, search.left_over))


class _Search:
    """Takes candidates one after the other, each time the one that gains most of what is left."""

    def __init__(self, model: JobModel) -> None:
        self._model = model
        self._ns, self._left = model.nodes["ns"], model.base
        self.found: list[Cause] = []

    def take(self, candidates: list[_Candidate]) -> None:
        """Those that are worth it; what a rank, its stage or its experts cost is one time."""
        while candidates and len(self.found) < MOST_JOB_CAUSES:
            left = [self._model.lengths(changed(self._ns, each.change)) for each in candidates]
            at = _best(candidates, [mean_ns(each) for each in left], mean_ns(self._left))
            if not _is_worth(self._left, left[at], candidates[at]):
                return
            best = candidates.pop(at)
            self._add(best, left[at])
            mine = set(best.ranks)
            candidates = [each for each in candidates if not set(each.ranks) & mine or each.kind == LINK]

    @property
    def left_over(self) -> pl.Series:
        """The durations without all causes."""
        return self._ns

    def _add(self, best: _Candidate, left: pl.DataFrame) -> None:
        alone, base = self._model.lengths(changed(self._model.nodes["ns"], best.change)), self._model.base
        if best.kind == LINK:
            whole = pl.col("step").is_in(_steps_with_all_calls(self._model))
            alone, base = alone.filter(whole), base.filter(whole)
        saved = _saved(base, alone, best.since)
        self.found.append(Cause(best.kind, best.ranks, saved, best.facts, best.since))
        self._ns, self._left = changed(self._ns, best.change), left


def _steps_with_all_calls(model: JobModel) -> list[int]:
    """Without a first step whose last call of the step before was not recorded: what it gains of transfers is less than usual."""
    counts = model.calls.group_by("step").len()
    return counts.filter(pl.col("len") >= pl.col("len").median())["step"].to_list()


def _best(candidates: Sequence[_Candidate], left: Sequence[float], before: float) -> int:
    """The place of the candidate that gains most; of slow ranks the fewest that gain as much."""
    best = min(range(len(left)), key=lambda at: left[at])
    if candidates[best].kind != RANK:
        return best
    enough = SAME_SET * (before - left[best])
    alike = [at for at, each in enumerate(candidates) if each.kind == RANK and before - left[at] >= enough]
    return min(alike, key=lambda at: len(candidates[at].ranks), default=best)


def _bubble(model: JobModel, rest: pl.Series, is_even: bool) -> Bubble | None:
    """How much of the step the stages of a pipeline wait for each other; by the schedule alone, once all else is even."""
    if model.roles.stages < 2:
        return None
    even = rest if is_even else _evened(model, rest)
    share = _idle_share(model, model.nodes["ns"], mean_ns(model.base))
    left, count = _idle_share(model, even, mean_ns(model.lengths(even))), _micro_batches(model)
    return Bubble(share, min(left, _most_by_schedule(model.roles.stages, count)), count)


def _most_by_schedule(stages: int, micro_batches: int | None) -> float:
    """p stages idle for p − 1 of m + p − 1 micro-batches, or less with a better schedule.

    What is beyond that are transfers between stages and ranks that vary: more micro-batches change nothing about those.
    """
    return 1.0 if micro_batches is None else (stages - 1) / (micro_batches + stages - 1)


def _transfers_ns(model: JobModel, ns: pl.Series) -> float:
    """What the job takes less where calls take no time; late ranks are still waited for."""
    free = ns.set(model.nodes["name"].is_not_null(), 0)
    return mean_ns(model.lengths(ns)) - mean_ns(model.lengths(free))


def _evened(model: JobModel, ns: pl.Series) -> pl.Series:
    """The durations, each longer or shorter by what its stage would be."""
    even = changed(model.nodes["ns"], with_even_stages(model))
    factor = (even / model.nodes["ns"]).fill_nan(1.0)
    scaled: pl.Series = ns * factor.set(factor.is_infinite(), 1.0).fill_null(1.0)
    whole: pl.Series = scaled.round().cast(pl.Int64)
    return whole


def _idle_share(model: JobModel, ns: pl.Series, step_ns: float) -> float:
    """Of the step, what the mean rank neither works nor takes part in collectives."""
    times = model.nodes.select("name", "rank", "step").with_columns(ns)
    busy = times.filter(~pl.col("name").is_in(_PAIRED).fill_null(False))["ns"].sum()
    steps = times["rank"].n_unique() * max(1, times["step"].n_unique())
    return max(0.0, 1 - float(busy) / steps / step_ns) if step_ns else 0.0


def _micro_batches(model: JobModel) -> int | None:
    """What the first stage sends in a step."""
    sends = model.calls.filter((pl.col("name") == "send") & (pl.col("stage") == 0))
    counts = sends.group_by("rank", "step").len()["len"]
    return int(counts.median() or 0) or None  # type: ignore[arg-type]


def _is_worth(before: pl.DataFrame, after: pl.DataFrame, candidate: _Candidate) -> bool:
    """Whether the gain is worth showing, and there in all steps alike; that of what varies is in some of them by its nature."""
    low, mid, _ = _saved(before, after, candidate.since)
    if candidate.kind in (JITTER, BATCHES):
        return mid >= WORTH_JITTER * mean_ns(before)
    return mid >= WORTH_SHOWING * mean_ns(before) and low > 0


def _saved(before: pl.DataFrame, after: pl.DataFrame, since: int | None = None) -> tuple[float, float, float]:
    """Of the mean step; the steps in which there is something to gain show how well it is known."""
    gains = [float(a - b) for a, b in zip(before["ns"], after["ns"], strict=True)]
    mid = mean(gains)
    late = [gain for gain, step in zip(gains, before["step"], strict=True) if since is None or step >= since]
    spread = stdev(late) / sqrt(len(late)) if len(late) > 1 else 0.0
    error = JOB_GAIN_SIGMAS * spread * len(late) / len(gains)
    return REPLAY_SAVES_LEAST * mid - error, mid, mid + error


def _specific(model: JobModel) -> Iterator[_Candidate]:
    yield from _slow_ranks(model)
    links = slow_links(model)
    if links is not None:
        facts = {"groups": links.groups, "ratio": links.ratio}
        yield _Candidate(LINK, links.ranks, links.change, facts)
    stages = _stage_times(model)
    if len(stages) > 1 and max(stages.values()) > (1 + UNEVEN_STAGES) * mean(stages.values()):
        slowest = max(stages, key=lambda stage: stages[stage])
        ranks = tuple(rank for rank, stage in model.roles.stage.items() if stage == slowest)
        yield _Candidate(STAGES, ranks, with_even_stages(model), {"stage": slowest, "stages": stages})
    if _has_uneven_tokens(model):
        yield _Candidate(EXPERTS, tuple(model.roles.stage), with_even_experts(model))
    batches = uneven_batches(model)
    if batches is not None:
        yield _Candidate(BATCHES, batches.ranks, batches.change, {"ratio": batches.ratio})


def _general(model: JobModel) -> Iterator[_Candidate]:
    if len(model.base) >= FEWEST_STEPS:
        yield _Candidate(JITTER, tuple(model.roles.stage), without_jitter(model))


def _stage_times(model: JobModel) -> dict[int, float]:
    """What the median rank of each stage computes in a step."""
    rows = model.totals.group_by("stage").agg(pl.col("compute_ns").median()).sort("stage")
    return {stage: float(ns) for stage, ns in rows.iter_rows()}


def _slow_ranks(model: JobModel) -> Iterator[_Candidate]:
    """Those that take longer than their peers: the slowest alone, all that are about as slow, and those that hide it."""
    seen, done = _excess(model)
    ending = _slow_at_the_end(model)
    excess = _lasting(seen, ending)
    slow = _about_as_slow(excess)
    if not slow:
        return
    hidden = _about_as_slow(_lasting(done, ending))
    sets = {tuple(slow[:1]), tuple(sorted(slow)), tuple(sorted({*slow, *hidden}))}
    fitting = [ranks for ranks in sets if len(ranks) == 1 or _is_minority(model, ranks)]
    for ranks in sorted(fitting, key=len, reverse=True):  # of experts that gain the same, all are named
        kind = EXPERTS if _in_experts(model, ranks) else RANK
        # Experts that have less to do take on what the busy ones have too much.
        change = with_even_experts(model) if kind == EXPERTS else as_peers(model, ranks)
        if len(change):
            rows = excess.filter(pl.col("rank").is_in(ranks))
            facts = {
                "longer_ns": _by_time(rows),
                "hosts": sorted({model.hosts.get(r) or "" for r in ranks} - {""}),
            }
            last = model.base["step"][-1] if set(ranks) <= ending else None
            yield _Candidate(kind, ranks, change, facts, _onset(rows) or last)


def _about_as_slow(excess: pl.DataFrame) -> list[int]:
    """The slowest rank, and those that are slower than their peers by at least half as much."""
    means = excess.group_by("rank").agg(pl.col("ns").mean()).sort("ns", "rank", descending=[True, False])
    most = float(means["ns"][0]) if len(means) else 0.0
    return [rank for rank, ns in means.iter_rows() if ns >= AS_SLOW * most] if most > 0 else []


def _slow_at_the_end(model: JobModel) -> set[int]:
    """Ranks that compute longer in nearly all parts of the last step, and not before: no pause, but a device that has become slower."""
    steps = model.base["step"].to_list()
    if len(steps) < FEWEST_STEPS:
        return set()
    rows = pl.concat(
        _slowness(work) for work in model.work.select(_OF_PARTS).partition_by("step", maintain_order=True)
    )
    last = pl.col("step") == steps[-1]
    slow = rows.filter(
        last, pl.col("more") >= ORDINARY, pl.col("slow") >= SLOW_THROUGHOUT, pl.col("len") >= FEWEST_PARTS
    )
    before = rows.filter(~last, pl.col("more") >= ORDINARY)
    return set(slow["rank"].to_list()) - set(before["rank"].to_list())


def _slowness(work: pl.DataFrame) -> pl.DataFrame:
    """rank, step, more, len, slow: how much longer each rank computes than its peers in one step, in how many parts, and in which share of them."""
    sums = work.group_by("stage", "step", "segment", "rank").agg(ns=pl.col("compute_ns").sum())
    parts = sums.with_columns(usual=pl.col("ns").median().over("stage", "step", "segment")).filter(
        pl.col("usual") > 0
    )
    whole = pl.col("ns").sum().over("rank", "step") / pl.col("usual").sum().over("rank", "step") - 1
    parts = parts.with_columns(more=whole, is_slow=pl.col("ns") / pl.col("usual") - 1 >= AS_SLOW * whole)
    return parts.group_by("rank", "step").agg(
        pl.col("more").first(),
        pl.len(),
        slow=pl.col("usual").filter("is_slow").sum() / pl.col("usual").sum(),
    )


def _lasting(excess: pl.DataFrame, ending: Collection[int]) -> pl.DataFrame:
    """Of ranks that are slow in most steps, from some step on, or at the end; one pause, however long, makes no slow rank."""
    kept = [
        rows
        for (rank,), rows in excess.partition_by("rank", maintain_order=True, as_dict=True).items()
        if rank in ending or _is_lasting(rows)
    ]
    return pl.concat(kept) if kept else excess.clear()


def _is_lasting(rows: pl.DataFrame) -> bool:
    since = _onset(rows)
    late = rows["ns"] if since is None else rows.filter(pl.col("step") >= since)["ns"]
    usual, count = take_mean(late), len(late)
    is_usual = int((late >= AS_SLOW * usual).sum()) >= SLOW_IN_STEPS * count
    error = float(late.std() or 0.0) / sqrt(count) if count else 0.0  # type: ignore[arg-type]
    return usual > 0 and is_usual and usual >= LASTING_SIGMAS * error


def _is_minority(model: JobModel, ranks: Sequence[int]) -> bool:
    stage = model.roles.stage
    peers = {rank: sum(other == stage[rank] for other in stage.values()) for rank in ranks}
    mine = {rank: sum(stage[other] == stage[rank] for other in ranks) for rank in ranks}
    return all(mine[rank] <= MOST_LATE_PEERS * peers[rank] for rank in ranks)


def _excess(model: JobModel) -> tuple[pl.DataFrame, pl.DataFrame]:
    """rank, step, ns and TIMES: how much longer each rank works in each step than its peers, by their medians.

    What a host did counts, whether it shows as a gap or not. In the first table only of ranks of which some shows: what never keeps a device
    waiting makes no rank slow, unless another one that it works with does.
    """
    totals = model.totals
    did, shown = _with_what_hosts_did(totals, model), _beyond_peers(totals)
    if did is None:
        return shown, shown
    done = _beyond_peers(did)
    sums = [frame.group_by("rank").agg(ns=pl.sum_horizontal(*BY_HOST).sum()) for frame in (shown, done)]
    both = sums[0].join(sums[1], on="rank", suffix="_done")
    hidden = both.filter(pl.col("ns") < SHOWS * pl.col("ns_done"))["rank"].to_list()
    is_hidden = pl.col("rank").is_in(hidden)
    return pl.concat([done.filter(~is_hidden), shown.filter(is_hidden)]), done


def _beyond_peers(totals: pl.DataFrame) -> pl.DataFrame:
    totals = totals.sort("stage", "step", "rank").with_columns(ns=pl.sum_horizontal(*TIMES))
    frames = []
    for group in totals.partition_by("stage", "step", maintain_order=True):
        if len(group) > 1:
            more = {
                name: (group[name] - pl.Series(others_median(group[name].to_list()))).cast(pl.Float64)
                for name in ("ns", *TIMES)
            }
            frames.append(group.select("rank", "step").with_columns(**more))
    schema = {"rank": pl.Int32, "step": pl.Int32, **dict.fromkeys(("ns", *TIMES), pl.Float64)}
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema)


def _with_what_hosts_did(totals: pl.DataFrame, model: JobModel) -> pl.DataFrame | None:
    """With what hosts did instead of the gaps that show; None where that is not known of all ranks."""
    joined = totals.join(model.did, on=["stage", "step", "rank"], how="left", suffix="_did")
    if joined["host_ns_did"].null_count():
        return None
    return joined.with_columns(pl.col(f"{name}_did").alias(name) for name in BY_HOST).select(totals.columns)


def _by_time(rows: pl.DataFrame) -> dict[str, int]:
    return {name: round(float(rows[name].mean() or 0.0)) for name in TIMES}  # type: ignore[arg-type]


def _in_experts(model: JobModel, ranks: Sequence[int]) -> bool:
    """Whether these ranks are slower than their peers between exchanges of tokens, and hardly elsewhere."""
    if not _has_uneven_tokens(model):
        return False
    inside = expert_work(model).group_by("rank", "step").agg(inside=pl.col("compute_ns").sum())
    whole = model.work.group_by("rank", "step").agg(whole=pl.sum_horizontal(*TIMES).sum())
    sums = whole.join(inside, on=["rank", "step"], how="left").with_columns(pl.col("inside").fill_null(0))
    late = pl.col("rank").is_in(list(ranks))
    stages = {model.roles.stage[rank] for rank in ranks}
    peers = [rank for rank, stage in model.roles.stage.items() if stage in stages]
    mine = sums.filter(late).select(pl.col("inside", "whole").median()).row(0)
    others = (
        sums.filter(~late & pl.col("rank").is_in(peers)).select(pl.col("inside", "whole").median()).row(0)
    )
    more = (mine[1] or 0) - (others[1] or 0)
    return more > 0 and (mine[0] or 0) - (others[0] or 0) >= IN_EXPERTS * more


def _has_uneven_tokens(model: JobModel) -> bool:
    """Whether some ranks exchange more tokens than others, as far as the profile has sizes."""
    calls = model.calls.filter(pl.col("name") == "all_to_all")
    sizes = calls.filter(pl.col("bytes") > 0, pl.col("meeting").is_not_null())
    if sizes.is_empty():
        return len(calls) > 0
    met = sizes.group_by("meeting", "ranks_of").agg(ratio=pl.col("bytes").max() / pl.col("bytes").min())
    typical = met.group_by("ranks_of").agg(pl.col("ratio").median())
    return bool((typical["ratio"] >= UNEVEN_TOKENS).any())


def _onset(rows: pl.DataFrame) -> int | None:
    """The step from which on these ranks are slow, if there are steps before in which they are not."""
    by_step = rows.group_by("step").agg(pl.col("ns").mean()).sort("step")
    steps, ns = by_step["step"].to_list(), by_step["ns"].to_list()
    best, at = 0.0, None
    for place in range(2, len(ns) - 1):
        before, after = ns[:place], ns[place:]
        gap = mean(after) - mean(before)
        weight = gap * sqrt(place * (len(ns) - place) / len(ns))
        if weight > best and abs(median(before)) < AS_SLOW * median(after):
            best, at = weight, place
    if at is None:
        return None
    inside = [abs(a - b) for part in (ns[:at], ns[at:]) for a, b in pairwise(part)]
    gap = mean(ns[at:]) - mean(ns[:at])
    return steps[at] if not inside or gap > 2 * median(inside) else None
