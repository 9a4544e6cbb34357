"""The figures of a report, by name."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.errors import StepscopeError
from stepscope.report.figures.account import account, ranks
from stepscope.report.figures.bars import collectives, kernels, ops, precision
from stepscope.report.figures.curves import device, memory
from stepscope.report.figures.figure import Figure
from stepscope.report.figures.steps import steps
from stepscope.report.model import Report

FIGURES: dict[str, Callable[[Report], Figure | None]] = {
    "account": account,
    "steps": steps,
    "ranks": ranks,
    "ops": ops,
    "kernels": kernels,
    "precision": precision,
    "device": device,
    "memory": memory,
    "collectives": collectives,
}


def figure(report: Report, name: str) -> Figure:
    """The figure of this name."""
    if name not in FIGURES:
        raise StepscopeError(f"There is no figure {name}.", fix=f"The figures are {', '.join(FIGURES)}.")
    found = FIGURES[name](report)
    if found is None:
        there = [other for other, draw in FIGURES.items() if draw(report) is not None]
        raise StepscopeError(
            f"The report has nothing to draw for {name}.", fix=f"It has {', '.join(there) or 'no figures'}."
        )
    return found
