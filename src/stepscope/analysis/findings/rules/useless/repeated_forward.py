"""A program of JAX beside the one that trains computes the forward pass of the same batch a second time."""

from __future__ import annotations

from collections import Counter
from itertools import product

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.device_work import free_of_work, launched_less
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.programs.host_passes import HostProgram, programs_of_host, work_of_runs
from stepscope.analysis.findings.programs.host_programs import work_of_programs
from stepscope.analysis.findings.programs.parts import part_of_program
from stepscope.analysis.findings.promise import shorten_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.xla.arguments import arguments_of, results_of
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.repeated_calls import Arrivals, codes_by_name, runs_of_programs
from stepscope.analysis.xla.repeats.forward_again import GRADIENT, ForwardAgain, forward_again
from stepscope.names import short_name
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.registers.policy.repeated_work import FORWARD_RUNS_LEAST, FORWARD_RUNS_MOST, UNSURE_BATCH

_PREFIX = "jit_"


def find(case: Case) -> Finding | None:
    """The work of the second program, of which what follows the last product may still be needed."""
    if case.trace.info.framework != "jax" or case.is_tpu:
        return None
    if case.device is None:
        return _on_host(case)
    runs = runs_of_programs(case.trace, case.device)
    if len(runs) < 2:
        return None
    codes = {
        name: next(iter(hlos))
        for name, hlos in codes_by_name(case.trace).items()
        if len(hlos) == 1 and name in runs
    }
    training = [name for name, hlo in codes.items() if GRADIENT in hlo]
    others = [name for name, hlo in codes.items() if GRADIENT not in hlo]
    for mine, theirs in product(others, training):
        if not FORWARD_RUNS_LEAST <= runs[mine] / runs[theirs] <= FORWARD_RUNS_MOST:
            continue
        work = forward_again(read_module(codes[theirs]), read_module(codes[mine]))
        if work is not None and not _has_own_batch(case, runs, codes[mine], codes[theirs], runs[theirs]):
            return _found(case, mine, theirs, _chosen(case, mine, codes[mine], work))
    return None


def _on_host(case: Case) -> Finding | None:
    """The same of programs that the host itself runs: there may be several, as one for each metric."""
    programs = programs_of_host(case)
    runs: Counter[str] = Counter()
    for one in programs:
        runs[one.name] += len(one.ends)
    again: dict[str, tuple[HostProgram, HostProgram, ForwardAgain]] = {}
    for mine, theirs in product(programs, programs):
        share = len(mine.ends) / len(theirs.ends)
        if mine.trains or not theirs.trains or not FORWARD_RUNS_LEAST <= share <= FORWARD_RUNS_MOST:
            continue
        work = forward_again(read_module(theirs.hlo), read_module(mine.hlo))
        if work is not None and not _has_own_batch(case, runs, mine.hlo, theirs.hlo, len(theirs.ends)):
            again[mine.name] = (mine, theirs, work)
    return _found_on_host(case, [*again.values()]) if again else None


def _found_on_host(case: Case, again: list[tuple[HostProgram, HostProgram, ForwardAgain]]) -> Finding | None:
    """What follows the last product of each pass may still be needed."""
    owned = work_of_runs(case, work_of_programs(case), [mine for mine, _, _ in again])
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    after = owned.filter(pl.col("instruction").is_in([name for _, _, one in again for name in one.after]))
    share, needed = (min(1.0, case.per_step(each) / case.step_ns) for each in (owned, after))
    mine, theirs, _ = again[0]
    detail = _detail(case, ns, [one.name for one, _, _ in again], theirs.name)
    left = Interval(1 - share, 1 - share + needed / 2, 1 - share + needed)
    evidence = {"program": mine.name, "training": theirs.name}
    return timed(case, RULE, owned, case.plan, detail, evidence, accounted=left)


def _detail(case: Case, ns: float, mine: list[str], theirs: str) -> str:
    names = " and ".join(short_name(name.removeprefix(_PREFIX)) for name in mine)
    training = short_name(theirs.removeprefix(_PREFIX))
    return f"{case.of_step(ns)} computes in {names} the forward pass that {training} computes as well: the same products of arrays of the same shapes."


def _has_own_batch(case: Case, runs: dict[str, int], mine: bytes, theirs: bytes, times: int) -> bool:
    """Whether more arrays like an argument arrive than one program needs, from the host or another program: then each gets its own."""
    arrivals = Arrivals(case.trace, runs, codes_by_name(case.trace))
    training = read_module(theirs)
    alike = Counter(one.bytes for one in arguments_of(training))
    # Weights come back from training and from what applies gradients of their shapes, and are no batch.
    carried = results_of(training)
    given = [one for one in arguments_of(read_module(mine)) if not one.is_small and one.shape not in carried]
    return any(arrivals.of(one) > FORWARD_RUNS_MOST * times * max(1, alike[one.bytes]) for one in given)


def _chosen(case: Case, name: str, hlo: bytes, work: ForwardAgain) -> pl.DataFrame:
    """event, least, most: what is computed from the result of the pass is needed, and takes as long again at most."""
    parts = [
        part_of_program(case, name, hlo, names).select(
            "event", least=pl.lit(0.0, pl.Float64), most=pl.lit(most, pl.Float64)
        )
        for names, most in ((work.before, 0.0), (work.after, 1.0))
    ]
    return pl.concat(parts).unique("event", keep="first", maintain_order=True)


def _found(case: Case, mine: str, theirs: str, chosen: pl.DataFrame) -> Finding | None:
    owned = free_of_work(case, chosen["event"])
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    detail = _detail(case, ns, [mine], theirs)
    change = shorten_kernels(case, chosen)
    change = Change(
        launched_less(change.smallest, chosen, "most"), launched_less(change.largest, chosen, "least")
    )
    return timed(case, RULE, owned, change, detail, {"program": mine, "training": theirs})


RULE: Rule[Case] = Rule(
    code="repeated-forward",
    title="A second program computes the forward pass of the training step again",
    turn=146,
    page="kernels",
    owns="kernels, copies and gaps of a JAX program without gradients that runs about once for each run of a program with gradients, with arguments of shapes that this one has, and products with the FLOPs of a part of its own (15 to 55 % of them), if none of its results is an argument of it and no batch of its own is copied to the device or made by another program; without a device, all such programs that the CPU runs",
    change="none of it remains; what follows its last product, such as metrics, at worst stays as it is",
    fix={
        "jax": "Compute the metrics in the jitted training step, from what its forward pass has computed: (loss, logits), gradients = jax.value_and_grad(loss_fn, has_aux=True)(params, batch). If the second program is for other batches, run it every 100 steps.",
        ANY: "Compute loss, metrics and gradients from one forward pass.",
    },
    find=find,
    certainty=UNSURE_BATCH,
    turn_without_device=86,
)
