"""Nsight Compute: which counters this chip has, the command line, and its CSV read back."""

from __future__ import annotations

import csv
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# On Hopper the total of the tensor pipe also counts packed half-precision arithmetic (HFMA2.MMA), which no one would
# call tensor-core work: so the kinds are read one by one, and that one is taken off.
TENSOR = "sm__inst_executed_pipe_tensor"
TYPES = "sm__ops_path_tensor_src_"
PIPES = ("fp64", "fp16", "fma", "fma_type_fp16", "fma_type_fp32", "alu")
FALLBACK = [f"{TENSOR}.sum"]
MOST_METRICS = 48


@dataclass
class Counted:
    """One kernel launch and its counters."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    counters: dict[str, float] = field(default_factory=dict)

    def tensor_instructions(self) -> float | None:
        """Matrix instructions that the tensor pipe executed, packed half arithmetic not counted."""
        kinds = {
            k.removeprefix(f"{TENSOR}_op_"): v
            for k, v in self.counters.items()
            if k.startswith(f"{TENSOR}_op_")
        }
        whole = [v for k, v in kinds.items() if "_type_" not in k]
        if whole:
            return max(0.0, sum(whole) - kinds.get("hmma_type_hfma2", 0.0))
        return self.counters.get(TENSOR)

    def formats(self) -> list[str]:
        """The operand formats of the tensor pipe's operations, where the chip tells them."""
        seen = {
            k.removeprefix(TYPES).split("_")[0]
            for k, v in self.counters.items()
            if k.startswith(TYPES) and v > 0
        }
        return sorted(seen)


def available() -> list[str]:
    """All counters of this chip by name, or nothing where `ncu` cannot tell."""
    done = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True, check=False, timeout=60)
    return sorted({line.split()[0] for line in done.stdout.splitlines() if re.match(r"\w+__\w+\s", line)})


def chosen(names: list[str]) -> list[str]:
    """The tensor pipe's instructions by kind, its operations by format, and the other arithmetic pipes."""
    kinds = [n for n in names if re.fullmatch(TENSOR + r"(_op_[a-z]+(_type_hfma2)?)?", n)]
    formats = [n for n in names if n.startswith(TYPES) and "sparsity" not in n]
    pipes = [f"sm__inst_executed_pipe_{p}" for p in PIPES if f"sm__inst_executed_pipe_{p}" in names]
    found = [f"{n}.sum" for n in [*kinds, *pipes, *formats]][:MOST_METRICS]
    return found if kinds else FALLBACK


def command(metrics: list[str], log: Path, program: list[str]) -> list[str]:
    """Counters of the kernels inside the program's own window, at the clocks as they are."""
    return [
        *("ncu", "--profile-from-start", "off", "--target-processes", "application-only"),
        *("--clock-control", "none", "--cache-control", "none", "--print-units", "base"),
        *("--csv", "--log-file", str(log), "--metrics", ",".join(metrics), *program),
    ]


def read(log: Path) -> list[Counted]:
    """The launches in order. Lines of `ncu`'s own talk are skipped."""
    launches: dict[int, Counted] = {}
    with log.open(newline="", errors="replace") as file:
        lines = (line for line in file if line.startswith('"'))
        for row in csv.DictReader(lines):
            if not (row.get("ID") or "").isdigit():
                continue
            launch = launches.setdefault(int(row["ID"]), _launch(row))
            launch.counters[row["Metric Name"].removesuffix(".sum")] = _number(row["Metric Value"])
    return [launches[key] for key in sorted(launches)]


def _launch(row: dict[str, str]) -> Counted:
    return Counted(row["Kernel Name"], _dimensions(row["Grid Size"]), _dimensions(row["Block Size"]))


def _dimensions(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text))


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0
