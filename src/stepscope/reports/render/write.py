"""The report in the form that a file's name asks for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cache
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.plugins import RAISE, load_plugins, wants_tracebacks
from stepscope.profiles.cache.atomic_files import whole_file
from stepscope.reports.model.report import Report
from stepscope.reports.render.renderer import Render, Renderer

GROUP = "stepscope.renderers"  # of entry points


# Each is imported when it is used: a report on one screen needs none of them.
def _as_text(report: Report, *, sections: Collection[str] | None, limit: int) -> str:
    from stepscope.reports.render.terminal import as_text

    return as_text(report, sections=sections, limit=limit)


def _as_json(report: Report, *, sections: Collection[str] | None, limit: int) -> str:
    from stepscope.reports.render.json import as_json

    return as_json(report, sections=sections)


def _as_csv(report: Report, *, sections: Collection[str] | None, limit: int) -> str:
    from stepscope.reports.render.csv import csv_tables

    return "\n".join(text for _, text in csv_tables(report, sections))


def _as_markdown(report: Report, *, sections: Collection[str] | None, limit: int) -> str:
    from stepscope.reports.render.markdown import as_markdown

    return as_markdown(report, sections=sections, limit=limit)


def _as_html(report: Report, *, sections: Collection[str] | None, limit: int) -> str:
    from stepscope.reports.render.html import as_html

    return as_html(report, sections=sections, limit=limit)


TEXT = Renderer("text", _as_text, rows=10)
RENDERERS = (
    TEXT,
    Renderer("json", _as_json, (".json",), rows=100),
    Renderer("csv", _as_csv, (".csv",), rows=0),
    Renderer("md", _as_markdown, (".md",), rows=20),
    Renderer("html", _as_html, (".html", ".htm"), rows=200),
)


@cache
def find_renderers() -> dict[str, Renderer]:
    """All renderers by name, those of plug-ins last."""
    offered = load_plugins(GROUP, Renderer, lambda each: each.name, [each.name for each in RENDERERS])
    found = (*RENDERERS, *(_guard(plugin, each) for plugin, each in offered))
    return {each.name: each for each in found}


def form_of(path: Path | None) -> str:
    """The name of the renderer for a file of this name; text where no renderer has its suffix."""
    suffix = "" if path is None else path.suffix.lower()
    return next((each.name for each in find_renderers().values() if suffix in each.suffixes), TEXT.name)


def written(
    report: Report, form: str, *, sections: Collection[str] | None = None, limit: int | None = None
) -> str:
    """The report, or some of its sections, by the renderer of this name."""
    renderer = find_renderers()[form]
    return renderer.render(report, sections=sections, limit=renderer.rows if limit is None else limit)


def save(report: Report, path: Path, *, force: bool = False) -> None:
    """Write the whole report."""
    with whole_file(path, force) as file:
        file.write(written(report, form_of(path)).encode())


def _guard(plugin: str, each: Renderer) -> Renderer:
    """The renderer of a plug-in, whose faults are one error with a fix."""
    return replace(each, render=_guarded(plugin, each.render))


def _guarded(plugin: str, render: Render) -> Render:
    def safe_render(report: Report, *, sections: Collection[str] | None, limit: int) -> str:
        try:
            return str(render(report, sections=sections, limit=limit))
        except Exception as error:
            if wants_tracebacks():
                raise
            raise StepscopeError(
                f"The plug-in {plugin} failed with {type(error).__name__}: {error}",
                fix=f"Update it, or use another --format; {RAISE}=1 shows the traceback.",
            ) from None

    return safe_render
