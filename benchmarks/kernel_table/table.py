"""Joins `ncu`'s launches to the profiler's kernels, case by case, into one row for each distinct kernel."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol, TypeVar

from benchmarks.kernel_table import marker
from benchmarks.kernel_table.ncu import Counted
from benchmarks.kernel_table.ncu import read as read_counted
from benchmarks.kernel_table.recorded import Recorded
from benchmarks.kernel_table.recorded import read as read_recorded


class Launch(Protocol):
    """What both tools say of a launch."""

    @property
    def name(self) -> str: ...
    @property
    def grid(self) -> tuple[int, ...]: ...
    @property
    def block(self) -> tuple[int, ...]: ...


L = TypeVar("L", bound=Launch)


@dataclass
class Row:
    """One distinct kernel: its name as the profiler gives it, and what the hardware counted."""

    name: str
    framework: str
    case: str
    op: str
    dtypes: str
    case_precision: str
    tensor_instructions: float | None
    tensor_formats: str | None
    launches: int = 1
    module: str = ""  # what XLA's module says of it


def by_case(launches: Sequence[L]) -> dict[int, list[L]]:
    """Kernels between a case's two markers."""
    found: dict[int, list[L]] = {}
    current: list[L] | None = None
    for launch in launches:
        if marker.NAME in launch.name:
            begins = launch.grid[1] == marker.BEGIN
            current = found.setdefault(launch.grid[0] - 1, []) if begins else None
        elif current is not None:
            current.append(launch)
    return found


def paired(counted: list[Counted], recorded: list[Recorded]) -> list[tuple[Counted, Recorded | None]]:
    """In order where the launch shapes agree one by one; else each with the first unused kernel of its shape and name."""
    if len(counted) == len(recorded) and all(
        _same_shape(c, r) for c, r in zip(counted, recorded, strict=True)
    ):
        return list(zip(counted, recorded, strict=True))
    left = list(recorded)
    pairs: list[tuple[Counted, Recorded | None]] = []
    for launch in counted:
        match = next((r for r in left if _same_shape(launch, r) and _alike(launch.name, r.name)), None)
        if match is not None:
            left.remove(match)
        pairs.append((launch, match))
    return pairs


def _same_shape(a: Launch, b: Launch) -> bool:
    return all(x == y for x, y in zip_longest(a.grid + a.block, b.grid + b.block))


def _alike(a: str, b: str) -> bool:
    squeezed = [n.replace(" ", "").removeprefix("void")[:24] for n in (a, b)]
    return squeezed[0] == squeezed[1]


def torch_rows(folder: Path) -> list[Row]:
    """PyTorch's kernels, named as its profiler names them: others would not be found in a profile."""
    told = _outcomes(folder)
    if "torch_ncu" not in told or "torch_profiler" not in told:
        return []
    names = told["torch_profiler"]["names"]
    recorded = by_case(read_recorded(folder / "torch.pt.trace.json.gz"))
    kernels = {names[str(case)]: found for case, found in recorded.items() if str(case) in names}
    counted = with_formats(_counted(folder / "torch.csv.gz"), _counted(folder / "torch_formats.csv.gz"))
    return [row for row in _rows("torch", told["torch_ncu"], counted, kernels) if row.dtypes]


def jax_rows(folder: Path) -> list[Row]:
    """JAX's kernels, whose names `ncu` gives as its profiler does."""
    told = _outcomes(folder)
    return _rows("jax", told["jax_ncu"], _counted(folder / "jax.csv.gz"), {}) if "jax_ncu" in told else []


def _outcomes(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "outcomes.json").read_text())
    return found


def _counted(log: Path) -> list[Counted]:
    return read_counted(log) if log.exists() else []


def _rows(
    framework: str, told: dict[str, Any], counted: list[Counted], kernels: dict[str, list[Recorded]]
) -> list[Row]:
    found = []
    for case, launches in by_case(counted).items():
        name, precision = told["names"].get(str(case)), told["precisions"].get(str(case))
        if name is not None:
            for launch, kernel in paired(launches, kernels.get(name, [])):
                found.append(_row(framework, name, precision, launch, kernel))
    return found


def with_formats(counted: list[Counted], again: list[Counted]) -> list[Counted]:
    """The launches with the counters of a second run added, in those cases that ran the same launches."""
    second = by_case(again)
    for case, launches in by_case(counted).items():
        others = second.get(case, [])
        # By shape, not by name: ncu shortens names as it likes.
        if len(launches) == len(others) and all(
            _same_shape(a, b) for a, b in zip(launches, others, strict=True)
        ):
            for launch, other in zip(launches, others, strict=True):
                launch.counters.update(other.counters)
    return counted


def _row(framework: str, case: str, precision: str, launch: Counted, kernel: Recorded | None) -> Row:
    return Row(
        name=kernel.name if kernel else launch.name,
        framework=framework,
        case=case,
        op=kernel.op if kernel else "",
        dtypes=json.dumps(kernel.dtypes) if kernel else "",
        case_precision=precision,
        tensor_instructions=launch.tensor_instructions(),
        tensor_formats=launch.formats(),
    )


def distinct(all_rows: list[Row]) -> list[Row]:
    """The first row of each name and set of input types, with the number of launches seen and any known formats."""
    kept: dict[tuple[object, ...], Row] = {}
    for row in all_rows:
        first = kept.setdefault((row.name, row.dtypes, bool(row.tensor_instructions)), row)
        if first is not row:
            first.launches += 1
            first.tensor_formats = first.tensor_formats or row.tensor_formats
    return list(kept.values())


def write(path: Path, table: list[Row]) -> None:
    """As CSV."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(Row.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in table)
