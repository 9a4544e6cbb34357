"""A renderer for stepscope: one line per finding, for a chat message or a commit."""

from __future__ import annotations

from collections.abc import Collection

from stepscope.reports.model.report import Report
from stepscope.reports.render.renderer import Renderer


def render(report: Report, *, sections: Collection[str] | None, limit: int) -> str:
    """The findings, at most `limit`; other sections have no place in it."""
    shown = report.findings[: limit or None]
    return "".join(f"{found.speedup.mid:.2f}x {found.code}: {found.title}\n" for found in shown)


RENDERER = Renderer(name="brief", render=render, suffixes=(".brief",), rows=5)
