"""The page docs/calibration.md, made from the registers: python -m stepscope.registers.page docs/calibration.md"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from stepscope.markdown import write_page
from stepscope.registers import levels
from stepscope.registers.calibration.caches import CACHES
from stepscope.registers.calibration.devices import DEVICES, IDENTITIES
from stepscope.registers.entry import ENTRIES, Entry

# In the order of the page. A module's docstring is its heading.
MODULES = (
    "levels",
    "calibration.profiler",
    "calibration.promises",
    "calibration.launches",
    "calibration.kernels",
    "calibration.fused_layers",
    "calibration.recurrent",
    "calibration.host_ops",
    "calibration.products",
    "calibration.solvers",
    "calibration.sorting",
    "calibration.devices",
    "calibration.caches",
    "calibration.clocks",
    "calibration.runs",
    "policy.findings",
    "policy.device_findings",
    "policy.ranking",
    "policy.host_code",
    "policy.useless_work",
    "policy.repeated_work",
    "policy.compute",
    "policy.capture",
    "policy.steps",
    "policy.tables",
    "policy.snapshot",
    "policy.graphs",
    "policy.ranks",
    "policy.job",
    "policy.diffs",
    "policy.assistant",
)
_INTRODUCTION = f"""# Calibration, policy and levels

Every number that decides what a report, a diff or a gate says, with its origin. `stepscope.registers` holds them, and the code imports them
from there. *Levels* are parameters of statistical methods, *calibration* is measured physics, *policy* is what is worth showing.
A figure that has not been measured says so. This page is generated: `python -m stepscope.registers.page docs/calibration.md`.

- A **slow step** (an outlier) takes more than {levels.SLOW_STEP_TIMES:g} times the median step of its rank and device, and longer than
  that median by more than {levels.SLOW_STEP_DEVIATIONS} median absolute deviations. Fewer than {levels.SLOW_STEP_FEWEST} steps have no outliers.
- **Noise** is a standard deviation by the median: {levels.MAD_TO_SIGMA:g} times the median absolute deviation. Of a mean or a difference it is the
  standard error, and ± is its {100 * (1 - levels.SIGNIFICANCE):.0f} % interval by Student's t.
- **Significant** is what noise alone would show with a probability below {100 * levels.SIGNIFICANCE:.0f} %, shared equally among the {levels.FAMILIES} kinds of rows
  of a diff and by Holm's rule within each.

The report, its findings, the diff and the gate share these definitions (`stepscope.statistics`).
"""
_HEADINGS = {"levels": "Levels", "calibration": "Calibration", "policy": "Policy"}
_COLUMNS = {
    "calibration": ("name", "value", "unit", "device", "how", "when", "seen"),
    "policy": ("name", "value", "unit", "why"),
    "levels": ("name", "value", "unit", "why"),
}


_FORMATS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "int4")
_PEAKS = """Dense operations a second by number format in 10¹², and memory bandwidth in 10⁹ bytes a second, by the device's name. On matrix units where
the format has any; GeForce cards with sums in fp32. MI250 and MI250X show as two devices, so theirs are halves. A device that is not listed has no
peak, unless the profile gives one, as those of TPUs do. Where a sheet gives figures with sparsity alone, half of them is taken.
"""
_LINKS = """An entry is of the devices above whose name begins so. PCIe is a generation; sixteen lanes of generations 3, 4, 5 and 6 move 15.8, 31.5, 63 and
121 GB/s one way. GB/s of links are both ways together. Bandwidths of the L2 are bytes a clock at the highest clock; on MI300 and later the
Infinity Cache takes its place.
"""
_NAMELESS = (
    "A device without a name is recognised by its vendor, its multiprocessors (compute units) and its memory: "
    + "; ".join(f"{each.units} and {each.gib[0]} to {each.gib[1]} GiB: {each.name}" for each in IDENTITIES)
    + "."
)


def _peaks() -> Iterator[str]:
    yield f"| device | GB/s | {' | '.join(_FORMATS)} | source |"
    yield "|---" * (len(_FORMATS) + 3) + "|"
    for device in DEVICES:
        rates = (f"{device.tera[name]:g}" if name in device.tera else "" for name in _FORMATS)
        yield f"| {device.name} | {device.gb_per_s:g} | {' | '.join(rates)} | {device.source} |"


def _caches() -> Iterator[str]:
    yield "| device | L2, MiB | L2, GB/s | PCIe | link | link, GB/s | source |"
    yield "|---" * 7 + "|"
    for each in CACHES:
        rates = [f"{rate:g}" if rate else "" for rate in (each.l2_gb_per_s, each.link_gb_per_s)]
        yield f"| {each.name} | {each.l2_mib:g} | {rates[0]} | {each.pcie} | {each.link} | {rates[1]} | {each.source} |"


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    last = ""
    for name in MODULES:
        module = import_module(f"stepscope.registers.{name}")
        register = name.split(".")[0]
        if register != last:
            parts.append(f"## {_HEADINGS[register]}\n")
        last = register
        if register != name:
            parts.append(f"### {_heading(module)}\n")
        if name == "calibration.devices":
            parts += [
                _PEAKS,
                "\n".join(_peaks()) + "\n",
                _NAMELESS + "\n",
                _LINKS,
                "\n".join(_caches()) + "\n",
            ]
        else:
            parts.append("\n".join(_table(register, entries_of(module))) + "\n")
    return "\n".join(parts)


def entries_of(module: ModuleType) -> list[Entry]:
    """The entries that the module defines, in its order."""
    return [ENTRIES[name] for name in vars(module) if name in ENTRIES]


def _heading(module: ModuleType) -> str:
    return (module.__doc__ or "").split("\n")[0].rstrip(".")


def _table(register: str, entries: list[Entry]) -> Iterator[str]:
    columns = _COLUMNS[register]
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for entry in entries:
        yield f"| {' | '.join(_cells(entry, columns))} |"


def _cells(entry: Entry, columns: tuple[str, ...]) -> Iterator[str]:
    for column in columns:
        if column == "name":
            yield f"`{entry.name}`"
        elif column == "value":
            yield written(entry.value)
        else:
            text = str(getattr(entry, "origin" if column in ("how", "why") else column))
            yield text.replace("|", "\\|").replace("<", "&lt;")


def written(value: float) -> str:
    """A number as people write it: 60,000, 0.015, 2e-05."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


if __name__ == "__main__":
    write_page(page(), sys.argv[1:])
