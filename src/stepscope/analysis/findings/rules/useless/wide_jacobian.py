"""Derivatives that are carried through a function for more vectors than their use needs."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.programs.host_programs import going_share, host_programs, of_instructions
from stepscope.analysis.findings.programs.parts import part_of_program
from stepscope.analysis.findings.promise import of_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.xla.derivatives.bases import Basis, wide_bases
from stepscope.analysis.xla.hlo_module import Module, read_module
from stepscope.analysis.xla.instruction_cost import is_library_product
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.registers.calibration.products import (
    BASIS_VECTOR_BEST,
    BASIS_VECTOR_BEST_ON_HOST,
    BASIS_VECTOR_WORST,
)
from stepscope.registers.policy.findings import WORTH_A_FINDING

_FORWARDS = "Carry the derivative forwards: jax.jacfwd instead of jax.jacrev, or jax.jvp for a single input. It takes one vector for each input instead of one for each output."
_BACKWARDS = "Carry the derivative backwards: jax.jacrev instead of jax.jacfwd, or jax.grad and jax.vjp for a single output. It takes one vector for each output instead of one for each input."
_CHOSEN = "Compute only the derivatives that are used: jax.jvp(f, (x,), (e,)) with the unit vector e of an input (a jvp of a jvp for a second derivative, a jvp of jax.grad for a row of the Hessian), or jax.vjp with that of an output, instead of all that jax.hessian, jax.jacfwd and jax.jacrev give."


def find(case: Case) -> Finding | None:
    """By the code of compiled programs."""
    if case.device is None:
        return _on_host(case)
    if not case.runs_programs:
        return None
    found, tables = [], []
    for name, hlo in sorted({(name, hlo) for name, _, hlo in programs_that_ran(case.trace)}):
        module = read_module(hlo)
        bases = wide_bases(module)
        if bases:
            found += bases
            tables.append(_kernels(case, name, hlo, module, _left(bases, BASIS_VECTOR_BEST)))
    if not tables:
        return None
    widest = max(found, key=lambda one: one.size / one.needed)
    chosen = pl.concat(tables).unique("event", keep="first", maintain_order=True)
    return _advised(of_kernels(case, RULE, chosen, _why(widest), evidence=_evidence(widest)), widest)


def _kernels(case: Case, name: str, hlo: bytes, module: Module, left: pl.DataFrame) -> pl.DataFrame:
    """The program's kernels of these instructions, with what is left of each.

    In a command buffer that runs in another order than the code, nothing says which call a library's kernel is of. Between kernels of
    derivatives it is a product of theirs, if the library computes any: those of the function itself have no rows for the vectors, and
    are as much shorter.
    """
    products = [
        one.name for number in module.bodies for one in module.instructions(number) if is_library_product(one)
    ]
    unnamed = left.filter(pl.col("instruction").is_in(products)).select(pl.max("least", "most"))
    rows = part_of_program(case, name, hlo, left["instruction"].to_list())
    rows = rows.join(left, on="instruction", how="left", maintain_order="left").drop("run", "step")
    filled = (pl.coalesce(end, pl.lit(unnamed[end].item(), pl.Float64)) for end in unnamed.columns)
    return rows.with_columns(filled).drop_nulls("least")


def _on_host(case: Case) -> Finding | None:
    """The same where the host runs the programs."""
    programs = {name: wide_bases(module) for name, module in host_programs(case).items()}
    left = {name: _left(bases, BASIS_VECTOR_BEST_ON_HOST) for name, bases in programs.items() if bases}
    owned = of_instructions(case, {name: set(table["instruction"]) for name, table in left.items()})
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    tables = [table.with_columns(program=pl.lit(name)) for name, table in left.items()]
    stays = owned.join(pl.concat(tables), on=["program", "instruction"])
    going = [_going(case, owned, stays, end) for end in ("least", "most")]
    widest = max((one for bases in programs.values() for one in bases), key=lambda one: one.size / one.needed)
    accounted = Interval(1 - going[0], 1 - sum(going) / 2, 1 - going[1])
    detail = f"{case.of_step(ns)} {_why(widest)}"
    return _advised(
        timed(case, RULE, owned, case.plan, detail, _evidence(widest), accounted=accounted), widest
    )


def _going(case: Case, owned: pl.DataFrame, stays: pl.DataFrame, end: str) -> float:
    """The share of a step that goes if that much of each instruction stays."""
    whole = max(1, int(stays["ns"].sum()))
    return going_share(case, owned) * (1 - float((stays["ns"] * stays[end]).sum()) / whole)


def _left(bases: Iterable[Basis], best: float) -> pl.DataFrame:
    """instruction, least, most: what fewer vectors leave of its time."""
    rows = []
    for one in bases:
        for name, share in one.carried.items():
            ends = [min(1.0, one.needed / one.size * cost) for cost in (best, BASIS_VECTOR_WORST)]
            rows.append((name, *(1 - share + share * end for end in ends)))
    schema = {"instruction": pl.String, "least": pl.Float64, "most": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return table.sort("instruction", "least").unique("instruction", keep="first", maintain_order=True)


def _why(one: Basis) -> str:
    ends, way = ("outputs", "backwards") if one.backwards else ("inputs", "forwards")
    carried = f"is spent on derivatives that are carried {way} for each of {one.size:,} {ends}"
    if one.chosen:
        return f"{carried}, of which the program reads those of {one.needed:,}."
    other, back = ("input", "forwards") if one.backwards else ("output", "backwards")
    return f"{carried}. Carried {back}, one for each {other} would do: {one.needed:,}."


def _advised(found: Finding | None, one: Basis) -> Finding | None:
    if found is not None:
        found.fix = _CHOSEN if one.chosen else _FORWARDS if one.backwards else _BACKWARDS
    return found


def _evidence(one: Basis) -> dict[str, int]:
    return {"vectors": one.size, "needed": one.needed}


RULE: Rule[Case] = Rule(
    code="wide-jacobian",
    title="Derivatives are carried in more directions than needed",
    turn=173,
    turn_without_device=88,
    page="kernels",
    owns="in compiled programs of JAX, kernels of derivatives that are carried for a whole basis (`jacrev`, `jacfwd`, `hessian`), and of their gradients, according to the code: where the other direction needs at most three quarters as many vectors, or the program reads the derivatives of that many alone. Without a device, the ops of such programs",
    change="they take as much less time as there are fewer vectors, each of which costs 0.8 to 1.3 times as much as before, on a CPU from 0.3 times; kernels that also touch other arrays by their share of the bytes",
    fix={ANY: _CHOSEN},
    find=find,
)
