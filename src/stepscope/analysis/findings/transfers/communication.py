"""Communication that nothing hides: how much of it the other work of a rank could hide, and what to advise where it runs.

Hiding takes no time away from the communication itself: a step is never shorter than all of it, nor than the rest.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.collectives.calls import collective_calls, recorded_calls
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Interval
from stepscope.analysis.findings.transfers.staging import sent_through_host
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.serving.workload import INFERENCE, TRAINING
from stepscope.lazy import dataclass
from stepscope.native.spans.sets import intersect, total, union
from stepscope.registers.policy.findings import COLLECTIVE_LEFT_MOST, MAJORITY
from stepscope.trace.columns import buffer

_COMPUTES = ("compute", "host_compute")
# What can go on while a message is under way; waits for something else are not work.
_WORKS = (*_COMPUTES, "copy", "python", "dispatch", "device_gap")
_EXCHANGES = ("all_to_all", "send_recv", "send", "recv")

_OF_TRAINING = "Overlap communication with the backward pass (DDP does unless buckets are too large: try bucket_cap_mb=10, its default is 25; FSDP: forward_prefetch, backward_prefetch), accumulate gradients, or compress them."
_STAGED = "Use NCCL instead of gloo, which copies tensors through the host: init_process_group('nccl'), one GPU for each rank."
_OF_INFERENCE = {
    "pytorch": "Communicate less or faster: fewer ranks of tensor parallelism, fewer and larger messages, the engine's own all-reduce kernels (custom or fused with the norm), or overlap with computation.",
    "any": "Overlap communication with computation, or split the model over fewer ranks.",
}
_OF_EXCHANGES = "Exchange less, or in pieces: split tokens, heads or micro-batches, so that one part is exchanged while another is computed; keep groups that exchange in every layer (experts, sequence parallelism) within a node, and as small as memory allows."
_LESS = "Communicate less often, or fewer bytes: join small messages into large ones, send 16-bit numbers, and call wait() of what was started with async_op=True only where its result is needed."
_LESS_IN_TRAINING = "Communicate less often, or fewer bytes: accumulate gradients over several batches (no_sync() of DDP), compress them to 16 bits (DDP: bf16_compress_hook), and give each rank a larger batch."


@dataclass(frozen=True)
class Hidden:
    """How much of the exposed communication of a step can be hidden: at least and at most, in ns."""

    least: float
    most: float


def what_can_be_hidden(case: Case, exposed_ns: float) -> Hidden:
    """Half of it behind computation at least, and at most all of it, behind whatever else the rank does meanwhile."""
    computing, working = (_apart(case, parts) for parts in (_COMPUTES, _WORKS))
    return Hidden(min((1 - COLLECTIVE_LEFT_MOST) * exposed_ns, computing), min(exposed_ns, working))


def _apart(case: Case, parts: tuple[str, ...]) -> float:
    """The time of these parts in a step in which nothing is communicated yet: the rest hides some already."""
    sends = pl.col("named_by").is_in(sent_through_host(case.trace).implode())
    slices = case.slices.filter(pl.col("part").is_in(parts), ~sends).sort("start_ns")
    sent = _messages(case)
    mine, theirs = (
        union(buffer(spans["start_ns"]), buffer(spans["end_ns"]))
        for spans in (slices.select("start_ns", "end_ns"), sent)
    )
    return (total(*mine) - total(*intersect(*mine, *theirs))) / case.step_count


def _messages(case: Case) -> pl.DataFrame:
    """start_ns, end_ns of all communication of the case's device, and of the host once it has what it sends."""
    calls = recorded_calls(case.trace)
    device = case.trace.tracks["device"].gather(case.trace.events["track"].gather(calls["event"]))
    mine = calls.filter(calls["on_host"] | device.eq_missing(pl.Series([case.device], dtype=device.dtype)))
    spans = mine.select(
        start_ns=pl.col("start_ns") + pl.col("held_ns"), end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    return spans.sort("start_ns")


def hide(case: Case, owned: pl.DataFrame, hidden: Hidden) -> Change:
    """The steps with so much less of the exposed communication, each message by as much of it as is exposed."""
    exposed_ns = max(1, case.per_step(owned))
    return Change(*(_shorten(case, owned, ns / exposed_ns) for ns in (hidden.least, hidden.most)))


def _shorten(case: Case, owned: pl.DataFrame, gone: float) -> Plan:
    exposed = owned.group_by(event=pl.col("named_by").cast(pl.UInt32)).agg(exposed_ns=pl.col("ns").sum())
    items = case.plan.items.join(exposed.drop_nulls(), on="event", how="left", maintain_order="left")
    share = items["exposed_ns"].fill_null(0) / items["device_ns"].clip(lower_bound=1)
    left = pl.lit(1 - gone * share.clip(upper_bound=1.0))
    on_host = pl.col("cause") == "host_collective"
    return case.plan.with_device(pl.lit(True), left).with_host(on_host, 1 - gone)


def left_behind_work(case: Case, hidden: Hidden) -> Interval:
    """What is left of a step where only the account can say it."""
    low, high = (1 - ns / case.step_ns for ns in (hidden.most, hidden.least))
    return Interval(low, (low * high) ** 0.5, high)


def choose_advice(case: Case, owned: pl.DataFrame, usual: str, can_hide: bool) -> str:
    """By what sends the messages; what nothing in the recording shows is not advised. NCCL is, where gloo sends what is on a device.

    On CPUs computing and sending share the cores, as where there is hardly anything to hide it behind: less of it helps.
    """
    advice = _choose(case, owned, usual, can_hide)
    if case.trace.info.framework != "pytorch" or not _sends_through_gloo(case, owned):
        return advice
    return f"{_STAGED} {advice}"


def _sends_through_gloo(case: Case, owned: pl.DataFrame) -> bool:
    """Whether most of it is sent by threads of the host, of tensors that are on a device."""
    sent = sent_through_host(case.trace)
    if not case.has_device or sent.is_empty():
        return False
    by_host = (pl.col("part") == "host_collective") | pl.col("named_by").is_in(sent.implode())
    return int(owned.filter(by_host)["ns"].sum()) > MAJORITY * int(owned["ns"].sum())


def _choose(case: Case, owned: pl.DataFrame, usual: str, can_hide: bool) -> str:
    framework = case.trace.info.framework
    trains = shows_training(case)
    if case.has_device and _exchanged(case, owned) > MAJORITY:
        return _OF_EXCHANGES
    if framework == "pytorch" and case.workload != INFERENCE and not (case.has_device and can_hide):
        return _LESS_IN_TRAINING if trains else _LESS
    if trains:
        return _OF_TRAINING if framework == "pytorch" else usual
    if case.workload == INFERENCE:
        return _OF_INFERENCE.get(framework or "any", _OF_INFERENCE["any"])
    return usual


def shows_training(case: Case) -> bool:
    """Whether a backward pass or an optimizer was recorded."""
    return case.workload == TRAINING or bool(case.trace.events["role"].is_in(["backward", "optimizer"]).any())


def _exchanged(case: Case, owned: pl.DataFrame) -> float:
    """The share of the exposed time that ranks spend in exchanging pieces of a tensor, or in handing it on."""
    calls = collective_calls(case.trace, case.account).select("event", operation="name")
    named = owned.select("ns", event=pl.col("named_by").cast(pl.UInt32)).join(calls, on="event", how="inner")
    exchanging = named.filter(pl.col("operation").is_in(_EXCHANGES))
    return int(exchanging["ns"].sum()) / max(1, int(named["ns"].sum()))
