"""The figures of a report, by name."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.errors import StepscopeError
from stepscope.reports.figures.account import account, ranks
from stepscope.reports.figures.bars import collectives, kernels, ops, precision
from stepscope.reports.figures.curves import device, memory
from stepscope.reports.figures.figure import Figure
from stepscope.reports.figures.steps import steps
from stepscope.reports.model.report import Report

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
