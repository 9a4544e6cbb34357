"""User code runs while the device has nothing to do."""

from __future__ import annotations

from functools import cached_property

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.cheaper_ops import advise_on_op, can_be_made_ahead
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.profiler_doubt import withdraw, without_doubt
from stepscope.analysis.findings.programs.wrappers import advise_on_wrapper
from stepscope.analysis.findings.promise import of_part, saving
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.eager_execution import by_framework
from stepscope.analysis.findings.spread import OF_BYTES, OF_LISTS, OF_UPLOADS, Spread
from stepscope.analysis.findings.transfers.staging import (
    gaps_of,
    is_mostly_sent,
    is_staging,
    reads_bytes,
    send_less,
    share_of_bytes,
    uploads,
)
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.functions import Calls, calls_of
from stepscope.analysis.host.place import Place
from stepscope.analysis.ops.sent import sends_pictures
from stepscope.lazy import dataclass
from stepscope.names import short_name
from stepscope.native.host.lineage import GARBAGE, USER
from stepscope.registers.calibration.launches import SHORT_READ_NS
from stepscope.registers.calibration.profiler import WARM_DISPATCH_WORST
from stepscope.registers.policy.findings import ACCOUNT_SAVES, BYTES_BEFORE_FLOATS, MAJORITY, WORTH_A_FINDING
from stepscope.registers.policy.host_code import (
    DOMINANT_FUNCTION,
    OWN_CODE,
    OWN_CODE_SAVES,
    OWN_CODE_SAVES_LEAST,
)
from stepscope.trace.scopes import ancestors

_CONVERTS = r"^<built-in method (as_)?tensor of "
_FIX_OF_LISTS = "Give torch.tensor one array, not a list: torch.from_numpy(np.stack(arrays)) for arrays, torch.from_numpy(np.array(numbers)) for numbers, or keep the data in one array or tensor from the start and pick rows with one index."

_FIX_OF_GARBAGE = "Take gc.collect() out of the loop, or call it once in an epoch: objects without reference cycles are freed without it. If Python's own collections take this long, call gc.freeze() after the model is built."
_FIX_OF_PICTURES = "Send the pictures as bytes: copy the uint8 array into pinned memory, call .to(device, non_blocking=True), and convert, scale and transpose on the device; a quarter of the bytes is transferred, and the host computes nothing."


def find(case: Case) -> Finding | None:
    """Without a device, user code is what computes, but one function may be most of the step."""
    if case.device is None:
        return _find_own_code(case) or _find_dominant(case)
    others = by_framework(case)
    owned = case.free(pl.col("part") == "python", ~pl.col("slice").is_in(others["slice"].implode()))
    named = others["named_by"].unique().implode()
    changed = (pl.col("cause") == "python") & ~pl.col("named_by").is_in(named)
    made = _Made(case, changed)
    found = of_part(
        case,
        RULE,
        owned,
        lambda: _without_calls(made, owned),
        WORTH_A_FINDING,
        choose_spread=lambda change: _choose_spread(made, change),
    )
    if found is not None:
        found.where = _with_caller(case, owned)
        found.fix = _choose_fix(made) or found.fix
        if case.is_of_one_step(owned):
            _advise(case, found)
        found = without_doubt(case, found)
    return found


@dataclass(frozen=True)
class _Made:
    """What the Python of a step, rows of the plan's host work, makes of what."""

    case: Case
    python: pl.Expr

    @cached_property
    def from_lists(self) -> bool:
        """Whether most of it is PyTorch's own, in turning lists into tensors item by item."""
        rows = self.case.plan.host.filter(self.python)
        names = self.case.trace.events["name"].gather(rows["event"]).cast(pl.String)
        converting = rows["ns"].filter(names.str.contains(_CONVERTS).fill_null(False))
        return int(converting.sum()) > MAJORITY * int(rows["ns"].sum())

    @cached_property
    def collects_garbage(self) -> bool:
        """Whether most of it is collecting garbage."""
        rows = self.case.plan.host.filter(self.python)
        collecting = (host_codes(self.case.trace) == GARBAGE).gather(rows["event"]).fill_null(False)
        return int(rows["ns"].filter(collecting).sum()) > MAJORITY * int(rows["ns"].sum())

    @cached_property
    def fix_of_wrapper(self) -> str | None:
        """What avoids it, if a library takes the arguments of compiled functions apart in most of it."""
        rows = self.case.plan.host.filter(self.python)
        return advise_on_wrapper(self.case, rows["event"], rows["ns"])

    @cached_property
    def pictures(self) -> bool:
        """Whether most of it makes pictures that are then sent as floats."""
        return sends_pictures(self.case.trace) and is_mostly_sent(self.case, self.python)


def _choose_fix(made: _Made) -> str | None:
    """Better advice than that for all Python, where it is known what it makes."""
    if made.from_lists:
        return _FIX_OF_LISTS
    if made.collects_garbage:
        return _FIX_OF_GARBAGE
    return _FIX_OF_PICTURES if made.pictures else made.fix_of_wrapper


def _with_caller(case: Case, owned: pl.DataFrame) -> list[Place]:
    """Where the time passes; before a function of a library, the one of the user's own that calls it most: that is what can be changed."""
    places = case.places(owned)
    longest = case.top_names(owned, 1)[0]["name"]
    mine = owned.filter(pl.col("name").cast(pl.String) == longest)
    callers = mine.select("ns", named_by=_nearest_of_user(case).gather(mine["named_by"])).drop_nulls()
    caller = [each for each in case.places(callers, 1) if each not in places[:1]]
    return [*caller, *(each for each in places if each not in caller)]


def _advise(case: Case, found: Finding) -> None:
    """What happened once, such as a collection of garbage, promises nothing for the steps of the job."""
    withdraw(found)
    found.detail += " It happened in one step only."
    case.changes.pop(RULE.code, None)


def _without_calls(made: _Made, owned: pl.DataFrame) -> Change:
    """The Python takes no time, nor do the ops of its calls; at most these go as a whole, with copies, waits and launches.

    Where one function takes most of it, that goes surely; the rest, such as picking and joining samples, may stay.
    Where it turns bytes into numbers, these are sent as bytes: surely if its ops say so or it makes pictures, else at most.
    Ops that pick bytes for a batch may stay.
    Where it reads lists for tensors, these are made of arrays and sent as before: only the Python goes.
    """
    case, python = made.case, made.python
    if made.from_lists:
        alone = case.plan.with_host(python & _of_dominant(case, python))
        return _with_warm_caches(case, Change(alone, case.plan.with_host(python)))
    calls = calls_of(case.trace, _longest_functions(case, owned))
    inside = calls.inside.gather(case.plan.host["event"]).fill_null(False)
    ops = pl.lit(inside) & (pl.col("cause") == "dispatch")
    without = case.plan.with_host(python | ops)
    were_bytes = reads_bytes(case) or made.pictures
    picked = share_of_bytes(case, python) if were_bytes else 0.0
    surely = case.plan.with_host(python & _of_dominant(case, python), picked)
    surely = surely.with_host(ops & ~_calls_programs(case, calls))
    smallest = send_less(case, surely, python, BYTES_BEFORE_FLOATS) if were_bytes else surely
    serves = pl.col("item").is_in(gaps_of(case, python).implode()) & (pl.col("cause") == "dispatch")
    launched = pl.col("event").is_in(calls.launched.implode())
    items = case.plan.items.filter(launched & (pl.col("device_ns") < SHORT_READ_NS))["item"].implode()
    waits = pl.col("event").is_in(calls.waits.implode())
    copied = pl.col("event").is_in(calls.copies.implode()) | pl.col("item").is_in(items)
    less = send_less(case, without, python, BYTES_BEFORE_FLOATS, pinned=True)
    # What is waited for inside the calls belongs to another finding, if there is one.
    others = (pl.col("cause") == "input") & pl.lit(case.has_found("input-bound"))
    largest = less.with_host((pl.lit(inside) | serves) & ~others).with_device(copied).without_waits(waits)
    return _with_warm_caches(case, Change(smallest, largest))


def _with_warm_caches(case: Case, change: Change) -> Change:
    return Change(
        with_warm_caches(change.smallest, case.plan, WARM_DISPATCH_WORST),
        with_warm_caches(change.largest, case.plan),
    )


def _choose_spread(made: _Made, change: Change) -> Spread | None:
    """Another than that of all Python, where sending what it made decides or is known."""
    if made.from_lists:
        return OF_LISTS
    if _sends_rest(made.case, change):
        return OF_UPLOADS
    return OF_BYTES if made.pictures else None


def _calls_programs(case: Case, calls: Calls) -> pl.Expr:
    """Dispatch inside the calls that starts programs of JAX: what they leave on the device, a compiled function computes after the fix."""
    if case.trace.info.framework != "jax":
        return pl.lit(False)
    kernels = calls.launched.filter(~calls.launched.is_in(calls.copies.implode()))
    started = case.plan.items.filter(pl.col("event").is_in(kernels.implode()))["item"]
    return pl.col("item").is_in(started.implode())


def _sends_rest(case: Case, change: Change) -> bool:
    """Whether most of what the Python leaves of a step sends what it made: how much of that stays decides."""
    sent = pl.col("event").is_in(uploads(case).implode())
    items = case.plan.items.filter(sent)["item"].implode()
    calls = (pl.col("item").is_in(items) & (pl.col("cause") != "python")) | is_staging(case)
    left = change.smallest.step_ns()
    return change.smallest.with_host(calls).with_device(sent, 0.0).step_ns() < (1 - MAJORITY) * left


def _of_dominant(case: Case, python: pl.Expr) -> pl.Expr:
    """Python inside the calls of the user's function that takes most of it; all of it where there is none but the step."""
    rows = case.plan.host.filter(python)
    events = case.trace.events
    frames = rows.select("ns", frame=_nearest_of_user(case).gather(rows["event"])).drop_nulls()
    named = frames.with_columns(name=events["name"].gather(frames["frame"]))
    summed = named.group_by("name").agg(pl.col("ns").sum(), pl.col("frame").min()).sort("ns", descending=True)
    total = int(rows["ns"].sum())
    if summed.is_empty() or int(summed["ns"][0]) <= MAJORITY * total or _is_step(case, summed["frame"][0]):
        return pl.lit(True)
    inside = calls_of(case.trace, summed["frame"].head(1)).inside
    return pl.lit(inside.gather(case.plan.host["event"]).fill_null(False))


def _longest_functions(case: Case, owned: pl.DataFrame) -> pl.Series:
    """The functions that most of the time is charged to."""
    summed = (
        owned.group_by("named_by").agg(pl.col("ns").sum(), pl.col("name").first()).sort("ns", descending=True)
    )
    names = summed.group_by("name", maintain_order=True).agg(pl.col("ns").sum(), pl.col("named_by").first())
    ranked = names.sort("ns", descending=True)
    share = ranked["ns"].cum_sum() - ranked["ns"]
    longest: pl.Series = ranked["named_by"].filter(share < MAJORITY * int(ranked["ns"].sum()))
    return pl.Series([frame for frame in longest if not _is_step(case, frame)], dtype=longest.dtype)


def _is_step(case: Case, frame: int) -> bool:
    """Whether the function launches most of the step's work: it is the step, which no fix takes away."""
    links = case.trace.links.filter(pl.col("why") == "launch")
    events = case.trace.events
    inside = calls_of(case.trace, pl.Series([frame], dtype=pl.UInt32)).inside
    launching = links["from"].filter(events["step"].gather(links["from"]).is_not_null())
    return int(inside.gather(launching).sum()) > MAJORITY * len(launching)


def _find_own_code(case: Case) -> Finding | None:
    """The user's function whose Python takes much of the step, beside a framework that could compute the same."""
    events = case.trace.events
    if case.is_broken or not (events["kind"] == "op").any():
        return None
    python = case.free(pl.col("part") == "python", pl.col("named_by").is_not_null())
    inside = python.with_columns(frame=_nearest_of_user(case).gather(python["named_by"])).drop_nulls("frame")
    named = inside.with_columns(function=events["name"].gather(inside["frame"]).cast(pl.String))
    summed = (
        named.group_by("function").agg(pl.col("ns").sum()).sort(["ns", "function"], descending=[True, False])
    )
    if summed.is_empty():
        return None
    owned = named.filter(pl.col("function") == summed["function"][0])
    ns = case.per_step(owned)
    share = ns / case.step_ns
    if share < OWN_CODE or case.is_of_one_step(owned):
        return None
    case.claim(owned)
    converting = case.per_step(owned.filter(_converts(case, owned)))
    left = _left_of_own_code(share, converting / case.step_ns)
    title = "" if share >= DOMINANT_FUNCTION else "One function takes much of the step"
    function = short_name(summed["function"][0])
    converts = converting > MAJORITY * ns
    mostly = "torch.tensor, which reads lists item by item" if converts else _described(case, owned)
    detail = f"{case.of_step(ns)} of Python code in {function}, mostly in {mostly}."
    evidence = {"names": case.top_names(owned), "function": summed["function"][0]}
    found = saving(case, RULE, ns, left, detail, evidence, title)
    found.fix = _FIX_OF_LISTS if converts else found.fix
    found.where = case.places(owned.with_columns(named_by="frame"))
    return found


def _converts(case: Case, owned: pl.DataFrame) -> pl.Series:
    """Whether the time is PyTorch's own, outside of any op, in turning a Python object into a tensor: an array is copied by an op."""
    names = case.trace.events["name"].gather(owned["detail"]).cast(pl.String)
    found: pl.Series = names.str.contains(_CONVERTS)
    return found


def _left_of_own_code(share: float, converting: float) -> Interval:
    """Half to all of Python code goes; of lists that are read item by item, nearly all, since NumPy copies whole arrays."""
    other = share - converting
    return Interval(
        1 - share,
        1 - converting - OWN_CODE_SAVES * other,
        1 - ACCOUNT_SAVES * converting - OWN_CODE_SAVES_LEAST * other,
    )


def _described(case: Case, owned: pl.DataFrame) -> str:
    return short_name(case.top_names(owned, 1)[0]["name"] or "")


def _nearest_of_user(case: Case) -> pl.Series:
    """By event: itself or what it is in, if that is a frame of the user's own code."""
    events = case.trace.events
    mine = (events["kind"] == "python") & (host_codes(case.trace) == USER)
    return pl.select(pl.when(mine).then(events["id"]).otherwise(ancestors(events, mine))).to_series()


def _find_dominant(case: Case) -> Finding | None:
    """How much faster the function can become is unknown, so that only the bound is given; work of a framework's op hardly goes at all."""
    computing = case.free(pl.col("part").is_in(["python", "host_compute"]), pl.col("name").is_not_null())
    names = case.top_names(computing, 1)
    if case.is_broken or not names or names[0]["ns_per_step"] < DOMINANT_FUNCTION * case.step_ns:
        return None
    owned = computing.filter(pl.col("name").cast(pl.String) == names[0]["name"])
    ns = case.per_step(owned)
    case.claim(owned)
    at_best = Interval(1 - ns / case.step_ns, 1.0, 1.0)
    kinds = case.trace.events["kind"].gather(owned["named_by"])
    is_function = next(iter(case.by_part(owned))) == "python"
    found = saving(
        case,
        RULE,
        ns,
        at_best,
        f"{case.of_step(ns)} in {short_name(names[0]['name'])}.",
        {"names": names},
        "" if is_function else "One op takes most of the step",
    )
    is_op = not is_function and not kinds.is_in(["python", "annotation"]).any()
    advice = advise_on_op(names[0]["name"], case.trace.info.framework) if is_op else None
    if advice is None:
        return found
    found.fix = advice
    if not can_be_made_ahead(names[0]["name"]):
        withdraw(found)
    return found


RULE: Rule[Case] = Rule(
    code="host-python",
    title="The device waits for Python code",
    turn=110,
    title_without_device="One function takes most of the step",
    owns="`python`; without a device, the Python of the function of yours that takes at least 30 % of the step, or the function or op that takes at least half of it",
    change="your code between launches takes no time; if one function takes most of it, only that function at worst. At best, the ops, copies and waits of the functions that take most of it disappear too; at worst, calls of JAX programs in them stay. Where most of it is `torch.tensor` reading lists item by item, only the Python goes: tensors are made of arrays and transferred as before, and at worst 7 % of the time remains to pick or stack the arrays. Where ops read bytes, or most of it makes pictures that are transferred as float32, a quarter of the bytes is transferred, and at worst the ops that pick them stay. If the unprofiled step is unknown, the finding is advice below a speed-up of 1.3 on the fastest host, because the profiler may have slowed it down. Without a device there is no replay: half to all of your function's Python disappears, and at least 85 % of what `torch.tensor` takes to read lists item by item; of other functions, and of ops that make random numbers, there is only an upper bound, and of other ops advice without a promise",
    fix={
        ANY: "Move this code out of the step, vectorise it, or run it in the background.",
    },
    fix_without_device={
        ANY: "Make this function faster, or call it less often: vectorise it, compile it, use more cores, or keep its results. The rest of the step matters less.",
    },
    find=find,
)
