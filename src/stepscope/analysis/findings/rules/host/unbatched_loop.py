"""A loop in Python launches one small piece of work after the other that could be launched together."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.loops.derivatives import speak_of_derivatives
from stepscope.analysis.findings.loops.function_loops import find_function_loop
from stepscope.analysis.findings.loops.host_loops import find_host_loop
from stepscope.analysis.findings.loops.joined_passes import find_passes
from stepscope.analysis.findings.loops.padding import padding_of
from stepscope.analysis.findings.loops.selections import selected_once
from stepscope.analysis.findings.loops.separate_calls import find_separate_calls
from stepscope.analysis.findings.loops.slices import parts_of_slices, work_of_slices
from stepscope.analysis.findings.loops.stacked_inputs import with_stacked_inputs
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.optimizer_loop import in_optimizer
from stepscope.analysis.findings.spread import OF_CHOICE
from stepscope.analysis.host.carried_state import CELLS
from stepscope.analysis.host.functions import where
from stepscope.analysis.host.loop_backward import merged_parameters, with_backward
from stepscope.analysis.host.loops import Loops
from stepscope.analysis.ops.sliced_gradients import sliced_gradients
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.calibration.recurrent import (
    RECURRENT_HOST_LEAST,
    RECURRENT_HOST_MOST,
    RECURRENT_LEAST,
    RECURRENT_MOST,
)
from stepscope.registers.policy.compute import BATCHED_PASSES_MOST, SMALL_KERNEL_NS
from stepscope.registers.policy.findings import (
    BATCHED_EFFICIENCY_LEAST,
    BATCHED_EFFICIENCY_MOST,
    BATCHED_OPS_MOST,
    LOOP_LEAST,
    LOOP_WORK_LEAST,
    MAJORITY,
    OPS_READ_WITH_A_WAIT,
    TOP_NAMES,
)
from stepscope.trace.columns import repeated
from stepscope.trace.lookup import events_named, names_of, rows_by_event
from stepscope.trace.scopes import at_or_inside

_COMPILES = (
    "jax",
    "tensorflow",
)  # their other loops are the findings eager-execution, device-sync and launch-bound
_READS = ("aten::_local_scalar_dense",)  # .item(), float(), int(), bool()
_COMPARES = ("aten::eq", "aten::ne")
_UNNAMED = ("profiler", "unexplained")
_SELECTS = " It selects indices by a boolean mask, which makes the host wait. If these are the same in every step, selecting them once, before the loop, is the smaller fix."
_HOLDS_UP = ("dispatch", "sync", "python", "unexplained")


def find(case: Case) -> Finding | None:
    """The device waits for a loop that does the same for each expert, sample, parameter or time step."""
    if case.device is None:
        return _on_host(case)
    if case.trace.info.framework in _COMPILES:
        return find_passes(case, RULE) or find_separate_calls(case, RULE)
    loops = case.loops
    if loops.found.is_empty():
        return None
    mine = in_loops(case, loops)
    owned = held_up(case, mine)
    ns = case.per_step(owned)
    if ns < LOOP_LEAST * case.step_ns or not _works(case, mine):
        return None
    longest = _longest(loops, owned)
    if len(longest) and longest["frame"][0] in reading(case, loops):
        return None  # `device-sync` owns a loop that is there to read values
    times = float(loops.found.filter(pl.col("frame") == longest["frame"][0])["iterations"][0])
    detail = f"{case.of_step(ns)} passes while a loop launches the same work about {times:,.0f} times, piece by piece."
    evidence = {"iterations": round(times)}
    together = with_stacked_inputs(case, loops, batched(case, loops))
    once = selected_once(case, loops)
    if once is not None:
        detail += _SELECTS
    change = Change(once or together.smallest, at_best(case, together.largest))
    found = timed(case, RULE, owned, change, detail, evidence, spread=None if once is None else OF_CHOICE)
    found.where = where(case.trace, longest["frame"])[:TOP_NAMES]
    speak_of_derivatives(case, found, int(longest["frame"][0]))
    return found


def _on_host(case: Case) -> Finding | None:
    """Where the host computes: functions of TensorFlow, ops of PyTorch."""
    if case.trace.info.framework == "tensorflow":
        return find_function_loop(case, RULE)
    if case.trace.info.framework == "pytorch":
        return find_host_loop(case, RULE, in_optimizer(case.trace.events))
    return None


def in_loops(case: Case, loops: Loops) -> pl.Series:
    """Which events of the host belong to a loop; that of an optimizer is a finding of its own."""
    return loops.loop_of.is_not_null() & ~in_optimizer(case.trace.events)


def held_up(case: Case, mine: pl.Series) -> pl.DataFrame:
    """The free slices in which the device waits for these events."""
    owned = case.free(pl.col("part").is_in(_HOLDS_UP))
    return owned.filter(mine.gather(owned["named_by"]).fill_null(False))


def reading(case: Case, loops: Loops) -> set[int]:
    """The frames of loops that read a value of the device in most turns, and launch hardly more than what makes it."""
    events = case.trace.events
    names = names_of(events)
    wanted = names.filter(names.cast(pl.String).is_in(_READS))
    ends = events["name"].is_in(wanted.implode()) & events["step"].is_not_null()
    reads = (
        pl.DataFrame({"frame": loops.loop_of.filter(ends)}).drop_nulls().group_by("frame").agg(reads=pl.len())
    )
    known = loops.found.join(reads, on="frame")
    few = pl.col("launches") <= (OPS_READ_WITH_A_WAIT + 1) * pl.col("reads")
    often = pl.col("reads") >= MAJORITY * pl.col("iterations")
    return set(known.filter(few & often)["frame"].to_list())


def _works(case: Case, mine: pl.Series) -> bool:
    """Whether the host works in the loop; one that hardly does more than wait is a matter of its waits."""
    work = case.plan.host.filter(mine.gather(case.plan.host["event"]).fill_null(False))["ns"].sum()
    return int(work) >= LOOP_WORK_LEAST * case.played_ns * len(case.lengths)


def _longest(loops: Loops, owned: pl.DataFrame) -> pl.DataFrame:
    """The loops that hold the device up, the longest first."""
    frames = owned.select("ns", frame=loops.loop_of.gather(owned["named_by"]))
    return frames.group_by("frame").agg(pl.col("ns").sum()).sort(["ns", "frame"], descending=[True, False])


def batched(case: Case, loops: Loops) -> Change:
    """The pieces are launched together, without waits between them, and their kernels come closer to the bound of their work.

    So are those of their backward pass, and the parameters of modules that become one. The cells of a recurrent network
    still run one after the other, inside one call, which launches a quarter of the kernels.
    """
    recurrent = _is_recurrent(case, loops)
    whole = with_backward(case.trace, loops)
    left = merged_parameters(case.trace, whole)
    less, more = _less_of_loop(case, whole), _less_of_loop(case, whole, with_more_ops=True)
    items = _kernels_of_loop(case, less).with_columns(
        counts=_less_of_item(case, _counts_classes(case, loops).cast(pl.Float64)) > 0,
        padding=_less_of_item(case, padding_of(case.trace, whole)).fill_null(1.0),
    )
    if recurrent:
        smallest, largest = (_recurrent_share(items, share) for share in (RECURRENT_MOST, RECURRENT_LEAST))
        more, fewer = more.clip(RECURRENT_HOST_MOST), less.clip(RECURRENT_HOST_LEAST)
    else:
        fewer = less
        smallest = _batched_share(items.with_columns(counts=False), BATCHED_EFFICIENCY_LEAST)
        largest = _batched_share(items, BATCHED_EFFICIENCY_MOST)
    return Change(
        _launch_together(case, less, _less_of_host(case, more, loops, left), smallest),
        _launch_together(case, less, _less_of_host(case, fewer, loops, left), largest),
    )


def at_best(case: Case, plan: Plan) -> Plan:
    """What no code of the job explains is small beside a long loop, and may be the profiler's; what the loop put out of the caches stays there."""
    return with_warm_caches(plan.with_host(pl.col("cause").is_in(_UNNAMED), 0.0), case.plan)


def _counts_classes(case: Case, loops: Loops) -> pl.Series:
    """Which events are in a loop that compares tensors of one size with another number in each turn: one histogram shows it all."""
    events, ops = case.trace.events, case.trace.ops
    is_equal = events_named(events, lambda known: known.is_in(_COMPARES))
    rows = ops.filter(is_equal.gather(ops["event"])).select("event", "shapes", "concrete_inputs").drop_nulls()
    rows = rows.with_columns(frame=loops.loop_of.gather(rows["event"])).drop_nulls("frame")
    by_size = rows.group_by("frame", "shapes").agg(numbers=pl.col("concrete_inputs").n_unique())
    known = loops.found.join(by_size, on="frame")
    frames = known.filter(pl.col("numbers") > MAJORITY * pl.col("iterations"))["frame"]
    return loops.loop_of.is_in(frames.implode()).fill_null(False)


def _is_recurrent(case: Case, loops: Loops) -> bool:
    """Whether a loop runs cells of a recurrent network, each of which needs the one before."""
    events = case.trace.events
    cells = events_named(events, lambda known: known.str.contains(CELLS))
    return bool((cells & loops.loop_of.is_not_null()).any())


def _recurrent_share(items: pl.DataFrame, share: float) -> pl.Series:
    """What one call for all cells takes of the time of their kernels."""
    found: pl.Series = items.select(
        pl.when(pl.col("batched").is_null()).then(1.0).otherwise(share)
    ).to_series()
    return found


def _makes_wholes(case: Case) -> pl.Series:
    """Which items of the plan fill or add whole tensors for slices of them: what works on all turns at once takes no slices."""
    nodes = sliced_gradients(case.trace)
    if nodes.is_empty():
        return repeated(False, len(case.plan.items), pl.Boolean)
    work = work_of_slices(case, parts_of_slices(case.trace, nodes))
    return case.plan.items["event"].is_in(work.filter(~pl.col("is_copy"))["event"].implode()).fill_null(False)


def _kernels_of_loop(case: Case, less: pl.Series) -> pl.DataFrame:
    """The plan's items with `batched`, one over the iterations of the loop, and `bound`, both null outside of loops, and `whole`."""
    known = case.compute.kernels.filter(pl.col("time_ns") > 0, pl.col("reason") != "unknown")
    bounds = known.select("event", bound=pl.col("ideal_ns") / pl.col("time_ns"))
    items = case.plan.items.with_columns(batched=_less_of_item(case, less), whole=_makes_wholes(case))
    return items.join(bounds, on="event", how="left", maintain_order="left")


def _less_of_item(case: Case, less: pl.Series) -> pl.Series:
    """For each item of the plan what is left of the time of the call that launches it; null outside of loops."""
    links = case.trace.links.filter(pl.col("why") == "launch").select("from", event="to")
    launched = links.select("event", batched=less.gather(links["from"])).unique("event")
    found: pl.Series = case.plan.items.join(launched, on="event", how="left", maintain_order="left")[
        "batched"
    ]
    return found


def _batched_share(items: pl.DataFrame, efficiency: float) -> pl.Series:
    """What a batched kernel takes of the time of its pieces, at some share of its bound.

    A piece that is too short to fill the device costs little more than its launch, whatever it does. Turns that read the same
    tensor have one pass over it in common. Samples of several lengths are padded to the longest.
    """
    small = pl.when(pl.col("device_ns") < SMALL_KERNEL_NS).then(0.0).otherwise(1.0)
    needed = (pl.coalesce("bound", small) / efficiency).clip(upper_bound=1.0) * pl.col("padding")
    needed = pl.when(pl.col("counts").fill_null(False) | pl.col("whole")).then(0.0).otherwise(needed)
    share = pl.max_horizontal("batched", needed)
    found: pl.Series = items.select(
        pl.when(pl.col("batched").is_null()).then(1.0).otherwise(share)
    ).to_series()
    return found


def _less_of_host(case: Case, less: pl.Series, loops: Loops, parameters: float) -> pl.Series:
    """What is left of each row of the plan's host work, with one op for each of the loop's.

    An optimizer goes through its parameters in Python, and so does zero_grad: if only a share of them is left, so is of that.
    """
    update = pl.when(_goes_through_parameters(case)).then(parameters)
    own = pl.select(pl.coalesce(less, update)).to_series().gather(case.plan.host["event"])
    # Between two gradients of a loop the engine works for the next one.
    backward = pl.select(pl.when(loops.loop_of.is_null()).then(less)).to_series()
    following = _less_of_item(case, backward).gather(case.plan.host["item"])
    between = (case.plan.host["cause"] == "dispatch") & own.is_null()
    return pl.select(pl.when(between).then(following).otherwise(own)).to_series().fill_null(1.0)


def _goes_through_parameters(case: Case) -> pl.Series:
    """Which events are inside the optimizer."""
    events = case.trace.events
    is_optimizer = (events["role"] == "optimizer").fill_null(False)
    return at_or_inside(events, is_optimizer)


def _launch_together(case: Case, less: pl.Series, host: pl.Series, device: pl.Series) -> Plan:
    """What the host does in the loop it does once, with some ops for each of the loop's."""
    in_loop = pl.lit(less.gather(case.plan.items["event"]).is_not_null())
    mine = pl.lit(host < 1) & (pl.col("cause") != "input")
    return (
        case.plan.with_host(mine, pl.lit(host))
        .without_waits(in_loop)
        .with_device(pl.lit(True), pl.lit(device))
    )


def _less_of_loop(case: Case, loops: Loops, with_more_ops: bool = False) -> pl.Series:
    """For each event of the host what is left of its time when its loop is batched, at most with more ops; null outside of loops."""
    ops = pl.when("passes").then(BATCHED_PASSES_MOST).otherwise(BATCHED_OPS_MOST) if with_more_ops else 1
    left = loops.found.select((ops / pl.col("iterations")).clip(upper_bound=1.0)).to_series()
    rows = rows_by_event(loops.found["frame"], len(case.trace.events))
    return left.gather(rows.gather(loops.loop_of))


RULE: Rule[Case] = Rule(
    code="unbatched-loop",
    title="A Python loop launches the same work piece by piece",
    turn=84,
    page="ops",
    owns="`dispatch`, `sync` and `python` inside a loop, in a function, in the step itself or in an annotation of yours, that calls the same ops eight times or more, or eight modules of one class or more that do the same work and cannot need one another (a layer for each channel, field or head), or a model with a batch of one whose input is copied each time and does not come from the previous call, or a model whose inputs are cut from one tensor with as many rows as all calls take together (each sample of a batch, micro-batches), also with a backward pass in each turn, unless an optimizer or a recurrent network makes one need the one before. A model that is called for each text, image or clip of a list with a batch of one, by itself or in a helper, counts if the lengths go up and down, or if each sample is made a batch of one on the spot and no result as large is taken out of its batch; unless something is chosen, joined, updated or sent backwards between the calls, later calls have more ops than the first, or a recurrent network or cell runs inside. Loops whose turns multiply a state that they carry along, as a recurrent cell written by hand does, do not count, unless it is PyTorch's own cell (`nn.LSTMCell`); nor do loops whose turns are given what the one before has chosen, as those that write a text token by token, or that pick the points farthest from those before. In compiled programs, all but the first of several runs of one program, if the next one takes their results together, or of several uses of most weights in one program, if none depends on another; the batch must be so small that one pass over all inputs takes at most three quarters of the time. On a CPU, the same loops of PyTorch by their ops, with their backward pass, and all but the ops of a TensorFlow function that a step runs eight times or more, with the same ops and about as long, and which updates no variable; a program of JAX that is called eight times or more in a row, where the host calls nothing else in between but what reads the result, or programs that only cut the next input out of an array (an index) or take a part of a result that no call can be given, and no result has the shape of an input (that of a bias counts for none)",
    change="the iterations are launched together, in the backward pass as well, and nothing waits between them; passes of autograd that the iterations send through the same layers become one; modules of one class become one, which leaves the optimizer as many parameters less. At best, what no code of the job explains goes as well, and the rest is dispatched from warm caches. What the iterations copy to the device the host stacks first, and sends at once (0.2 to 1 µs for each piece, and its bytes at 4 to 12 GB/s, twice). Their kernels reach 30 to 80 % of the bound of their work, in which samples of several lengths are as long as the longest of the step; those of recurrent cells take 45 to 80 % of their time, and the host 12 to 22 %. If each iteration compares the same tensors with another number, at most one pass over them remains. Gradients of whole tensors for the slices that the iterations take shrink by the number of iterations. If the iterations select indices by boolean masks that compare integers, at worst only the masks and the selection go, with their waits. Kernels of compiled passes take the time of one of them, at worst times the square root of their number, and no less than their arithmetic, or reading the weights once, takes at 30 to 80 % of the bound. On a CPU, ops of PyTorch below 50 µs take 1 to 4 times as long as those of one iteration (of recurrent cells 12 to 22 % of their time), and longer ones at best half. For a TensorFlow function on a CPU, at best what one run needs between its ops remains, and at worst everything: no profile shows whether a run needs the one before. Of calls of a JAX program in a row the first does all of it; at best, what stacks their results disappears as well; a model that uses each weight for one input takes between as long as one call and, at worst, the geometric mean of one and all",
    fix={
        "pytorch": "Do it for all pieces at once: one call of a model with stacked inputs (torch.stack; pad_sequence and an attention mask for samples of several lengths), batched products (torch.bmm, grouped matrix products, torch.vmap), one stacked parameter and torch.baddbmm instead of a ModuleList of layers, one table with offsets instead of a list of embeddings, torch._foreach_ ops for lists of parameters, indexing with one sorted index, or a module that has the loop inside (nn.LSTM); read results back once, after the loop. If each piece needs the one before, torch.compile the loop.",
        "jax": "Run the model once on all inputs: jnp.concatenate them (for classifier-free guidance the conditional and the unconditional input, as a batch of two) or jax.vmap over them, and split the result.",
        "tensorflow": "Stack the inputs and call the function once, if no run needs the result of the one before: model(tf.stack(inputs)), tf.concat (for classifier-free guidance the conditional and the unconditional input), or tf.vectorized_map. Otherwise put the loop inside one tf.function, so that only one call is dispatched.",
        ANY: "Do it for all pieces at once with batched ops.",
    },
    find=find,
)
