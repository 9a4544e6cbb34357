"""Long kernels with fewer blocks than the device has multiprocessors."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.solvers import solver_kernels
from stepscope.analysis.kernels.occupancy import multiprocessors
from stepscope.registers.policy.device_findings import LEAST_BLOCKS_FACTOR, LONG_KERNEL_NS
from stepscope.registers.policy.findings import SURE_GAIN, UNSURE_KERNELS

_FILLS_BY_DESIGN = r"(?i)nccl|rccl|all_?reduce|persist|rnn|lstm|gru|cooperative"


def find(case: Case) -> Finding | None:
    """Long kernels with fewer blocks than the device has multiprocessors."""
    counts = [multiprocessors(device) for device in case.trace.info.devices]
    processors = next((count for count in counts if count), None)
    if not processors or case.kernels.is_empty():
        return None
    long = case.kernels.filter(
        pl.col("dur_ns") > LONG_KERNEL_NS, ~pl.col("event").is_in(solver_kernels(case).implode())
    )
    blocks = long.select("event", blocks=_blocks(long["grid"]), name=pl.col("name").cast(pl.String))
    few = blocks.filter(pl.col("blocks") <= processors / 2).filter(
        ~pl.col("name").str.contains(_FILLS_BY_DESIGN)
    )
    filled = (pl.col("blocks") / processors).clip(LEAST_BLOCKS_FACTOR, 1.0)
    chosen = few.select("event", least=filled, most=(1 + filled) / 2)
    found = of_kernels(
        case,
        RULE,
        chosen,
        f"is spent in kernels with at most half as many blocks as the device has multiprocessors ({processors}).",
    )
    if found is not None and found.speedup.low < SURE_GAIN:
        found.class_ = "advice"  # no more than noise is sure
    return found


def _blocks(grid: pl.Series) -> pl.Series:
    sides = [grid.arr.get(side).cast(pl.Int64) for side in range(3)]
    blocks: pl.Series = sides[0] * sides[1] * sides[2]
    return blocks


RULE: Rule[Case] = Rule(
    code="low-occupancy",
    title="Long kernels use a fraction of the device",
    turn=210,
    page="kernels",
    owns="kernels over 50 µs with at most half as many blocks as multiprocessors, except inside decompositions and solvers",
    change="at best, blocks / multiprocessors of their time; at worst, half of that gain",
    certainty=UNSURE_KERNELS,
    fix={
        ANY: "Give these kernels more blocks: split long loops over the grid, use smaller tiles, or run them beside other work on another stream.",
    },
    find=find,
    needs_device=True,
)
