"""The report in the form that a file's name asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from stepscope.profiles.cache.atomic_files import whole_file
from stepscope.reports.model.report import Report
from stepscope.reports.render.html import as_html
from stepscope.reports.render.json import as_json
from stepscope.reports.render.markdown import as_markdown
from stepscope.reports.render.terminal import as_text

# Rows of a table, where nobody says how many: as many as suit the form.
ROWS = {"text": 10, "md": 20, "html": 200, "json": 100, "csv": 0}
_SUFFIXES = {".json": "json", ".csv": "csv", ".md": "md", ".html": "html", ".htm": "html"}
_FORMS: dict[str, Callable[..., str]] = {"text": as_text, "md": as_markdown, "html": as_html}


def form_of(path: Path | None) -> str:
    """text, json, csv, md or html, by the name of the file."""
    return "text" if path is None else _SUFFIXES.get(path.suffix.lower(), "text")


def written(
    report: Report, form: str, *, sections: Collection[str] | None = None, limit: int | None = None
) -> str:
    """The report, or some of its sections, as text, md, html or json."""
    if form == "json":
        return as_json(report, sections=sections)
    return _FORMS[form](report, sections=sections, limit=ROWS[form] if limit is None else limit)


def save(report: Report, path: Path, *, force: bool = False) -> None:
    """Write the whole report."""
    with whole_file(path, force) as file:
        file.write(written(report, form_of(path)).encode())
