"""Work that a step does again with the same inputs: a part of a compiled program that it calls again and again, or calls of modules and functions of PyTorch."""

from __future__ import annotations

import re

import polars as pl
from msgspec.structs import replace

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.device_work import free_of_work, without_work
from stepscope.analysis.findings.dispatched import at_or_below, without_calls, without_dispatch
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.loops.constant_matrices import find_constant_matrix
from stepscope.analysis.findings.programs.parts import part_of_program
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.useless.useless_backward import without_engine
from stepscope.analysis.ops.forward_backward import forward_ops
from stepscope.analysis.repeats.calls import MODULE, find_repeats
from stepscope.analysis.repeats.derivatives import backward_nodes, make_graphs
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.repeated_calls import RepeatedCalls, repeated_calls
from stepscope.analysis.xla.same_work import SameWork, same_work
from stepscope.names import short_name
from stepscope.registers.policy.findings import TOP_NAMES
from stepscope.registers.policy.repeated_work import REPEATED_WORK_LEAST, UNSURE_NUMBERS
from stepscope.trace.lookup import is_named

_PREFIX = "jit_"
_OF_CALLS = ("compute", "copy", "device_gap", "dispatch", "python")
_PLACE_OF_FRAME = re.compile(r"^.*\(\d+\): ")
_TITLE = "A module or function computes the same result again"
_TITLE_OF_PASS = "A second forward pass computes what the first has returned"
_TITLE_OF_TRAINED = "A second pass with gradients computes what the first has returned"
_UNSURE = " They compute with numbers whose values the profile does not show: if these differ, as times or rates do, the results differ as well."
_UNSURE_BATCH = " The profile does not show whether one of them is given another array of that size, which was on the device before: then both are needed."
_FIX_OF_TRAINED = "Call it once per step and use what it returns for every term of the loss: distribution = policy(states), then distribution.log_prob(actions) and distribution.entropy(); u = net(x), then torch.autograd.grad(u, x, create_graph=True) for all derivatives."
_SECOND_ORDER = r"BackwardBackward|DoubleBackward"
_FIX_OF_PASS = "Use what the first pass has returned: keep the outputs that the loss is computed from, and compute metrics from outputs.detach()."


def find(case: Case) -> Finding | None:
    """In JAX a part of a program, in PyTorch a module or a function."""
    if case.trace.info.framework == "pytorch":
        return _in_calls(case) if case.device is not None else find_constant_matrix(case, RULE)
    return _in_programs(case)


def _in_calls(case: Case) -> Finding | None:
    """All calls of a module or function of which an earlier one of the step has returned the same."""
    if case.device is None:
        return None
    work = case.ops.select("event", "device_self_ns").filter(pl.col("device_self_ns") > 0)
    own = pl.zeros(len(case.trace.events), dtype=pl.Int64, eager=True).scatter(
        work["event"], work["device_self_ns"]
    )
    calls = find_repeats(case.trace, case.lengths["step"].to_list(), own)
    if calls is None:
        return None
    inside = at_or_below(case.trace.events, pl.Series(calls.needless, dtype=pl.UInt32))
    nodes = _gradients_of(case, inside) if calls.learned else inside.clear()
    kernels, with_nodes = (_launched_in(case, each) for each in (inside, pl.concat([inside, nodes])))
    named = pl.concat([inside, nodes, with_nodes]).implode()
    owned = case.free(pl.col("part").is_in(_OF_CALLS), pl.col("named_by").is_in(named))
    ns = case.per_step(owned)
    if ns < REPEATED_WORK_LEAST * case.step_ns:
        return None
    events = case.trace.events
    spans = events.filter(pl.col("id").is_in(calls.needless)).select(
        "track", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    gone = case.plan.with_device(pl.col("event").is_in(kernels.implode()))
    change = Change(*[without_calls(gone, case.trace, spans)] * 2)
    if calls.learned:
        change = _without_gradients(case, change, nodes, with_nodes)
    needless = len(calls.needless) / max(1, len(case.lengths))
    what = short_name(_PLACE_OF_FRAME.sub("", calls.name.removeprefix(MODULE)))
    evidence = {"function": what, "calls_per_step": round(calls.times), "needless_per_step": round(needless)}
    if calls.unused:
        detail = f"{case.of_step(ns)} is a pass through {what} that no gradient goes through, beside one with the same inputs that has a gradient: it computes what the other has returned."
    elif calls.learned:
        detail = f"{case.of_step(ns)} is a second pass through {what} with inputs and weights that have not changed, and its backward pass: a step calls {what} {calls.times:,.0f} times, {needless:,.0f} of them for nothing."
    else:
        detail = f"{case.of_step(ns)} computes again what an earlier call has returned: a step calls {what} {calls.times:,.0f} times, {needless:,.0f} of them with inputs that have not changed."
    found = timed(
        case,
        RULE,
        owned,
        change,
        detail,
        evidence,
        _TITLE_OF_PASS if calls.unused else _TITLE_OF_TRAINED if calls.learned else _TITLE,
    )
    found.fix = _FIX_OF_PASS if calls.unused else _FIX_OF_TRAINED if calls.learned else RULE.fix["pytorch"]
    if calls.learned:
        return _doubted(case, found, _UNSURE_BATCH)
    return _doubted(case, found, _UNSURE, unknown_numbers=True) if calls.unsure else found


def _launched_in(case: Case, events: pl.Series) -> pl.Series:
    """The device work that these events launch."""
    found: pl.Series = case.trace.links.filter(
        pl.col("why") == "launch", pl.col("from").is_in(events.implode())
    )["to"]
    return found


def _gradients_of(case: Case, inside: pl.Series) -> pl.Series:
    """The events of the backward pass that compute the gradients of these ops."""
    forward = forward_ops(case.trace)
    if forward is None:
        return inside.clear()
    found: pl.Series = case.trace.events["id"].filter(forward.is_in(inside.implode()).fill_null(False))
    return found


def _without_gradients(case: Case, change: Change, nodes: pl.Series, kernels: pl.Series) -> Change:
    """The same without the backward pass of these calls; at worst with it, where gradients of gradients are computed, which need other nodes."""
    gone = change.largest.with_device(pl.col("event").is_in(kernels.implode()))
    less = without_dispatch(without_engine(case, gone, kernels), nodes)
    second_order = is_named(case.trace.events, _SECOND_ORDER).any() or make_graphs(
        case.trace, backward_nodes(case.trace)["event"]
    )
    return Change(change.smallest if second_order else less.smallest, less.largest)


def _doubted(case: Case, found: Finding, why: str, *, unknown_numbers: bool = False) -> Finding:
    """The finding, which at worst saves nothing: a number, or a batch, that is not recorded may be another in each call."""
    found.detail += why
    found.evidence = {**found.evidence, **({"unknown_numbers": True} if unknown_numbers else {})}
    found.certainty *= UNSURE_NUMBERS
    found.speedup = replace(found.speedup, low=min(1.0, found.speedup.low))
    if found.left_ns_per_step is not None:
        most = max(round(case.saved_of_ns), found.left_ns_per_step.high)
        found.left_ns_per_step = replace(found.left_ns_per_step, high=most)
    return found


def _in_programs(case: Case) -> Finding | None:
    """The work of all calls of a step but the first, of the program in which it takes most of the step."""
    if case.trace.info.framework != "jax" or case.is_tpu or case.device is None:
        return None
    best: tuple[int, RepeatedCalls, SameWork, pl.DataFrame, pl.DataFrame] | None = None
    for calls in repeated_calls(case.trace, case.device, max(1, len(case.lengths))):
        work = same_work(read_module(calls.hlo), calls.changing, [one.number for one in calls.same])
        chosen = _repeats(case, calls, work.names)
        owned = free_of_work(case, chosen["event"])
        ns = case.per_step(owned)
        if ns >= REPEATED_WORK_LEAST * case.step_ns and (best is None or ns > best[0]):
            best = (ns, calls, work, chosen, owned)
    if best is None:
        return None
    ns, calls, work, chosen, owned = best
    count = round(len(chosen) / max(1, len(case.lengths)))
    evidence = _described(calls, work) | {"kernels_per_step": count}
    return timed(case, RULE, owned, without_work(case, chosen), _detail(case, ns, calls, work), evidence)


def _repeats(case: Case, calls: RepeatedCalls, names: frozenset[str]) -> pl.DataFrame:
    """event, least, most: the work of these instructions in all runs of a step but the first, and what is left of it.

    At worst, each new argument that arrives in a step needs a run of its own.
    """
    schema = {"event": pl.UInt32, "least": pl.Float64, "most": pl.Float64}
    mine = part_of_program(case, calls.name, calls.hlo, names)
    if mine.is_empty():
        return pl.DataFrame(schema=schema)
    place = pl.col("run").rank("dense").over("step") - 1
    repeats = mine.with_columns(place=place).filter(pl.col("place") > 0)
    return repeats.select(
        "event", least=pl.lit(0.0), most=pl.when(pl.col("place") < calls.arriving).then(1.0).otherwise(0.0)
    ).cast(schema)  # type: ignore[arg-type]


def _arguments(calls: RepeatedCalls) -> list[str]:
    """The arguments that stay the same, as the function calls them."""
    return list(dict.fromkeys(one.root for one in calls.same if one.root))[:TOP_NAMES]


def _described(calls: RepeatedCalls, work: SameWork) -> dict[str, object]:
    """What is called, how often, and with which arguments that stay the same."""
    found: dict[str, object] = {
        "program": calls.name,
        "calls_per_step": round(calls.calls),
        "arguments": _arguments(calls),
    }
    return found | ({"scope": work.scope} if work.scope else {})


def _detail(case: Case, ns: int, calls: RepeatedCalls, work: SameWork) -> str:
    function = short_name(calls.name.removeprefix(_PREFIX))
    named = ", ".join(short_name(one) for one in _arguments(calls)) or "arguments"
    inside = f", mostly in {short_name(work.scope)}," if work.scope else ""
    often = "once" if calls.arriving == 1 else f"{calls.arriving:,} times"
    return (
        f"{case.of_step(ns)}{inside} computes again what an earlier call has computed: a step calls {function} {calls.calls:,.0f} times,"
        f" and this part needs only weights and {named}, which is new {often} a step."
    )


RULE: Rule[Case] = Rule(
    code="repeated-work",
    title="Part of a compiled program computes the same result in every call",
    turn=143,
    turn_without_device=87,
    page="kernels",
    owns="kernels, copies and gaps of a JAX program that steps call 4 times or more, in all of these calls but the first, if they depend only on weights and on arguments of which fewer than half as many arrive as there are calls (copied to the device, or returned by a program): the encoder of a prompt in each step of a sampler, for one. From a tenth of the step on. Numbers, random keys, whatever has the shape of a result, and data that was on the device before are taken to change with each call. In PyTorch, kernels and host time of calls of a module or function that call the same ops as an earlier one of the step, with equal shapes, if nothing in between can have made or changed what they are given: prompts that are encoded again, tables that each layer computes, and passes without a gradient behind the loss, as for metrics. Of calls of a module that all have gradients, which a step makes for several terms of its loss, all but the first with their backward pass, if exactly one array that the step makes or gets has the size of the input; weights that anything else than the call touches in between count as changed. Not if anything is drawn at random, if an optimizer steps in between, or if the module may keep a state; at worst, nothing is saved where they compute with numbers whose values are not recorded. On a CPU, ops of PyTorch that are given only a square matrix, which the capture has found after the recording, and what they make of it, the same in all steps: the normalisation of an adjacency matrix in each layer. Not if anything else makes or writes to an array of that size, or the step ends with one; and where most of the matrix is not zero, only if a step calls them several times",
    change="only the first call of a step does this work; at worst, in JAX, one call for each new argument. In PyTorch the calls disappear, with their Python, and those with gradients with their backward pass, at worst without it where gradients of gradients are computed; at worst nothing is saved, since the other input may have been on the device before; on a CPU the ops",
    fix={
        "jax": "Compute it once per step in a function of its own (encode = jax.jit(encode_text); context = encode(params, tokens)), and pass the result to the function that is called again and again, in place of what it is computed from.",
        "pytorch": "Compute it once per step and pass it on: call the module or function before the loop (context = encoder(tokens)) or before the layers, and give its result to each of them.",
        ANY: "Compute it once per step, and pass the result to the function that is called again and again.",
    },
    find=find,
)
