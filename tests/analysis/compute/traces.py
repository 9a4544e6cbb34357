"""Accounts of compute of small traces written as text, with times in µs on an H200.

track     start  dur  name      kind    launches  shapes               dtypes
main          0   10  aten::mm  op      -         [[8,8],[8,8]]        float,float
main          2    3  launch    runtime gemm      -                    -
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.analysis.account.account import account
from stepscope.analysis.compute.account import ComputeAccount, compute_account
from stepscope.analysis.kernels.calls import kernel_calls
from stepscope.analysis.ops.calls import op_calls
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.finish import finish
from stepscope.trace.trace import Trace
from tests.builders.inline import US, _launches
from tests.builders.tables import draft, rows

H200 = {"id": 0, "name": "NVIDIA H200", "numSms": 132}


def compute_trace(text: str, device: dict[str, object] | None = None, framework: str = "pytorch") -> Trace:
    """The trace that the table describes; ops have shapes and types. `device`: another than an H200, or none if it is empty."""
    found = rows(text)
    made = draft(text, links=_launches(found))
    made.info = replace(
        made.info,
        framework=framework,
        devices=[each for each in (H200 if device is None else device,) if each],
    )
    places = range(len(found))
    made.kernels = pl.DataFrame(
        {"event": [n for n in places if found[n]["kind"] == "kernel"]}, schema={"event": pl.UInt32}
    )
    shaped = [n for n in places if found[n]["kind"] == "op" and found[n].get("shapes")]
    made.ops = pl.DataFrame(
        {
            "event": shaped,
            "shapes": [found[n]["shapes"] for n in shaped],
            "dtypes": [_types(found[n].get("dtypes")) for n in shaped],
            "concrete_inputs": [found[n].get("inputs") for n in shaped],
            "sequence": [_number(found[n].get("sequence")) for n in shaped],
        },
        schema={
            "event": pl.UInt32,
            "shapes": pl.String,
            "dtypes": pl.String,
            "concrete_inputs": pl.String,
            "sequence": pl.Int64,
        },
    )
    strided = [n for n in shaped if found[n].get("strides")]
    if strided:
        strides = [found[n]["strides"] for n in strided]
        made.cold["op"] = pl.DataFrame(
            {"event": strided, "strides": strides}, schema={"event": pl.UInt32, "strides": pl.String}
        )
    made.events = made.events.with_columns(pl.col("start_ns") * US, pl.col("dur_ns") * US)
    return finish(made)


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _types(text: str | None) -> str | None:
    return None if text is None else "[" + ",".join(f'"{each}"' for each in text.split(",")) + "]"


def computed(text: str, device: dict[str, object] | None = None) -> ComputeAccount:
    """The account of compute of the table; its parts sum to the account's."""
    trace = compute_trace(text, device)
    whole = account(trace, find_steps(trace))
    found = compute_account(trace, whole, kernel_calls(trace), op_calls(trace))
    computing = whole.parts.filter(pl.col("part") == "compute").group_by("step").agg(pl.col("ns").sum())
    summed = found.parts.group_by("step").agg(pl.col("ns").sum())
    assert dict(summed.iter_rows()) == dict(computing.iter_rows())
    return found


def by_reason(found: ComputeAccount) -> dict[str, int]:
    """ns by reason, over all steps."""
    return dict(found.parts.group_by(pl.col("reason").cast(pl.String)).agg(pl.col("ns").sum()).iter_rows())
