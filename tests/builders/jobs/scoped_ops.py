"""Ops of TensorFlow's graphs with their scopes, as a table and as steps of 1000 µs on a thread of the pool."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.trace.finish import finish
from stepscope.trace.schema import TABLES
from tests.builders.cases import HEAD, case_of
from tests.builders.inline import US
from tests.builders.tables import draft

Op = tuple[str, str, int]  # name, scope, µs


def case_of_ops(ops: list[Op], count: int = 3, *, in_one_turn: bool = False) -> Case:
    """Steps that run these ops one after the other, in one turn of TensorFlow's executor if that matters."""
    lines, scopes = [HEAD], []
    for number in range(count):
        at = 1000 * number
        lines.append(f"main  {at}  1000  ProfilerStep#{number}  annotation  -")
        if in_one_turn:
            length = sum(length for _, _, length in ops)
            lines.append(f"tf_Compute/1  {at}  {length}  ExecutorState::Process  span  -")
        for name, scope, length in ops:
            scopes.append((len(lines) - 1, scope))
            lines.append(f"tf_Compute/1  {at}  {length}  {name}  op  -")
            at += length
    made = draft("\n".join(lines))
    made.info = replace(made.info, framework="tensorflow")
    made.events = made.events.with_columns(pl.col("start_ns") * US, pl.col("dur_ns") * US)
    table = pl.DataFrame(scopes, schema=["event", "scope"], orient="row")
    made.ops = table.cast({name: TABLES["ops"][name] for name in ("event", "scope")})
    return case_of(finish(made))
