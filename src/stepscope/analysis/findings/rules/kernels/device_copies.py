"""Kernels that only copy tensors from one place on the device to another, or from one type to another."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import shorten_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.serving.workload import TRAINING
from stepscope.registers.policy.findings import COPIES_ON_DEVICE_LEAST, TOP_NAMES, UNSURE_KERNELS
from stepscope.trace.lookup import are_named, is_named
from stepscope.trace.scopes import ancestors, at_or_inside

# Copies inside a CUDA graph, and instructions of a compiled program that only copy.
_COPYING_KERNEL = r"^(memcpy\d+(_\w+)?|(wrapped_|loop_)?copy([._]\w+)*)$"
_COPIES = r"^aten::(copy_|_to_copy|clone|contiguous|cat|stack|repeat|index_copy_|_foreach_copy_)$"
_CAST = r"^aten::_to_copy$"


def find(case: Case) -> Finding | None:
    """Copies on the device, whatever launches them."""
    events = _copying(case)
    owned = case.free(pl.col("part").is_in(["compute", "copy"]), pl.col("named_by").is_in(events.implode()))
    ns = case.per_step(owned)
    if ns < COPIES_ON_DEVICE_LEAST * case.step_ns:
        return None
    names = _ops_of(case, owned)
    where = f", mostly in {names[0]}" if names else ""
    detail = f"{case.of_step(ns)} only copies tensors on the device{where}."
    gone = owned["named_by"].unique().to_frame("event").with_columns(least=pl.lit(0.0), most=pl.lit(0.0))
    return timed(case, RULE, owned, shorten_kernels(case, gone), detail, {"ops": names})


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


def _ops_of(case: Case, owned: pl.DataFrame) -> list[str]:
    """The outermost ops that copy, the longest first."""
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
    return summed["name"].head(TOP_NAMES).to_list()


RULE: Rule[Case] = Rule(
    code="device-copies",
    title="The device copies tensors",
    turn=202,
    page="kernels",
    certainty=UNSURE_KERNELS,
    owns="kernels of copying, casting and concatenating ops, and device-to-device copies, from a fifth of the step; in training without casts, which mixed precision needs",
    change="they take no time, and a host that waited for them dispatches faster when it is kept busy",
    fix={
        "pytorch": "Write results where they are needed: preallocate and fill instead of torch.cat, keep one dtype instead of casting in every step (model.to(torch.bfloat16) for inference), and avoid .contiguous() and .clone().",
        "jax": "Let programs update arrays in place: jax.jit(step, donate_argnums=…) for what is passed in and comes back changed (parameters, optimizer state, a cache of keys and values); and keep one dtype.",
        ANY: "Write results where they are needed instead of copying them, and keep one dtype.",
    },
    find=find,
    needs_device=True,
)
