"""Our FLOPs and bytes of each case beside those that `ncu` counted, and whether they agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.kernel_table import ncu
from benchmarks.kernel_table.marker import BEGIN, NAME

TENSOR = "sm__ops_path_tensor_src_"
SASS = "smsp__sass_thread_inst_executed_op_"
# FLOPs of one thread instruction.
WEIGHTS = {"ffma": 2, "fadd": 1, "fmul": 1, "dfma": 2, "dadd": 1, "dmul": 1}
DRAM, L2 = "dram__bytes", "lts__t_bytes"
# What the multiprocessors ask of the L2; lts__t_bytes counts its traffic with DRAM as well.
ASKED, SECTOR_BYTES = "lts__t_sectors_srcunit_tex", 32
FLOPS_CLASSES = ("matmul", "convolution", "attention")
BYTES_CLASSES = ("elementwise", "reduction", "copy")
FLOPS_WITHIN, BYTES_WITHIN = 0.05, 0.10
ROUNDED = 1.01  # a lower bound may exceed what was counted by this


@dataclass(frozen=True)
class Work:
    """FLOPs and bytes of one case."""

    flops: float
    dram: float
    l2: float


NOTHING = Work(0, 0, 0)


@dataclass(frozen=True)
class Ours:
    """What a profile says of the cases by their numbers: FLOPs and bytes of kernels, and which cases only copy without any kernel."""

    work: dict[int, tuple[float, float]]
    copied: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Row:
    """One case: ours / counted of what its class is judged by. `agrees` is None where there is nothing to judge by."""

    case: str
    what: str
    ours: float
    counted: float
    agrees: bool | None

    @property
    def ratio(self) -> float:
        """Ours over counted."""
        return self.ours / self.counted if self.counted else float("inf")


def metrics(names: list[str]) -> list[str]:
    """The counters that are asked for: those of them that the chip has."""
    tensor = [name for name in names if name.startswith(TENSOR) and "sparsity" not in name]
    plain = [f"{SASS}{each}_pred_on" for each in WEIGHTS]
    return [f"{name}.sum" for name in (*tensor, *plain, DRAM, L2, ASKED)]


def counted(launches: list[ncu.Counted]) -> dict[int, Work]:
    """Sums of the launches between the markers, by the number of the case; nothing of a case that was broken off."""
    found: dict[int, Work] = {}
    ended: set[int] = set()
    case: int | None = None
    for launch in launches:
        if NAME in launch.name:
            begins = launch.grid[1] == BEGIN
            case = launch.grid[0] - 1 if begins else None
            if not begins:
                ended.add(launch.grid[0] - 1)
        elif case is not None:
            before = found.get(case, NOTHING)
            own = _work(launch.counters)
            found[case] = Work(before.flops + own.flops, before.dram + own.dram, before.l2 + own.l2)
    return {case: found.get(case, NOTHING) for case in sorted(ended)}


def _work(counters: dict[str, float]) -> Work:
    """On the tensor pipe where it did anything; else what plain instructions did."""
    tensor = sum(value for name, value in counters.items() if name.startswith(TENSOR))
    plain = sum(weight * counters.get(f"{SASS}{name}_pred_on", 0.0) for name, weight in WEIGHTS.items())
    asked = SECTOR_BYTES * counters.get(ASKED, 0.0)
    return Work(tensor or plain, counters.get(DRAM, 0.0), asked or counters.get(L2, 0.0))


def ours(trace: Path) -> Ours:
    """What happens between the markers, by the number of the case."""
    import polars as pl  # the machine that counts may have no package of the analysis

    from stepscope.analysis.context import RankContext
    from stepscope.analysis.options import Options
    from stepscope.formats import read
    from stepscope.formats.source import Source

    context = RankContext(0, read(Source(str(trace))), Options(whole=True))
    calls = context.kernel_calls.select("event", pl.col("name").cast(pl.String), "grid", "start_ns")
    kernels = calls.join(context.compute.kernels, on="event", how="left")
    events = context.trace.events.filter(pl.col("kind").is_in(["copy", "memset"]))
    copies = events.select(event="id", name=pl.lit(""), start_ns="start_ns")
    rows = pl.concat(
        [kernels.select("event", "name", "start_ns", "grid", "flops", "bytes"), copies], how="diagonal"
    )
    work: dict[int, tuple[float, float]] = {}
    copied: set[int] = set()
    case: int | None = None
    for name, grid, flops, size in rows.sort("start_ns").select("name", "grid", "flops", "bytes").iter_rows():
        if NAME in name:
            case = grid[0] - 1 if grid[1] == BEGIN else None
        elif case is not None and not name:
            copied.add(case)
        elif case is not None:
            before = work.get(case, (0.0, 0.0))
            work[case] = (before[0] + (flops or 0.0), before[1] + (size or 0.0))
    return Ours(work, frozenset(copied - work.keys()))


def compare(names: dict[int, str], mine: Ours, theirs: dict[int, Work]) -> list[Row]:
    """Products by FLOPs; the rest by bytes, at DRAM if large and at the L2 if small, some as a lower bound only."""
    rows = []
    for number, name in names.items():
        if number in mine.copied and theirs.get(number) == NOTHING:
            # A copy by the driver, which is no kernel: ncu has no counters of it.
            rows.append(Row(name, "not counted by ncu", 0, 0, None))
            continue
        if number not in mine.work or theirs.get(number, NOTHING) == NOTHING:
            rows.append(Row(name, "missing", 0, 0, False))
            continue
        kind, size = name.split("/")[0], name.split("/")[-1]
        (flops, moved), found = mine.work[number], theirs[number]
        if kind in FLOPS_CLASSES:
            rows.append(_judged(name, "FLOPs", flops, found.flops, FLOPS_WITHIN))
        within = BYTES_WITHIN if kind in BYTES_CLASSES else None
        # What was written last is still in the L2: a lower bound must be held against what that sees.
        at_dram = size == "large" and within is not None
        measured, where = (found.dram, "DRAM bytes") if at_dram else (found.l2, "L2 bytes")
        rows.append(_judged(name, where, moved, measured, within))
    return rows


def _judged(case: str, what: str, mine: float, theirs: float, within: float | None) -> Row:
    if within is None:
        return Row(case, f"{what}, at least", mine, theirs, 0 < mine <= ROUNDED * theirs)
    return Row(case, what, mine, theirs, bool(theirs) and abs(mine / theirs - 1) <= within)
