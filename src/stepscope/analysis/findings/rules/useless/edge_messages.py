"""Messages along the edges of a graph that are written out one by one, where a sparse product would add them up as it reads."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.formulas.constants import ITEM_BYTES
from stepscope.analysis.ops.messages import Messages, find_messages, may_have_messages
from stepscope.registers.policy.useless_work import MESSAGES_READ_FAST, MESSAGES_READ_SLOWLY
from stepscope.trace.scopes import ancestors


def find(case: Case) -> Finding | None:
    """Gathers, their weights and the scatters behind them: a sparse product reads a row for each edge, and writes none."""
    if case.trace.info.framework != "pytorch":
        return None
    bandwidth = case.peaks.bytes_per_s if case.peaks else None
    if not bandwidth:
        return None
    if not may_have_messages(case.ops["name"].unique().cast(pl.String).to_list()):
        return None
    found = [each for each in find_messages(_calls(case)) if each.dtype in ITEM_BYTES]
    if not found:
        return None
    chosen = _left(case, found, bandwidth)
    most = max(found, key=lambda each: each.rows * each.columns)
    why = f"gathers {most.rows:,} rows from a table of {most.table:,}, and adds them up again: one message for each edge, each written to memory."
    return of_kernels(case, RULE, chosen, why, evidence={"rows": most.rows, "table": most.table})


def _calls(case: Case) -> list[tuple[int, int, str, str | None, str | None]]:
    """The ops of PyTorch itself that work on the device, in order."""
    names = pl.col("name").cast(pl.String)
    ops = case.ops.filter(pl.col("device_total_ns") > 0, names.str.starts_with("aten::"))
    ops = ops.with_columns(start=case.trace.events["start_ns"].gather(ops["event"])).sort("track", "start")
    return ops.select("track", "event", names, pl.col("shapes", "dtypes").cast(pl.String)).rows()


def _left(case: Case, found: list[Messages], bandwidth: float) -> pl.DataFrame:
    """event, least, most of their kernels: what sparse products take of their time, where that is less."""
    events = case.trace.events
    reads = [each.rows * each.columns * ITEM_BYTES[each.dtype] / bandwidth * 1e9 for each in found]
    ops = pl.DataFrame(
        [
            (op, number, ns)
            for number, (each, ns) in enumerate(zip(found, reads, strict=True))
            for op in each.ops
        ],
        schema={"op": pl.UInt32, "number": pl.UInt32, "read_ns": pl.Float64},
        orient="row",
    )
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(ops["op"], True)
    nearest = pl.select(pl.when(wanted).then(events["id"]).otherwise(ancestors(events, wanted))).to_series()
    launched = case.trace.kernels.select("event", "op").drop_nulls("op")
    kernels = launched.with_columns(op=nearest.gather(launched["op"])).join(ops, on="op")
    kernels = kernels.join(case.compute.kernels.select("event", "time_ns"), on="event")
    share = pl.col("read_ns") / pl.col("time_ns").sum().over("number")
    left = kernels.select("event", least=share / MESSAGES_READ_FAST, most=share / MESSAGES_READ_SLOWLY)
    return left.filter(pl.col("most") < 1)


RULE: Rule[Case] = Rule(
    code="edge-messages",
    title="Messages along the edges of a graph are written out one by one",
    turn=176,
    page="ops",
    owns="gathers of rows, the product with one weight for each row, and the scatter that adds up as many rows, in the forward and backward pass",
    change="each edge reads its row at 20 to 90 % of memory bandwidth, as a sparse product does, and writes nothing",
    fix={
        "pytorch": "Keep the edges as a sparse matrix, made once: A = torch.sparse_coo_tensor(torch.stack([target, source]), weight, (n, n)).coalesce().to_sparse_csr(), and A @ x in place of x[source] * weight and index_add_; or torch_geometric's and DGL's fused sums.",
        ANY: "Keep the edges as a sparse matrix, and multiply by it.",
    },
    find=find,
    needs_device=True,
)
