"""The report that `stepscope.report` returns: the data of the model, which can be shown and saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.reports.model import report as model

if TYPE_CHECKING:
    from stepscope.reports.figures.figure import Figure


class Report(model.Report, kw_only=True):
    """A report that can be shown and saved."""

    # What shows it is imported when it is asked to: one screen needs neither figures nor HTML.

    def figure(self, name: str) -> Figure:
        """A drawing: account, steps, ranks, ops, kernels, precision, device, memory or collectives."""
        from stepscope.reports.figures import figure

        return figure(self, name)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the report in the format of the file name: .html, .json, .md, or text."""
        from stepscope.reports.render.write import save

        save(self, Path(path), force=force)

    def __str__(self) -> str:
        from stepscope.reports.render.brief import as_brief

        return as_brief(self)

    def __repr__(self) -> str:
        from stepscope.reports.wording.headline import brief

        return brief(self)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("profile", self.profile.name)]

    def _repr_html_(self) -> str:
        from stepscope.reports.render.html import fragment

        return fragment(self)
