"""Nsight Compute: which counters this chip has, the command line, and its CSV read back."""

from __future__ import annotations

import csv
import gzip
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# On Hopper the tensor pipe also executes packed half-precision arithmetic (HFMA2.MMA), which kernels without any
# matrix product use too, to set registers to zero for one: that is counted apart and taken off.
TENSOR = "sm__inst_executed_pipe_tensor"
PACKED = f"{TENSOR}_op_hmma_type_hfma2"
FORMATS = "sm__ops_path_tensor_src_"


@dataclass
class Counted:
    """One kernel launch and its counters."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    counters: dict[str, float] = field(default_factory=dict)

    def tensor_instructions(self) -> float | None:
        """Matrix instructions that the tensor pipe executed, packed half arithmetic not counted."""
        whole = self.counters.get(TENSOR)
        return None if whole is None else max(0.0, whole - self.counters.get(PACKED, 0.0))

    def formats(self) -> str | None:
        """The operand formats of the tensor pipe's operations; None where they were not counted."""
        counted = {
            k.removeprefix(FORMATS).split("_")[0]: v
            for k, v in self.counters.items()
            if k.startswith(FORMATS)
        }
        return ";".join(sorted(name for name, value in counted.items() if value > 0)) if counted else None


def available() -> list[str]:
    """All counters of this chip by name, or nothing where `ncu` cannot tell."""
    done = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True, check=False, timeout=60)
    return sorted({line.split()[0] for line in done.stdout.splitlines() if re.match(r"\w+__\w+\s", line)})


def uses(names: list[str]) -> list[str]:
    """Counters that fit one pass: more would mean to save and restore the device's memory for every kernel."""
    return [f"{name}.sum" for name in (TENSOR, PACKED) if name in names] or [f"{TENSOR}.sum"]


def formats(names: list[str]) -> list[str]:
    """Operations of the tensor pipe by the format that it reads, sparse ones not apart. They need several passes."""
    return [f"{name}.sum" for name in names if name.startswith(FORMATS) and "sparsity" not in name]


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
    with gzip.open(log, "rt", newline="", errors="replace") as file:
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
