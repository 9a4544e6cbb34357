"""Kernels that only copy tensors from one place on the device to another, or from one type to another."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.mostly import mostly_in
from stepscope.analysis.findings.programs.eager_updates import EagerUpdates, eager_updates
from stepscope.analysis.findings.programs.host_programs import going_share, host_programs, of_instructions
from stepscope.analysis.findings.promise import shorten_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.kernels.names.dtypes import NARROW
from stepscope.analysis.serving.workload import TRAINING
from stepscope.analysis.xla.undonated import undonated_copies
from stepscope.names import short_name
from stepscope.registers.policy.device_findings import COPIES_ON_DEVICE_LEAST
from stepscope.registers.policy.findings import ACCOUNT_SAVES, MAJORITY, TOP_NAMES, UNSURE_KERNELS
from stepscope.trace.lookup import are_named, is_named
from stepscope.trace.scopes import ancestors, at_or_inside

# Copies inside a CUDA graph, and instructions of a compiled program that only copy.
_COPYING_KERNEL = r"^(memcpy\d+(_\w+)?|(wrapped_|loop_)?copy([._]\w+)*)$"
_COPIES = r"^aten::(copy_|_to_copy|clone|contiguous|cat|stack|repeat|index_copy_|_foreach_copy_)$"
_CAST = r"^aten::_to_copy$"
_FIX_OF_16_BITS = "Write results where they are needed: preallocate and fill instead of torch.cat, avoid .contiguous() and .clone(), and use fused versions of what computes in float32 between products in 16 bits (norms, rotary embeddings), which cast inside the kernel."
_UPDATES_OF_JAX = (
    "Outside of a compiled function, x.at[…].set(…) and its like copy all of x before they write some rows."
)
_FIX_OF_UPDATES = "Write inside of a compiled function that may change the array: write = jax.jit(lambda x, at, rows: x.at[at].set(rows), donate_argnums=0), then x = write(x, at, rows)."


def find(case: Case) -> Finding | None:
    """Copies on the device, whatever launches them; those of arguments of JAX's programs where the host runs these."""
    if case.device is None:
        return _on_host(case)
    events = _copying(case)
    owned = case.free(pl.col("part").is_in(["compute", "copy"]), pl.col("named_by").is_in(events.implode()))
    ns = case.per_step(owned)
    if ns < COPIES_ON_DEVICE_LEAST * case.step_ns:
        return None
    ops = _ops_of(case, owned)
    detail = f"{case.of_step(ns)} only copies tensors on the device{mostly_in(ops, ns)}."
    gone = owned["named_by"].unique().to_frame("event").with_columns(least=pl.lit(0.0), most=pl.lit(0.0))
    names = [each["name"] for each in ops]
    change = shorten_kernels(case, gone)
    updates = eager_updates(case)
    if updates is not None:
        return _of_updates(case, owned, updates, change, detail)
    found = timed(case, RULE, owned, change, detail, {"ops": names})
    if case.trace.info.framework == "pytorch" and _is_converted(case):
        found.fix = _FIX_OF_16_BITS
    return found


def _of_updates(
    case: Case, owned: pl.DataFrame, updates: EagerUpdates, change: Change, detail: str
) -> Finding:
    """Single ops of JAX that copy a whole array to write some rows: a function that is given the array makes neither copies nor their calls."""
    also = updates.slices(case)
    detail += f" {_UPDATES_OF_JAX} Another {case.of_step(case.per_step(also))} is spent on calling these ops one by one."
    mine = pl.concat([owned, also])
    found = timed(case, RULE, mine, updates.change(case, change), detail, {"updates": True})
    found.certainty = 1.0  # the code of the programs says so
    found.fix = _FIX_OF_UPDATES
    return found


def _on_host(case: Case) -> Finding | None:
    """What programs do only because their arguments are not donated; all that a program does, if most of it is that."""
    found = {name: undonated_copies(module) for name, module in host_programs(case).items()}
    copies = {name: one for name, one in found.items() if one is not None}
    owned = of_instructions(case, {name: one.names for name, one in copies.items()})
    ns = case.per_step(owned)
    if ns < COPIES_ON_DEVICE_LEAST * case.step_ns:
        return None
    mine = [copies[name] for name in owned["program"].unique().sort()]
    arguments = list(dict.fromkeys(each for one in mine for each in one.arguments if each))[:TOP_NAMES]
    named = ", ".join(short_name(each) for each in arguments) or "arguments"
    detail = f"{case.of_step(ns)} copies {named} as a whole before a program writes some rows: what is not donated must stay as it was."
    share = going_share(case, owned)
    left = Interval(1 - share, 1 - (1 + ACCOUNT_SAVES) / 2 * share, 1 - ACCOUNT_SAVES * share)
    shown = {"arguments": arguments, "bytes": sum(one.bytes for one in mine)}
    return timed(case, RULE, owned, case.plan, detail, shown, accounted=left)


def _copying(case: Case) -> pl.Series:
    """Device work that a copying op launched, and copies from device to device; in training without casts, which mixed precision needs."""
    kernels = case.trace.kernels.select("event", "op").drop_nulls("op")
    if case.workload == TRAINING:
        kernels = kernels.filter(~_casts(case).gather(kernels["op"]))
    name = case.trace.events["name"].gather(kernels["op"]).cast(pl.String)
    copies = case.trace.copies.filter(pl.col("direction").cast(pl.String) == "DtoD")["event"]
    by_op = kernels["event"].filter(name.str.contains(_COPIES))
    found: pl.Series = pl.concat([by_op, copies, _named_copies(case)])
    return found.unique()


def _casts(case: Case) -> pl.Series:
    """Whether each event is a cast or inside of one."""
    events = case.trace.events
    cast = is_named(events, _CAST)
    return at_or_inside(events, cast)


def _named_copies(case: Case) -> pl.Series:
    """Kernels whose own name says that they copy."""
    names = case.trace.events["name"]
    copying = are_named(names, lambda known: known.str.contains(_COPYING_KERNEL))
    found: pl.Series = case.trace.events["id"].filter(copying & (case.trace.events["kind"] == "kernel"))
    return found


def _is_converted(case: Case) -> bool:
    """Whether the model is in 16 bits already: most of the time of its products is, without autocast, which casts weights."""
    if case.has_found("weight-casts"):
        return False
    products = case.kernels.filter(pl.col("eligible").fill_null(False))
    narrow = products.filter(pl.col("precision").is_in(NARROW))
    return int(narrow["dur_ns"].sum()) > MAJORITY * int(products["dur_ns"].sum())


def _ops_of(case: Case, owned: pl.DataFrame) -> list[dict[str, Any]]:
    """The outermost ops that copy, the longest first, with their ns in a step."""
    events = case.trace.events
    op = owned.select(event="named_by", ns="ns").join(case.trace.kernels.select("event", "op"), on="event")
    outer = ancestors(events, events["kind"] == "op").gather(op["op"])
    named = events["name"].gather(pl.select(pl.coalesce(outer, op["op"])).to_series()).cast(pl.String)
    summed = (
        op.with_columns(name=named)
        .drop_nulls("name")
        .group_by("name")
        .agg(pl.col("ns").sum())
        .sort("ns", "name", descending=[True, False])
    )
    rows = summed.head(TOP_NAMES).iter_rows()
    return [{"name": name, "ns_per_step": int(ns / case.step_count)} for name, ns in rows]


RULE: Rule[Case] = Rule(
    code="device-copies",
    title="The device copies tensors",
    title_without_device="Programs copy arrays that they could update in place",
    turn=202,
    turn_without_device=89,
    page="kernels",
    certainty=UNSURE_KERNELS,
    owns="kernels of copying, casting and concatenating ops, and device-to-device copies, from a fifth of the step; in training without casts, which mixed precision needs. On a CPU, copies of arguments that a program of JAX updates in part and returns, if they are not donated; the whole program if most of what was recorded of it is such copies. Where single ops of JAX update arrays on a device, and copying these as a whole is most of what would be saved: the framework's `dispatch` and `python` of these calls as well, and that of functions of the job that call no compiled function",
    change="they take no time, and a host that waited for them dispatches faster when it is kept busy; of the calls of single ops that update arrays, one of all that the function makes is left, at best none, nor the rest of the function; on a CPU 85 to 100 % of the time goes",
    fix={
        "pytorch": "Write results where they are needed: preallocate and fill instead of torch.cat, keep one dtype instead of casting in every step (model.to(torch.bfloat16) for inference), and avoid .contiguous() and .clone().",
        "jax": "Let programs update arrays in place: jax.jit(step, donate_argnums=…) for what is passed in and comes back changed (parameters, optimizer state, a cache of keys and values); and keep one dtype.",
        ANY: "Write results where they are needed instead of copying them, and keep one dtype.",
    },
    find=find,
)
